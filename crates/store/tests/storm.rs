//! Many processes on one store, killed at any moment.
//!
//! Eight processes create, open, append, flush and close two hundred sessions at random. One after
//! the other is ended with SIGKILL at a random moment, replaced at once, and what it held is taken
//! over at once. Each writes down what was acknowledged to it; in the end all of that must be there,
//! once, in order, and every batch whole or not at all.
//!
//! `just storm` runs it for half a minute and prints the counts; `TURNKEEP_STORM_SECONDS` says how long
//! the backends are tried, one after the other.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

#[path = "sim/random.rs"]
#[allow(dead_code, unreachable_pub, reason = "the simulator uses all of it")]
mod random;
mod storming;
mod support;

use std::{
    collections::HashSet,
    env,
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    thread::sleep,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use random::Random;
use rustix::fs::{FlockOperation, flock};
use storming::{
    Backend, SESSIONS, batch, child,
    journal::{Batch, Entry, Journal, held, may_hold},
    journals,
    verdict::Account,
};
use support::{
    disk::{PROJECT, pack, unpack},
    id, never, read,
};
use turnkeep_log::{Seq, packed};
use turnkeep_store::{Access, SessionStore};

/// How long the backends are tried in all.
const SECONDS: &str = "TURNKEEP_STORM_SECONDS";
/// Says to the process that runs [`child_process`] who it is: the backend, the folder, its name, a
/// seed.
const CHILD: &str = "TURNKEEP_STORM_CHILD";
/// How many tests share the time.
const BACKENDS: u32 = 3;
/// How many processes there are at any time.
const PROCESSES: usize = 8;

/// A process that writes.
struct Sailor {
    process: Child,
    journal: PathBuf,
}

/// The processes, and what became of them.
struct Storm {
    backend: Backend,
    folder: tempfile::TempDir,
    store: Box<dyn SessionStore>,
    runtime: tokio::runtime::Runtime,
    random: Random,
    crew: Vec<Sailor>,
    started: usize,
    journal: Journal,
    tally: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    kills: usize,
    takeovers: usize,
    /// What was held by the dead and taken by another process before this one came.
    outrun: usize,
    slowest: Duration,
    /// How many tails were torn on purpose.
    torn: usize,
}

impl Storm {
    fn new(backend: Backend, seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(journals(folder.path())).unwrap();
        let journal = Journal::open(&journals(folder.path()).join("main"));
        let store = backend.open(folder.path());
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let random = Random::new(seed);
        let (crew, started, tally) = (Vec::new(), 0, Tally::default());
        Self { backend, folder, store, runtime, random, crew, started, journal, tally }
    }

    fn start(&mut self) -> Sailor {
        self.started += 1;
        let name = format!("p{}", self.started);
        let journal = journals(self.folder.path()).join(&name);
        let folder = self.folder.path().display();
        let seed = self.random.next();
        let process = Command::new(env::current_exe().unwrap())
            .args(["child_process", "--exact", "--nocapture"])
            .env(CHILD, format!("{}\n{folder}\n{name}\n{seed}", self.backend.name()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Sailor { process, journal }
    }

    /// Kills one process, replaces it, and takes over what it held.
    fn strike(&mut self) {
        let at = self.random.below(PROCESSES);
        let replacement = self.start();
        let mut victim = std::mem::replace(&mut self.crew[at], replacement);
        assert!(victim.process.try_wait().unwrap().is_none(), "{}", why_it_ended(&victim));
        victim.process.kill().unwrap();
        victim.process.wait().unwrap();
        self.tally.kills += 1;
        let entries = Journal::read(&victim.journal);
        for session in held(&entries) {
            if self.random.once_in(3) {
                self.tear(session);
            }
            self.take_over(session, &entries);
        }
    }

    /// Leaves the first part of a batch at the end of a log, if nobody owns it now: the system rarely
    /// lets a kill cut a write short, and then it looks like this.
    fn tear(&mut self, session: &str) {
        let Some(path) = self.log(session).filter(|path| path.exists()) else { return };
        let lock = File::open(path.with_file_name("session.lock")).unwrap();
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        let events = batch("torn", u64::MAX >> 12, &mut self.random);
        let text = packed::pack_batch(&events);
        let bytes = match self.backend {
            Backend::Zstd => pack(&text),
            _ => text.into_bytes(),
        };
        let part = 1 + self.random.below(bytes.len().min(5000) - 1);
        let mut log = OpenOptions::new().append(true).open(&path).unwrap();
        log.write_all(&bytes[..part]).unwrap();
        self.tally.torn += 1;
    }

    fn take_over(&mut self, session: &str, entries: &[Entry]) {
        let length = |sailor: &Sailor| fs::metadata(&sailor.journal).map_or(0, |file| file.len());
        let known: Vec<u64> = self.crew.iter().map(length).collect();
        let start = Instant::now();
        self.journal.note(&Entry::Wants(session.to_owned()));
        let opened = self.runtime.block_on(self.store.open(&id(session), Access::Write, &never()));
        let acknowledged = entries.iter().filter_map(|entry| match entry {
            Entry::Acknowledged(batch) if batch.session == session => Some(batch),
            _ => None,
        });
        let handle = match opened {
            Ok(handle) => handle,
            Err(error) if error.kind() == "not_found" => {
                assert_eq!(acknowledged.count(), 0, "lost: {session} is gone");
                return;
            }
            Err(error) if error.kind() == "already_owned" => {
                // Another was quicker: it has said before that it would ask, and perhaps since
                // that it is done.
                let claimed = self.crew.iter().zip(known).any(|(sailor, known)| {
                    let since = Journal::read_from(&sailor.journal, known);
                    may_hold(&Journal::read(&sailor.journal)).contains(session)
                        || since.contains(&Entry::Gone(session.to_owned()))
                });
                assert!(claimed, "{session} is owned by nobody who is alive");
                self.tally.outrun += 1;
                return;
            }
            Err(error) => panic!("take over {session}: {error}"),
        };
        self.tally.slowest = self.tally.slowest.max(start.elapsed());
        self.tally.takeovers += 1;
        let events = self.runtime.block_on(read(&*handle));
        let stored = storming::verdict::check_whole(session, &events).unwrap();
        for batch in acknowledged {
            assert!(stored.contains(batch), "lost: {batch} was acknowledged to the dead");
        }
        self.append(session, &*handle, events.len() as u64);
        self.runtime.block_on(handle.close()).unwrap();
    }

    fn append(
        &mut self,
        session: &str,
        handle: &dyn turnkeep_store::SessionHandle,
        first: u64,
    ) -> Batch {
        let name = format!("main-{}", self.random.next());
        let events = batch(&name, first, &mut self.random);
        let session = session.to_owned();
        let written = Batch { session, name, first, count: events.len() as u64 };
        self.journal.note(&Entry::Means(written.clone()));
        let next = self.runtime.block_on(handle.append(events, &never())).unwrap();
        assert_eq!(next, Seq(first + written.count));
        self.journal.note(&Entry::Acknowledged(written.clone()));
        written
    }

    /// Kills them all at once, while they hold what they hold.
    fn end(&mut self) {
        for sailor in &mut self.crew {
            assert!(sailor.process.try_wait().unwrap().is_none(), "{}", why_it_ended(sailor));
            sailor.process.kill().unwrap();
        }
        for sailor in &mut self.crew {
            sailor.process.wait().unwrap();
            self.tally.kills += 1;
        }
    }

    /// Opens every session, checks it against what was written down, and appends to it.
    fn inspect(&mut self) -> String {
        let entries = Journal::read_all(&journals(self.folder.path()));
        let mut account = Account::of(entries).unwrap();
        let (mut sessions, mut events, mut untold) = (0, 0, 0);
        for number in 0..SESSIONS {
            let session = format!("s{number}");
            let start = Instant::now();
            let opened =
                self.runtime.block_on(self.store.open(&id(&session), Access::Write, &never()));
            let handle = match opened {
                Ok(handle) => handle,
                Err(error) => {
                    assert_eq!(error.kind(), "not_found", "{session}: {error}");
                    account.check(&session, &[]).unwrap();
                    continue;
                }
            };
            self.tally.slowest = self.tally.slowest.max(start.elapsed());
            let found = self.runtime.block_on(read(&*handle));
            untold += account.check(&session, &found).unwrap();
            // Cuts off what a killed process may have left.
            let last = self.append(&session, &*handle, found.len() as u64);
            self.runtime.block_on(handle.close()).unwrap();
            account.meant.insert(last.clone());
            account.acknowledge(last);
            let count = self.check_bytes(&session);
            let again =
                self.runtime.block_on(self.store.open(&id(&session), Access::Read, &never()));
            let found = self.runtime.block_on(read(&*again.unwrap()));
            account.check(&session, &found).unwrap();
            assert!(count.is_none_or(|count| count == found.len() as u64), "{session}");
            sessions += 1;
            events += found.len();
        }
        let appends: usize = account.acknowledged.values().map(HashSet::len).sum();
        let unfinished = account.meant.len() - appends;
        let Tally { kills, takeovers, outrun, slowest, torn } = &self.tally;
        let counts = format!(
            "{}: {sessions} sessions, {events} events in {appends} acknowledged appends; {kills} kills, \
             {takeovers} takeovers at once (slowest {slowest:?}) and {outrun} lost to a quicker one; \
             {torn} tails torn; \
             {} times already_owned; {unfinished} appends cut short, of which {untold} are there, \
             whole",
            self.backend.name(),
            account.refused
        );
        let counters = [
            ("sessions", sessions),
            ("appends", appends),
            ("kills", *kills),
            ("takeovers", *takeovers),
            ("already_owned", account.refused),
            ("appends cut short", unfinished),
        ];
        let torn = ("torn tails", *torn);
        let torn = Some(torn).filter(|_| self.backend != Backend::Sqlite);
        for (name, count) in counters.into_iter().chain(torn) {
            assert!(count > 0, "no {name}, so nothing was shown. {counts}");
        }
        counts
    }

    /// The file of a session's own, where it has one.
    fn log(&self, session: &str) -> Option<PathBuf> {
        let name = match self.backend {
            Backend::Zstd => "session.jsonl.zstd",
            Backend::None => "session.jsonl",
            Backend::Sqlite => return None,
        };
        let project = self.folder.path().join("sessions").join(PROJECT);
        Some(project.join(session).join(name))
    }

    /// Reads a log as another program would: unpacked by another implementation, seqs counted line
    /// by line. How many events it has; nothing for a database.
    fn check_bytes(&self, session: &str) -> Option<u64> {
        let bytes = fs::read(self.log(session)?).unwrap();
        let text = match self.backend {
            Backend::Zstd => unpack(&bytes),
            _ => String::from_utf8(bytes).unwrap(),
        };
        assert!(text.ends_with('\n'), "{session} ends within a line");
        let mut next = 0;
        for line in text.lines().skip(1) {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            let (seq, count) = match record["data"]["texts"].as_array() {
                Some(texts) => (&record["seq0"], texts.len() as u64),
                None => (&record["seq"], 1),
            };
            assert_eq!(seq.as_u64(), Some(next), "{session}: {line}");
            next += count;
        }
        Some(next)
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        for sailor in &mut self.crew {
            let _ = sailor.process.kill();
            let _ = sailor.process.wait();
        }
    }
}

fn why_it_ended(sailor: &Sailor) -> String {
    let entries = Journal::read(&sailor.journal);
    let failed = entries.iter().rev().find_map(|entry| match entry {
        Entry::Failed(why) => Some(why.as_str()),
        _ => None,
    });
    failed.unwrap_or("a process ended by itself, without a word").to_owned()
}

fn run(backend: Backend) {
    // Eight processes are enough for a machine, also where tests share one.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let seconds = env::var(SECONDS).map_or(9, |seconds| seconds.parse().unwrap());
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut storm = Storm::new(backend, u64::try_from(since.as_nanos() & 0xFFFF_FFFF).unwrap());
    for _ in 0..PROCESSES {
        let sailor = storm.start();
        storm.crew.push(sailor);
    }
    let until = Instant::now() + Duration::from_secs(seconds) / BACKENDS;
    while Instant::now() < until {
        let pause = 1000 + storm.random.below(30_000) as u64;
        sleep(Duration::from_micros(pause));
        storm.strike();
    }
    storm.end();
    println!("{}", storm.inspect());
}

#[test]
fn compressed_logs_survive_a_storm() {
    run(Backend::Zstd);
}

#[test]
fn plain_logs_survive_a_storm() {
    run(Backend::None);
}

#[test]
fn a_database_survives_a_storm() {
    run(Backend::Sqlite);
}

/// What the other processes do. Without being told it is no test at all.
#[tokio::test]
async fn child_process() {
    let Ok(told) = env::var(CHILD) else { return };
    let [backend, folder, name, seed] = told.split('\n').collect::<Vec<_>>()[..] else {
        panic!("{told}")
    };
    let folder = Path::new(folder);
    let store = Backend::named(backend).open(folder);
    let journal = Journal::open(&journals(folder).join(name));
    child::run(&*store, name, journal, Random::new(seed.parse().unwrap())).await;
}
