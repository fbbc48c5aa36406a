//! What the processes of a storm share: the store they fight over, and what they write down.

#![allow(unreachable_pub, reason = "a module of one test program")]

pub mod child;
pub mod journal;
pub mod verdict;

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use turnkeep_log::Event;
use turnkeep_store::{
    SessionStore,
    jsonl::{Compression, JsonlOptions, JsonlStore},
    sqlite::{SqliteOptions, SqliteStore},
};

use crate::{random::Random, support::event_of};

/// How many sessions there are to write to.
pub const SESSIONS: usize = 200;
/// How many of them are wanted more than the others, so that writers meet.
const POPULAR: usize = 12;

/// Where sessions are kept, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Zstd,
    None,
    Sqlite,
}

impl Backend {
    pub fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::None => "none",
            Self::Sqlite => "sqlite",
        }
    }

    pub fn named(name: &str) -> Self {
        [Self::Zstd, Self::None, Self::Sqlite]
            .into_iter()
            .find(|backend| backend.name() == name)
            .unwrap()
    }

    /// The store in this folder, as every process opens it.
    pub fn open(self, folder: &Path) -> Box<dyn SessionStore> {
        let jsonl = |compression| {
            let options =
                JsonlOptions { compression, ..JsonlOptions::new(folder.join("sessions")) };
            Box::new(JsonlStore::open(options).unwrap())
        };
        match self {
            Self::Zstd => jsonl(Compression::Zstd),
            Self::None => jsonl(Compression::None),
            Self::Sqlite => {
                let options = SqliteOptions::new(folder.join("sessions.db"));
                Box::new(SqliteStore::open(options).unwrap())
            }
        }
    }
}

/// Where the processes write down what they did.
pub fn journals(folder: &Path) -> PathBuf {
    folder.join("journals")
}

/// Some session.
pub fn any_session(random: &mut Random) -> String {
    let bound = if random.once_in(3) { POPULAR } else { SESSIONS };
    format!("s{}", random.below(bound))
}

/// A batch that says in every event which batch it is, and how much of it there is.
///
/// Half of them are streamed deltas, which are stored as one record; a few are larger than what the
/// system writes in one go.
pub fn batch(name: &str, first: u64, random: &mut Random) -> Vec<Event> {
    let of = 1 + random.below(8) as u64;
    let deltas = random.coin();
    let large = random.once_in(40);
    (0..of)
        .map(|index| {
            let seq = first + index;
            if deltas {
                let text = format!("{name} {index} {of}");
                let chunk = format!(r#"{{"type":"text-delta","index":0,"text":"{text}"}}"#);
                let data = format!(r#"{{"turn":1,"step":1,"chunk":{chunk}}}"#);
                return event_of("assistant/chunk", seq, &data);
            }
            let mut pad = String::new();
            for _ in 0..if large && index == 0 { 16_000 } else { 1 } {
                write!(pad, "{:x}", random.next()).unwrap();
            }
            let data = format!(r#"{{"todos":[],"batch":"{name} {index} {of}","pad":"{pad}"}}"#);
            event_of("todo/write", seq, &data)
        })
        .collect()
}

/// What an event says of its batch: the name, which event it is, of how many.
pub fn part_of(event: &Event) -> (String, u64, u64) {
    let data: serde_json::Value = serde_json::from_str(event.data().text()).unwrap();
    let text = data["batch"].as_str().or(data["chunk"]["text"].as_str()).unwrap();
    let [name, index, of] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
    (name.to_owned(), index.parse().unwrap(), of.parse().unwrap())
}
