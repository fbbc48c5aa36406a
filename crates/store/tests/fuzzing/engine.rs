//! The engine: tries inputs for a while, makes what fails small, and measures memory.
//!
//! Whoever includes it has the counting allocator as `MEMORY`.

use std::{
    cell::Cell,
    env,
    fmt::Debug,
    fs,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};

use crate::MEMORY;

/// How long each target is tried.
const SECONDS: &str = "TURNKEEP_FUZZ_SECONDS";
/// One seed to repeat.
const SEED: &str = "TURNKEEP_FUZZ_SEED";
/// How many tries one seed is good for.
const TRIES: u32 = 64;

/// What came of a try, or why it failed.
pub type Tried = Result<Outcome, TestCaseError>;

/// What both readers agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Accepted,
    Refused,
    /// The reference cannot tell, so that only panics and memory counted.
    Unknown,
}

/// Tries inputs until the time is up. What fails is made as small as it gets, printed with the seed
/// that finds it again, and its bytes are left in a file.
///
/// `inputs` is asked for once nothing else runs, so that what it takes to prepare them is not taken
/// for another target's memory either.
pub fn fuzz<T: Debug, S: Strategy<Value = T>>(
    target: &str,
    inputs: impl FnOnce() -> S,
    bytes: impl Fn(&T) -> Vec<u8>,
    check: impl Fn(&T, &[u8]) -> Tried,
) {
    let _alone = alone();
    let inputs = inputs();
    let asked = setting(SECONDS);
    let seconds = asked.unwrap_or(6);
    let repeated = setting(SEED);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    // New inputs are for who asks for a run of some length; a change is not held up by chance.
    let fresh = || u64::try_from(since.as_micros()).unwrap();
    let mut seed = repeated.unwrap_or_else(|| if asked.is_some() { fresh() } else { 0 });
    let until = Instant::now() + Duration::from_secs(seconds);
    let tally: [Cell<u32>; 3] = Default::default();
    loop {
        let config = Config { cases: TRIES, failure_persistence: None, ..Config::default() };
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &key);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let ran = runner.run(&inputs, |input| {
            let count = &tally[check(&input, &bytes(&input))? as usize];
            count.set(count.get() + 1);
            Ok(())
        });
        if let Err(TestError::Fail(why, input)) = ran {
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{target}"));
            fs::write(&file, bytes(&input)).unwrap();
            panic!(
                "{target}: {why}\nfor {input:?}\nwhich is {}; to repeat it: \
                 {SEED}={seed} cargo test -p {} --test fuzz {target}",
                file.display(),
                env!("CARGO_PKG_NAME")
            );
        }
        ran.unwrap();
        seed = seed.wrapping_add(1);
        if repeated.is_some() || Instant::now() >= until {
            break;
        }
    }
    let [accepted, refused, unknown] = tally.map(Cell::into_inner);
    println!(
        "{target}: {accepted} accepted, {refused} refused, {unknown} not compared; {seconds} s"
    );
    // With one of them missing, little would be shown.
    assert!(accepted > 0 && refused > 0 || repeated.is_some(), "{target}: the same each time");
}

fn setting(name: &str) -> Option<u64> {
    env::var(name).ok().filter(|value| !value.is_empty()).map(|value| value.parse().unwrap())
}

/// What is allocated from a moment on.
pub struct Meter {
    before: usize,
}

impl Meter {
    pub fn start() -> Self {
        MEMORY.reset_peak_usage();
        Self { before: MEMORY.current_usage() }
    }

    /// Fails when there was more memory in use at any time since than `ceiling` bytes on top of what
    /// there was.
    pub fn check(&self, ceiling: usize) -> Result<(), TestCaseError> {
        let peak = MEMORY.peak_usage().saturating_sub(self.before);
        if peak > ceiling {
            return Err(TestCaseError::fail(format!(
                "took {peak} bytes of memory, over {ceiling}"
            )));
        }
        Ok(())
    }
}

/// One at a time, or one target's memory would be taken for another's.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs something that may take so much memory.
pub fn within<T>(ceiling: usize, run: impl FnOnce() -> T) -> Result<T, TestCaseError> {
    let meter = Meter::start();
    let result = run();
    meter.check(ceiling)?;
    Ok(result)
}
