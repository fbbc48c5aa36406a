//! What a process writes down, so that it is known when the process is not there any more.
//!
//! Each line is one `write(2)` to a file in append mode: the kernel has it when the call returns, and
//! a process that is killed takes nothing of it along.

use std::{
    collections::HashSet,
    fmt,
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

/// One thing a process did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It is about to ask for a session.
    Wants(String),
    /// It has the session to write.
    Has(String),
    /// It was told that someone else has it.
    Refused(String),
    /// It is about to append.
    Means(Batch),
    /// The append was acknowledged.
    Acknowledged(Batch),
    /// It has given the session back, or has not got it.
    Gone(String),
    /// Something went wrong that must not.
    Failed(String),
}

/// A batch, and where it goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Batch {
    pub session: String,
    pub name: String,
    pub first: u64,
    pub count: u64,
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.session, self.name, self.first, self.count)
    }
}

impl Batch {
    fn parse(text: &str) -> Self {
        let [session, name, first, count] = text.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{text}")
        };
        let (first, count) = (first.parse().unwrap(), count.parse().unwrap());
        Self { session: session.to_owned(), name: name.to_owned(), first, count }
    }
}

pub struct Journal {
    file: File,
}

impl Journal {
    pub fn open(path: &Path) -> Self {
        Self { file: OpenOptions::new().append(true).create(true).open(path).unwrap() }
    }

    pub fn note(&mut self, entry: &Entry) {
        let line = match entry {
            Entry::Wants(session) => format!("wants {session}\n"),
            Entry::Has(session) => format!("has {session}\n"),
            Entry::Refused(session) => format!("refused {session}\n"),
            Entry::Means(batch) => format!("means {batch}\n"),
            Entry::Acknowledged(batch) => format!("acknowledged {batch}\n"),
            Entry::Gone(session) => format!("gone {session}\n"),
            Entry::Failed(why) => format!("failed {}\n", why.replace('\n', " ")),
        };
        assert_eq!(self.file.write(line.as_bytes()).unwrap(), line.len());
    }

    pub fn read(path: &Path) -> Vec<Entry> {
        Self::read_from(path, 0)
    }

    /// What was written after the file had this length.
    pub fn read_from(path: &Path, length: u64) -> Vec<Entry> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let text = text.get(usize::try_from(length).unwrap()..).unwrap_or_default();
        // A line without its end is one that its process did not get to write.
        let lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        lines
            .map(|line| {
                let (what, rest) = line.split_once(' ').unwrap();
                let session = rest.to_owned();
                match what {
                    "wants" => Entry::Wants(session),
                    "has" => Entry::Has(session),
                    "refused" => Entry::Refused(session),
                    "means" => Entry::Means(Batch::parse(rest)),
                    "acknowledged" => Entry::Acknowledged(Batch::parse(rest)),
                    "gone" => Entry::Gone(session),
                    "failed" => Entry::Failed(session),
                    other => panic!("{other}"),
                }
            })
            .collect()
    }

    /// All journals of a folder.
    pub fn read_all(folder: &Path) -> Vec<Entry> {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().flat_map(|path| Self::read(path)).collect()
    }
}

/// The sessions that a process may have, by its own account. It writes down that it wants one before
/// it asks, and that it is gone after it is.
pub fn may_hold(entries: &[Entry]) -> HashSet<&str> {
    let mut held = HashSet::new();
    for entry in entries {
        match entry {
            Entry::Wants(session) => drop(held.insert(session.as_str())),
            Entry::Gone(session) => drop(held.remove(session.as_str())),
            _ => {}
        }
    }
    held
}

/// The sessions that a process had for certain.
pub fn held(entries: &[Entry]) -> HashSet<&str> {
    let has = |entry: &Entry, name: &str| matches!(entry, Entry::Has(session) if session == name);
    let had = |name: &str| entries.iter().any(|entry| has(entry, name));
    may_hold(entries).into_iter().filter(|name| had(name)).collect()
}
