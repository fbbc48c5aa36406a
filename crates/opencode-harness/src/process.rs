//! Child processes that cannot outlive the test.
//!
//! A test can end in ways that run no destructor: a runner's time-out, `kill -9`, an abort. The
//! one thing the kernel does in each case is to close the process's pipes, so a pipe is what the
//! children live by. The scripted model ends when its standard input does. OpenCode pays no heed
//! to its input, so a small shell stands between: it waits for the end of the pipe on the
//! server's behalf, and kills it.
//!
//! The tools that a turn runs are put into process groups of their own by OpenCode, where killing
//! the server does not reach them. The shell finds them by a mark in their environment (on Linux;
//! elsewhere they run to their own end).

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// `$0` is the mark, the arguments are the program. Descriptor 3 is the pipe: only the `cat` may
/// keep it, so that the server's own children cannot hold it.
const KEEPER: &str = r#"
exec 3<&0 </dev/null
env "$0" "$@" 3<&- &
server=$!
{ cat <&3 >/dev/null; kill -9 "$server"; } 2>/dev/null &
keeper=$!
wait "$server"
status=$?
kill "$keeper" 2>/dev/null
for tool in $(grep -lszxF "$0" /proc/[0-9]*/environ); do
    tool=${tool#/proc/}
    kill -9 "${tool%/environ}" 2>/dev/null
done
exit "$status"
"#;

/// How long a child may take to go once its pipe is closed.
const PATIENCE: Duration = Duration::from_secs(10);

/// A child process that lives as long as this value does, and no longer.
#[derive(Debug)]
pub(crate) struct Tethered {
    child: Child,
    tether: Option<ChildStdin>,
}

impl Tethered {
    /// Starts `command`, a program that ends when its standard input does. Output goes to `log`.
    pub(crate) fn start(mut command: Command, log: &Path) -> io::Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        command.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output).process_group(0); // a runner's signal to the test's group must not reach the keeper
        let mut child = command.spawn()?;
        let tether = child.stdin.take();
        Ok(Self { child, tether })
    }

    /// Starts `command`, any program, behind the keeper.
    pub(crate) fn start_kept(command: &Command, log: &Path) -> io::Result<Self> {
        Self::start(behind_keeper(command), log)
    }

    /// The child's exit status, once it has ended by itself.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends the child without warning and waits until it and what it started are gone.
    pub(crate) fn end(&mut self) {
        drop(self.tether.take());
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        // Both calls fail only when the child is gone after all.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Tethered {
    fn drop(&mut self) {
        self.end();
    }
}

/// The same program, environment and folder, started by the keeper.
fn behind_keeper(command: &Command) -> Command {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let started = STARTED.fetch_add(1, Ordering::Relaxed);
    let mark = format!("TURNKEEP_TEST_SERVER={}-{started}", std::process::id());

    let mut keeper = Command::new("/bin/sh");
    keeper.args(["-c", KEEPER, &mark]).arg(command.get_program()).args(command.get_args());
    keeper.env_clear();
    for (name, value) in command.get_envs() {
        keeper.env(name, value.unwrap_or(OsStr::new("")));
    }
    if let Some(folder) = command.get_current_dir() {
        keeper.current_dir(folder);
    }
    keeper
}
