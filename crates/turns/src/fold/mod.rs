//! From the events of a session log to the records of its transcript.
//!
//! Events go in, in order; records in the shape of OpenCode's message list come out at any time.

mod record;
mod render;
mod user;

use std::collections::HashMap;

use turnkeep_log::{Event, Seq, SessionId, Text, json::JsonText};

use self::{
    record::{Around, Body, Record},
    render::{cut, spell, string},
    user::User,
};

/// The transcript of one session, folded from its log as far as it has been pushed.
///
/// Pushing costs what reading the event's payload costs, once; records are rendered only when they
/// are asked for.
pub struct Fold {
    /// The inside of the literal that spells the session's id.
    session: String,
    next: Seq,
    /// In the order of their first events.
    records: Vec<Record>,
    shown: usize,
    /// Records by id.
    ids: HashMap<String, usize>,
    title: Option<String>,
    last_prompt_at: Option<i64>,
    blank: bool,
}

/// One page of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldPage {
    /// The records, oldest first, each `{info, parts}` with the seq of its first event.
    pub rows: Vec<(Seq, JsonText)>,
    /// Whether there are older records than these.
    pub more: bool,
}

impl Fold {
    /// The transcript of a log of which nothing has been read yet.
    #[must_use]
    pub fn new(session: &SessionId) -> Self {
        Self {
            session: spell(session.as_str()),
            next: Seq(0),
            records: Vec::new(),
            shown: 0,
            ids: HashMap::new(),
            title: None,
            last_prompt_at: None,
            blank: true,
        }
    }

    /// Takes the next event. One that has been taken already is passed over, so the end of a read
    /// and the start of a live stream may overlap.
    pub fn push(&mut self, event: &Event) {
        if event.seq() < self.next {
            return;
        }
        self.next = event.seq().plus(1);
        match event.event_type() {
            "user/message" => self.user_message(event),
            "session/title" => {
                if let Some(title) = string(event.data(), "title") {
                    self.title = Some(title.decode_lossy().into_owned());
                }
            }
            "turn/start" => self.blank = false,
            _ => {}
        }
    }

    /// The event it wants next.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.next
    }

    /// How many records there are so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shown
    }

    /// Whether there is no record yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shown == 0
    }

    /// The session's title, when it has one; U+FFFD stands for a lone surrogate.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// When a person last wrote a message, in milliseconds since the epoch.
    #[must_use]
    pub fn last_prompt_at(&self) -> Option<i64> {
        self.last_prompt_at
    }

    /// Whether no turn has started yet.
    #[must_use]
    pub fn blank(&self) -> bool {
        self.blank
    }

    /// The newest `limit` records whose first event lies before `before`; all of them may be asked
    /// for without one.
    #[must_use]
    pub fn page(&self, before: Option<Seq>, limit: usize) -> FoldPage {
        let end = before.map_or(self.records.len(), |before| {
            self.records.partition_point(|record| record.seq < before)
        });
        let older = self.records.get(..end).unwrap_or_default();
        let mut newest = older.iter().rev().filter(|record| record.shown);
        let mut rows: Vec<(Seq, JsonText)> = newest
            .by_ref()
            .take(limit)
            .filter_map(|record| Some((record.seq, record.render(&self.around())?)))
            .collect();
        rows.reverse();
        FoldPage { rows, more: newest.next().is_some() }
    }

    /// The record with this id.
    #[must_use]
    pub fn record(&self, id: &str) -> Option<JsonText> {
        let record = self.records.get(*self.ids.get(id)?)?;
        record.shown.then(|| record.render(&self.around())).flatten()
    }

    fn around(&self) -> Around<'_> {
        Around { session: &self.session }
    }

    /// Adds a record that begins with this event.
    ///
    /// `id` is the inside of the literal, `key` the string it spells. Ids are unique in a
    /// transcript: where a log repeats one, the later record's has its seq behind it.
    fn add(&mut self, event: &Event, id: Text, key: String, shown: bool, body: Body) -> usize {
        let (mut id, mut key) = (id, key);
        while self.ids.contains_key(&key) {
            id = Text::from(format!("{id}:{}", event.seq()));
            key = format!("{key}:{}", event.seq());
        }
        let at = self.records.len();
        self.ids.insert(key, at);
        self.records.push(Record { seq: event.seq(), id, created: event.time(), shown, body });
        self.shown += usize::from(shown);
        at
    }

    fn user_message(&mut self, event: &Event) {
        let user = User::new(event);
        if user.authored() {
            self.last_prompt_at = Some(event.time());
        }
        let (id, key) = match string(event.data(), "id").filter(|id| !id.is_empty()) {
            Some(id) => (cut(event, id.raw()), id.decode_lossy().into_owned()),
            None => (Text::from(format!("user:{}", event.seq())), format!("user:{}", event.seq())),
        };
        self.add(event, id, key, true, Body::User(user));
    }
}
