//! The directory that the sessions are in.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, absolute},
    time::{Duration, SystemTime},
};

use super::report::Finding;
use crate::{commands::ls::human_size, config::Settings};

/// Permission bits that let others in.
const OTHERS: u32 = 0o077;

/// Permission bits that let others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The sticky bit: a directory such as `/tmp`, which others must go on writing to.
const SHARED: u32 = 0o1000;

/// Below this much room a store is about to stop.
const TOO_LITTLE: u64 = 100_000_000;

/// Below this much it is worth a word.
const LITTLE: u64 = 1_000_000_000;

/// The time in seconds since the epoch that no machine with a set clock is before: January 2025.
const EARLIEST: u64 = 1_735_689_600;

/// The root of a store of logs.
pub(super) fn directory(root: &Path, settings: &Settings) -> Finding {
    let shown = shown(root);
    let metadata = match fs::metadata(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let encoding = settings.compression.as_deref().unwrap_or("zstd");
            let message = format!("{shown}, a directory of logs ({encoding}); it does not exist");
            return Finding::note("store", message, "it is made with the first session");
        }
        Err(error) => {
            let message = format!("{shown} cannot be looked at: {error}");
            return Finding::todo("store", message, "see who may get at the directories above it");
        }
        Ok(metadata) if !metadata.is_dir() => {
            let message = format!("{shown} is not a directory");
            let advice = "name a directory for the sessions, or `sqlite:FILE` for a database";
            return Finding::todo("store", message, advice);
        }
        Ok(metadata) => metadata,
    };
    if !is_ours(root) {
        let message = format!("{shown} holds other things, and no sessions");
        return Finding::todo("store", message, "name a directory of sessions, or an empty one");
    }
    owned_alone(&metadata, root, &format!("{shown}, a directory of logs"))
}

/// How many directories are looked into for a session, at each level.
const LOOKED_INTO: usize = 256;

/// Whether a directory holds sessions, or nothing at all. Of any other place, the permissions are
/// nothing that we have a say in. One that cannot be read may hold some.
pub(super) fn is_ours(root: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(root) else { return true };
    let mut below = fs::read_dir(root).into_iter().flatten().flatten().take(LOOKED_INTO);
    entries.next().is_none() || below.any(|entry| is_project(&entry.path()))
}

/// Whether this is where sessions of one directory are, or the trash.
fn is_project(dir: &Path) -> bool {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    if (name.starts_with("--") && name.ends_with("--")) || name.starts_with(".turnkeep-") {
        return true;
    }
    let sessions = fs::read_dir(dir).into_iter().flatten().flatten().take(LOOKED_INTO);
    let mut logs = sessions.map(|session| session.path()).filter(|session| session.is_dir());
    logs.any(|session| {
        let mut names = fs::read_dir(session).into_iter().flatten().flatten();
        names.any(|file| file.file_name().to_string_lossy().starts_with("session.jsonl"))
    })
}

/// What is wrong with the directory of a database: whoever may write to it can put another file in
/// place of the database, so that the store refuses it.
fn shared_directory(file: &Path) -> Option<Finding> {
    let file = absolute(file).ok()?;
    let dir = file.parent()?;
    let mode = fs::metadata(dir).ok()?.mode() & 0o7777;
    if mode & WRITABLE_BY_OTHERS == 0 {
        return None;
    }
    let place = dir.display();
    let message = format!(
        "{}, a SQLite database, would be in a directory that others may write to (mode {mode:04o})",
        file.display()
    );
    Some(if mode & SHARED != 0 {
        let advice = "keep the database in a directory of your own";
        Finding::todo("store", message, advice)
    } else {
        let advice = format!("run `chmod go-w {place}`, or keep it in a directory of your own");
        Finding::todo("store", message, advice)
    })
}

/// The file of a database.
pub(super) fn database(file: &Path) -> Finding {
    if let Some(finding) = shared_directory(file) {
        return finding;
    }
    let shown = shown(file);
    match fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = format!("{shown}, a SQLite database; it does not exist");
            Finding::note("store", message, "it is made with the first session")
        }
        Err(error) => {
            let message = format!("{shown} cannot be looked at: {error}");
            Finding::todo("store", message, "see who may get at the directories above it")
        }
        Ok(metadata) => {
            let message = format!("{shown}, a SQLite database of {}", human_size(metadata.len()));
            owned_alone(&metadata, file, &message)
        }
    }
}

