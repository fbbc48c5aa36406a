//! What has changed in a transcript since its followers were last told, as OpenCode's events.
//!
//! Who holds the records of a session and applies these events one after the other holds, after
//! each batch, what the fold has. A client needs to know nothing about where they come from:
//!
//! | event | what it does |
//! |---|---|
//! | `message.updated` | replaces the `info` of a message, or adds one at the end |
//! | `message.removed` | takes a message away |
//! | `message.part.updated` | replaces a part, or adds one at the end of its message |
//! | `message.part.delta` | appends to the `text` of a part |
//! | `message.part.removed` | takes a part away |
//!
//! Nothing in them says where a message belongs. So where one comes up in a place that has been
//! passed already, those after it are taken away and follow it again; and parts likewise. From then
//! on whatever is added is taken away first: who has a page that is newer than what was told has it
//! already, in front of what is sent again.
//!
//! A part grows by deltas only once it has been sent whole: a follower that joined in the middle of
//! it may hold any shorter form of it.

mod between;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};

use turnkeep_log::{Event, Seq, Text, json::JsonText};

use self::between::{Described, between};
use super::{Fold, render::Writer};

/// One event for the followers of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The event's type, such as `message.updated`.
    pub kind: &'static str,
    /// Its properties: the text of a JSON object, with the session's id in it.
    pub properties: String,
}

impl Change {
    /// The event as a client is sent it, under this id: `{"id","type","properties"}`. The id must
    /// need no escapes.
    #[must_use]
    pub fn payload(&self, id: &str) -> Text {
        let mut out = Writer::with_capacity(self.properties.len() + 96);
        out.open();
        out.key("id").literal(id);
        out.key("type").literal(self.kind);
        out.key("properties").raw(&self.properties);
        out.close();
        Text::from(out.finish())
    }
}

/// What was sent to the followers, as far as it matters to what is sent next.
#[derive(Default)]
struct Sent {
    /// The parts that they have been sent whole: insides of the literals of their ids.
    whole: HashSet<String>,
    /// Whether something was sent again behind something else.
    reordered: bool,
}

/// A fold with followers: it knows what they have been told.
///
/// What is kept for that is the text of the records of the turn that is going on. A record of an
/// earlier turn that changes after all is told whole.
///
/// ```
/// use turnkeep_log::{Event, SessionId, Text};
/// use turnkeep_turns::fold::{Fold, LiveFold};
///
/// let session = SessionId::new("s1").ok_or("empty")?;
/// let mut live = LiveFold::from(Fold::new(&session));
/// let mut told = Vec::new();
/// live.push(&Event::parse(&Text::from(
///     r#"{"type":"user/message","seq":0,"time":5,"data":{"id":"u1","role":"user",
///     "content":[{"type":"text","text":"hello"}],"source":{"kind":"user"}}}"#,
/// ))?, &mut told);
/// live.tell(&mut told);
///
/// let kinds: Vec<_> = told.iter().map(|change| change.kind).collect();
/// assert_eq!(kinds, ["message.updated", "message.part.updated"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LiveFold {
    fold: Fold,
    /// Which records the followers have, by their place in the fold.
    known: Vec<bool>,
    /// The records that may go on changing, as the followers have them.
    told: BTreeMap<usize, JsonText>,
    sent: Sent,
    /// The time of the newest event.
    now: i64,
}

/// Followers begin with the records that the fold has; [`Fold::new`] for those that have none.
impl From<Fold> for LiveFold {
    fn from(fold: Fold) -> Self {
        let mut live = Self {
            known: fold.records.iter().map(|record| record.shown).collect(),
            fold,
            told: BTreeMap::new(),
            sent: Sent::default(),
            now: 0,
        };
        for at in std::mem::take(&mut live.fold.touched) {
            if let Some(record) = live.fold.records.get_mut(at) {
                record.touched = false;
            }
        }
        // Of all records only an answer that streams can lose a part.
        if let Some(at) = live.fold.attempt.filter(|&at| live.is_known(at))
            && let Some(record) = live.render(at)
        {
            live.told.insert(at, record);
        }
        live
    }
}

