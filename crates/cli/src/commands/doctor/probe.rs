//! What the file system does, tried out in a directory that is removed again.

use std::{
    fs, io,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use tempfile::TempDir;
use turnkeep_store::jsonl::fs::{Fs as _, OpenMode, OsFs};

use super::report::Finding;

/// What the directory is called; no reader takes it for one of sessions.
pub(super) const PREFIX: &str = ".turnkeep-probe-";

/// How many syncs are timed.
const SYNCS: usize = 9;

/// No disk is as fast as this; what is, keeps nothing.
const SUSPICIOUS: Duration = Duration::from_micros(8);

/// How far the file system's clock may be off.
const SKEW: Duration = Duration::from_secs(5);

/// Tries out what the store needs, in a directory that is there.
pub(super) fn run(dir: &Path) -> Vec<Finding> {
    let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(dir);
    let probe = match made {
        Ok(probe) => probe,
        Err(error) => {
            let message = format!("nothing can be written to it: {error}");
            let advice = "sessions can be read and not written; see its permissions and its mount";
            return vec![Finding::todo("writing", message, advice)];
        }
    };
    let findings = vec![
        links(probe.path()).unwrap_or_else(|error| failed("links", &error)),
        locks(probe.path()).unwrap_or_else(|error| failed("locks", &error)),
        syncs(probe.path()).unwrap_or_else(|error| failed("syncs", &error)),
        times(probe.path()).unwrap_or_else(|error| failed("times", &error)),
    ];
    remove(probe, findings)
}

fn remove(probe: TempDir, mut findings: Vec<Finding>) -> Vec<Finding> {
    let path = probe.path().display().to_string();
    if let Err(error) = probe.close() {
        let message = format!("the directory for this test could not be removed: {error}");
        findings.push(Finding::todo("writing", message, format!("remove {path}")));
    }
    findings
}

fn failed(check: &'static str, error: &io::Error) -> Finding {
    let message = format!("it could not be tried out: {error}");
    Finding::todo(check, message, "see its permissions, its mount, and what the system log says")
}

/// How a log gets its name, so that it appears whole and in place of nothing.
fn links(dir: &Path) -> io::Result<Finding> {
    let [first, second, third] = ["first", "second", "third"].map(|name| dir.join(name));
    drop(OsFs.open(&first, OpenMode::CreateNew)?);
    if OsFs.link(&first, &second).is_ok() {
        return Ok(Finding::ok("links", "hard links work"));
    }
    if OsFs.rename_new(&first, &third).is_ok() {
        let message = "hard links do not work; logs are renamed into place instead";
        return Ok(Finding::note("links", message, "that is as safe"));
    }
    let message =
        "neither hard links nor renames without replacing work; logs are written in place";
    Ok(Finding::note("links", message, "a crash may leave an unfinished log; use a local disk"))
}

/// Whether a lock keeps a second writer out.
fn locks(dir: &Path) -> io::Result<Finding> {
    let path = dir.join("lock");
    let first = OsFs.open(&path, OpenMode::Lock)?;
    let second = OsFs.open(&path, OpenMode::Lock)?;
    if first.try_lock()? && !second.try_lock()? {
        return Ok(Finding::ok("locks", "flock(2) keeps a second writer out"));
    }
    let message = "flock(2) does not keep a second writer out";
    Ok(Finding::todo("locks", message, "see to it that one program writes, or use a local disk"))
}

/// Whether syncing works, and how long it takes.
fn syncs(dir: &Path) -> io::Result<Finding> {
    let file = OsFs.open(&dir.join("synced"), OpenMode::CreateNew)?;
    let mut took = Vec::new();
    for _ in 0..SYNCS {
        file.append(&[b'x'; 512])?;
        let started = Instant::now();
        file.sync_data()?;
        took.push(started.elapsed());
    }
    file.sync_all()?;
    OsFs.sync_dir(dir)?;
    took.sort_unstable();
    Ok(sync_time(took.get(SYNCS / 2).copied().unwrap_or_default()))
}

/// What it means that a sync takes this long.
pub(super) fn sync_time(median: Duration) -> Finding {
    let micros = median.as_micros();
    if median < SUSPICIOUS {
        let message = format!("a sync takes {micros} µs, which is no time to reach a disk");
        let advice = "what is acknowledged may not survive a power cut: see whether it is in memory, \
                      or something switches syncing off";
        return Finding::note("syncs", message, advice);
    }
    Finding::ok("syncs", format!("files and directories can be synced; a sync takes {micros} µs"))
}

/// Whether the file system has the time that this machine has.
fn times(dir: &Path) -> io::Result<Finding> {
    let path = dir.join("time");
    fs::write(&path, "now")?;
    let written = fs::metadata(&path)?.modified()?;
    let now = SystemTime::now();
    let off = now.duration_since(written).unwrap_or_else(|error| error.duration());
    if off <= SKEW {
        return Ok(Finding::ok("times", "files get this machine's time"));
    }
    let message = format!("files get a time that is {} s off", off.as_secs());
    Ok(Finding::todo("times", message, "set the clocks of this machine and of the file server"))
}
