//! Sessions that change while they are read.

use proptest::{prelude::*, sample::Index};

use super::{
    Log, Model,
    drafts::{Draft, kind, truthful},
    id_of, record,
};
use crate::page::{Answer, PageRequest, Purpose, SourceKind};

/// What happens to a session after an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// A newest row comes.
    Grow,
    /// A row comes somewhere among the others, as with a clock that was set back.
    Insert(Index),
    /// A row goes, whichever it is.
    Lose(Index),
    Nothing,
}

pub(crate) fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        2 => Just(Change::Grow),
        1 => any::<Index>().prop_map(Change::Insert),
        4 => any::<Index>().prop_map(Change::Lose),
        1 => Just(Change::Nothing),
    ];
    prop::collection::vec(change, 1..40)
}

/// A session of either source. Its changes happen one after each answer, and again from the first
/// on.
pub(crate) struct Shifting {
    source: Source,
    changes: Vec<Change>,
    happened: usize,
    /// What it held at first, old to new.
    pub(crate) at_first: Vec<String>,
    gone: Vec<String>,
}

enum Source {
    Server(Model),
    Log(Log),
}

impl Shifting {
    pub(crate) fn new(drafts: &[Draft], source: SourceKind, changes: Vec<Change>) -> Self {
        let (source, at_first) = match source {
            SourceKind::OpenCode => {
                let model = truthful(drafts);
                let ids = model.ids();
                (Source::Server(model), ids)
            }
            SourceKind::Log => {
                let records =
                    drafts.iter().enumerate().map(|(index, (which, gap, rank, claim))| {
                        let id = format!("{}{rank:03}_{index}", kind(*which));
                        (index as u64 * 4 + gap, record(&id, *claim))
                    });
                let log = Log(records.collect());
                let ids = log.0.iter().map(|(_, record)| id_of(record)).collect();
                (Source::Log(log), ids)
            }
        };
        Self { source, changes, happened: 0, at_first, gone: Vec::new() }
    }

    pub(crate) fn answer(&mut self, request: &PageRequest) -> Answer {
        let answer = match &self.source {
            Source::Server(model) => model.answer(request),
            Source::Log(log) => log.answer(request),
        };
        // A look on the side is not what tears a read apart.
        if request.purpose != Purpose::Probe {
            self.change();
        }
        answer
    }

    fn change(&mut self) {
        let change = self.changes[self.happened % self.changes.len()];
        self.happened += 1;
        let number = 1000 + self.happened as u64;
        match (&mut self.source, change) {
            (Source::Server(model), Change::Grow) => {
                model.add(&format!("u{number}"), number, number);
            }
            (Source::Log(log), Change::Grow) => {
                log.0.push((number, record(&format!("u{number}"), None)));
            }
            (Source::Server(model), Change::Insert(at)) => {
                let time = 10 + at.index(80) as u64;
                let id = if number.is_multiple_of(2) { "a" } else { "u" };
                model.add(&format!("{id}{number}"), time, time);
            }
            (Source::Server(model), Change::Lose(at)) if !model.messages.is_empty() => {
                let lost = model.messages.remove(at.index(model.messages.len()));
                self.gone.push(lost.place.id);
            }
            (Source::Log(log), Change::Lose(at)) if !log.0.is_empty() => {
                let (_, lost) = log.0.remove(at.index(log.0.len()));
                self.gone.push(id_of(&lost));
            }
            // Nothing comes between the events of a log, and nothing goes from an empty session.
            (Source::Log(_), Change::Insert(_)) | (_, Change::Lose(_) | Change::Nothing) => {}
        }
    }

    pub(crate) fn is_gone(&self, id: &str) -> bool {
        self.gone.iter().any(|gone| gone == id)
    }

    /// Checks what came of reading the session from its newest row down to `from`, or to the oldest:
    /// what was there throughout is there, once and in order, and nothing came twice.
    pub(crate) fn check(&self, read: &[String], from: Option<&str>) {
        let mut once: Vec<_> = read.iter().collect();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), read.len(), "nothing twice: {read:?}");
        let start = from.and_then(|from| self.at_first.iter().position(|id| id == from));
        let expected: Vec<_> =
            self.at_first[start.unwrap_or(0)..].iter().filter(|id| !self.is_gone(id)).collect();
        let found: Vec<_> =
            read.iter().filter(|id| self.at_first.contains(id) && !self.is_gone(id)).collect();
        assert_eq!(found, expected, "all that stayed, in order");
    }
}