/// What is found, unless others may get at it.
fn owned_alone(metadata: &fs::Metadata, path: &Path, message: &str) -> Finding {
    let path = path.display();
    let (owner, me) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner != me {
        let message = format!("{message}; it belongs to user {owner}, and this is user {me}");
        return Finding::todo(
            "store",
            message,
            format!("run this as its owner, or `chown -R {me} {path}`"),
        );
    }
    let mode = metadata.mode() & 0o7777;
    if mode & OTHERS != 0 {
        let message = format!("{message}; others may get at it (mode {mode:04o})");
        return Finding::todo("store", message, format!("run `chmod go-rwx {path}`"));
    }
    Finding::ok("store", format!("{message}, for its owner alone"))
}

/// The file system below a directory, or below the nearest one above it that is there.
pub(super) fn file_system(dir: &Path) -> Vec<Finding> {
    let dir = absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let Some(dir) = dir.ancestors().find(|dir| dir.exists()) else { return Vec::new() };
    let mut findings = Vec::from_iter(kind(dir));
    match rustix::fs::statvfs(dir) {
        Err(errno) => {
            let message = format!("the free space cannot be told: {}", io::Error::from(errno));
            findings.push(Finding::note("space", message, "look at `df`"));
        }
        Ok(found) => {
            let room = Room {
                bytes: found.f_bavail.saturating_mul(found.f_frsize),
                files: (found.f_files > 0).then_some(found.f_favail),
            };
            findings.push(room.finding());
        }
    }
    findings
}

/// What is left of a file system.
pub(super) struct Room {
    pub(super) bytes: u64,
    /// How many files it can still hold, where that is limited.
    pub(super) files: Option<u64>,
}

impl Room {
    pub(super) fn finding(&self) -> Finding {
        let free = format!("{} are free", human_size(self.bytes));
        let advice = "make room: appends fail on a full disk, and lose nothing; \
                      `turnkeep trash --empty` frees what was deleted";
        if self.files == Some(0) {
            return Finding::todo("space", format!("{free}, but no file can be made"), advice);
        }
        match self.bytes {
            ..TOO_LITTLE => Finding::todo("space", free, advice),
            TOO_LITTLE..LITTLE => Finding::note("space", free, advice),
            _ => Finding::ok("space", free),
        }
    }
}

#[cfg(target_os = "linux")]
fn kind(dir: &Path) -> Option<Finding> {
    let found = rustix::fs::statfs(dir).ok()?;
    // The numbers of statfs(2), which has them as integers of some width and sign.
    Some(file_system_kind(u64::try_from(found.f_type).unwrap_or_default() & 0xffff_ffff))
}

#[cfg(not(target_os = "linux"))]
fn kind(_: &Path) -> Option<Finding> {
    None
}

/// What it means to keep sessions on a file system of this kind.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "it has names there"))]
pub(super) fn file_system_kind(magic: u64) -> Finding {
    const NETWORK: &str = "sessions are kept from two writers by flock(2), which reaches other \
                           machines only where the server and the mount take part: write from one \
                           machine, or use a local disk";
    const FLEETING: &str = "what is stored there is gone with the next start; use a directory that \
                            stays";
    let (name, advice) = match magic {
        0xef53 => ("ext2, ext3 or ext4", None),
        0x5846_5342 => ("xfs", None),
        0x9123_683e => ("btrfs", None),
        0x2fc1_2fc1 => ("zfs", None),
        0xf2f5_2010 => ("f2fs", None),
        0xca45_1a4e => ("bcachefs", None),
        0x794c_7630 => (
            "overlay",
            Some("what a container stores there is gone with the container; use a volume"),
        ),
        0x0102_1994 => ("tmpfs", Some(FLEETING)),
        0x8584_58f6 => ("ramfs", Some(FLEETING)),
        0x6969 => ("NFS", Some(NETWORK)),
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => ("SMB", Some(NETWORK)),
        0x0102_1997 => ("9p", Some(NETWORK)),
        0x00c3_6400 => ("Ceph", Some(NETWORK)),
        0x6573_5546 => (
            "FUSE",
            Some(
                "whether it keeps what it has synced is up to the program behind it; see what `links`, `locks` and `syncs` say",
            ),
        ),
        0x4d44 => ("FAT", Some("it has no journal and no permissions; use another one")),
        0x2011_bab0 => ("exFAT", Some("it has no journal and no permissions; use another one")),
        _ => ("of a kind that is not known here", None),
    };
    match advice {
        None => Finding::ok("disk", format!("the file system is {name}")),
        Some(advice) => Finding::note("disk", format!("the file system is {name}"), advice),
    }
}

/// Whether the clock can be right.
pub(super) fn clock() -> Finding {
    clock_at(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

pub(super) fn clock_at(since_epoch: Duration) -> Finding {
    if since_epoch.as_secs() < EARLIEST {
        let message = "the clock is years behind; sessions would be listed in the wrong order";
        return Finding::todo("clock", message, "set it, or let it be set over the network");
    }
    Finding::ok("clock", "the clock is set")
}

fn shown(path: &Path) -> String {
    absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