impl LiveFold {
    /// Takes the next event, as [`Fold::push`] does.
    ///
    /// The followers are told of the changes by [`tell`](Self::tell). Only when the event can take
    /// back what others before it have brought, or bring something in before that, are those told
    /// first: a follower may hold just that.
    pub fn push(&mut self, event: &Event, out: &mut Vec<Change>) {
        if event.seq() < self.fold.next {
            return;
        }
        let reaches_back = match event.event_type() {
            "assistant/message" | "compaction/end" | "turn/end" | "user/message" => true,
            // The first block of an answer that began before the newest record did.
            "assistant/chunk" => self
                .fold
                .attempt
                .is_some_and(|at| !self.is_shown(at) && at + 1 < self.fold.records.len()),
            _ => false,
        };
        if reaches_back {
            self.tell(out);
        }
        self.now = event.time();
        self.fold.push(event);
    }

    /// Tells the followers what has changed.
    pub fn tell(&mut self, out: &mut Vec<Change>) {
        let mut touched = std::mem::take(&mut self.fold.touched);
        touched.sort_unstable();
        self.known.resize(self.fold.records.len(), false);
        for &at in &touched {
            if let Some(record) = self.fold.records.get_mut(at) {
                record.touched = false;
                if !record.shown && self.is_known(at) {
                    self.forget(at);
                    self.remove(at, out);
                }
            }
        }
        let added = touched.iter().find(|&&at| self.is_shown(at) && !self.is_known(at));
        if let Some(first) = added.copied() {
            let after = first + 1..self.known.len();
            if after.clone().any(|at| self.is_known(at)) {
                self.sent.reordered = true;
                for at in after {
                    self.forget(at);
                    touched.push(at);
                }
            }
            touched.sort_unstable();
            touched.dedup();
        }
        for at in touched {
            if self.is_shown(at)
                && let Some(record) = self.render(at)
            {
                self.tell_of(at, record, out);
            }
        }
        self.let_go();
    }

    /// The fold as it is, told or not.
    #[must_use]
    pub fn fold(&self) -> &Fold {
        &self.fold
    }

    /// The event it wants next.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.fold.next_seq()
    }

    fn tell_of(&mut self, at: usize, record: JsonText, out: &mut Vec<Change>) {
        if self.sent.reordered && !self.is_known(at) {
            self.remove(at, out);
        }
        let old = self.told.get(&at);
        let known = match self.known.get_mut(at) {
            Some(known) => std::mem::replace(known, true),
            None => false,
        };
        let old = match old {
            Some(old) => Described::As(old.json()),
            None if known => Described::Unknown,
            None => Described::Absent,
        };
        between(&self.fold.session, old, record.json(), self.now, &mut self.sent, out);
        self.told.insert(at, record);
    }

    /// Takes a record for one that the followers do not have.
    fn forget(&mut self, at: usize) {
        self.told.remove(&at);
        if let Some(known) = self.known.get_mut(at) {
            *known = false;
        }
    }

    fn remove(&self, at: usize, out: &mut Vec<Change>) {
        let Some(record) = self.fold.records.get(at) else { return };
        let mut properties = Writer::with_capacity(96);
        properties.open();
        properties.key("sessionID").literal(&self.fold.session);
        properties.key("messageID").literal(&record.id);
        properties.close();
        out.push(Change { kind: "message.removed", properties: properties.finish() });
    }

    /// Lets go of the records that are over.
    fn let_go(&mut self) {
        let first = self.fold.turn.as_ref().map(|turn| turn.first);
        let attempt = self.fold.attempt;
        self.told.retain(|&at, _| first.is_some_and(|first| at >= first) || Some(at) == attempt);
        if self.told.is_empty() {
            self.sent.whole.clear();
        }
    }

    fn is_shown(&self, at: usize) -> bool {
        self.fold.records.get(at).is_some_and(|record| record.shown)
    }

    fn is_known(&self, at: usize) -> bool {
        self.known.get(at).copied().unwrap_or_default()
    }

    fn render(&self, at: usize) -> Option<JsonText> {
        self.fold.records.get(at)?.render(&self.fold.around())
    }
}
