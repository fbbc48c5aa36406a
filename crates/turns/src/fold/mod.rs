//! From the events of a session log to the records of its transcript.
//!
//! Events go in, in order; records in the shape of OpenCode's message list, `{info, parts}`, come
//! out at any time. A record has the place of its first event, for good: times go back in real
//! logs, seqs do not. The transcript is what happened, not what the model is told of it, so
//! nothing that a person has seen goes away when the model's view is cut down.
//!
//! | event | what it makes |
//! |---|---|
//! | `user/message` | A user record under the message's own id. Text becomes a `text` part, an image a `file` part without `url`: the log has a reference only, kept as `attachmentId`. Parts of a message that no person wrote are `synthetic`, and there is one at least, so that it does not count as a prompt. |
//! | `assistant/chunk` | An answer, `asst:<seq of the request's first chunk>`, assembled from what has streamed in. It is shown from its first block on. |
//! | `assistant/message` | The same answer, settled: under the same id, its blocks as the message has them. A message without chunks is an answer under its own seq. |
//! | `llm/retry`, another chunk after `finish` | The request so far has come to nothing. What it showed stays, with its error; without any block there is no record of it, unless its turn ends with it. |
//! | `tool/call`, `tool/result` | The state of the part that asked for the call. Arguments that are no JSON object stand under `raw`. A child session is named where the result says which one it is. The first result stands: one that replaces it is for the model. Without a result by the end of its turn the call was cut short. |
//! | `step/end` | Its answers are complete. They show why they finished from then on. |
//! | `turn/end` | How the turn's last answer ended: `finish`, or `error` when it failed or was stopped. A turn that failed before anything streamed in gets an answer without parts that says so. |
//! | `command/run` of a person | A user record `command:<id>` with the line that was typed; the text of its `command/done` is a second, synthetic part. |
//! | `compaction/start` … `end` | A user record `compaction:<id>` with one `compaction` part and the answer `compaction:<id>:summary` with the summary's text, once the compaction has taken effect. The message that tells the model of it is left out. |
//! | `request/header`, `request/context` | Who is asked, which an answer says before its message does. |
//! | `tool-workflow/…` | `metadata.sessionId` on the part of the call that started the workflow, when no other call ran at the time. |
//! | `session/title` | The title. |
//!
//! Every other event makes nothing, and so does one whose payload is not what it should be: a log
//! can be read as far as it makes sense.
//!
//! # What changes while a log grows
//!
//! A record that is shown stays shown and keeps its id and its place; so does a part, except that
//! what streamed in and is not in the message goes. A part's id is that of its message and a number
//! that sorts as text, in the order in which the parts came up. What is in them may change until the turn is
//! over, and in a call's part when a result comes later still. Two kinds of record are shown after
//! their place has been passed: a request that came to nothing, when its turn ends with it, and a
//! compaction, when it takes effect. One goes away: a compaction that failed after its message to
//! the model had been logged.
//!
//! # Starting in the middle
//!
//! `turn/start` lays aside what was open, and still a fold that began at one could differ from one
//! that began at the first event. A tail alone does not tell which ids were used before it (a
//! repeated one gets its seq as a suffix, and a replacing message finds none to replace), nor which
//! unanswered calls there were with the same call id, turn number and step (the oldest takes the
//! result): nothing keeps an accepted log from using turn numbers or ids again. It does tell that
//! it lacks the route of an answer, the beginning of a compaction, or the call of a `tool/call`.
//! To start in the middle an index has to say, for each turn, how far back its names reach, and
//! where its route was set.

mod assistant;
mod attempt;
mod calls;
mod changes;
mod command;
mod compaction;
mod failure;
mod record;
mod render;
mod tool;
mod turn;
mod user;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use turnkeep_log::{Event, Seq, SessionId, Text, json::JsonText};

pub use self::changes::{Change, LiveFold};
use self::{
    assistant::Route,
    calls::{Calls, Shown},
    compaction::Compaction,
    record::{Around, Body, Record},
    render::{cut, replaces, spell, string},
    turn::{Turn, named},
    user::User,
};

/// The transcript of one session, folded from its log as far as it has been pushed.
///
/// Pushing costs what reading the event's payload costs, once; records are rendered only when they
/// are asked for. Payloads are kept as slices of the events' texts.
///
/// ```
/// use turnkeep_log::{Event, SessionId, Text};
/// use turnkeep_turns::Fold;
///
/// let session = SessionId::new("s1").ok_or("empty")?;
/// let mut fold = Fold::new(&session);
/// fold.push(&Event::parse(&Text::from(
///     r#"{"type":"user/message","seq":0,"time":5,"data":{"id":"u1","role":"user",
///     "content":[{"type":"text","text":"hello"}],"source":{"kind":"user"}}}"#,
/// ))?);
///
/// let page = fold.page(None, 10);
/// assert_eq!(page.rows[0].1.json().path(&["info", "id"]).map(|id| id.text()), Some("\"u1\""));
/// assert!(!page.more);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Fold {
    /// The inside of the literal that spells the session's id.
    session: String,
    next: Seq,
    /// In the order of their first events.
    records: Vec<Record>,
    shown: usize,
    /// Which records may have changed since somebody asked what has, each once.
    touched: Vec<usize>,
    /// Records by id.
    ids: HashMap<String, usize>,
    turn: Option<Turn>,
    /// The model request that chunks belong to, or whose message is still to come.
    attempt: Option<usize>,
    calls: Calls,
    /// Commands without their end, by id.
    commands: HashMap<String, usize>,
    compactions: HashMap<String, Compaction>,
    /// Workflows that run, by id, with the call that started them.
    workflows: HashMap<String, Shown>,
    route: Route,
    title: Option<String>,
    first_prompt: Option<String>,
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
            touched: Vec::new(),
            ids: HashMap::new(),
            turn: None,
            attempt: None,
            calls: Calls::default(),
            commands: HashMap::new(),
            compactions: HashMap::new(),
            workflows: HashMap::new(),
            route: Route { provider: Text::from(""), model: Text::from("") },
            title: None,
            first_prompt: None,
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
            "assistant/chunk" => self.chunk(event),
            "assistant/message" => self.assistant_message(event),
            "tool/call" => self.tool_call(event),
            "tool/result" => self.tool_result(event),
            "user/message" => self.user_message(event),
            "turn/start" => self.turn_start(event),
            "turn/end" => self.turn_end(event),
            "step/start" => self.step_start(),
            "step/end" => self.step_end(event),
            "llm/retry" | "llm/retry-started" => self.retry(event),
            "request/header" => self.route(event.data().path(&["header", "config"])),
            "request/context" => self.route(Some(event.data())),
            "command/run" => self.command_run(event),
            "command/done" => self.command_done(event),
            "compaction/start" => self.compaction_start(event),
            "compaction/summary" => self.compaction_summary(event),
            "compaction/end" => self.compaction_end(event),
            "tool-workflow/run-start" => self.workflow_start(event),
            "tool-workflow/agent-start" => self.workflow_agent(event),
            "tool-workflow/run-end" => self.workflow_end(event),
            "session/title" => {
                if let Some(title) = string(event.data(), "title") {
                    self.title = Some(title.decode_lossy().into_owned());
                }
            }
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

    /// What to call the session in a list: its title, else the beginning of the first line that a
    /// person wrote in it.
    #[must_use]
    pub fn headline(&self) -> Option<&str> {
        self.title.as_deref().or(self.first_prompt.as_deref())
    }

    /// When a person last wrote a message, in milliseconds since the epoch.
    #[must_use]
    pub fn last_prompt_at(&self) -> Option<i64> {
        self.last_prompt_at
    }

    /// Whether a turn has started that has not ended.
    #[must_use]
    pub fn in_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether no turn has started yet.
    #[must_use]
    pub fn blank(&self) -> bool {
        self.blank
    }

    /// The newest `limit` records whose first event lies before `before`, which is the position a
    /// cursor holds; without it, the newest of all.
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
        let (seq, created) = (event.seq(), event.time());
        self.records.push(Record { seq, id, created, shown, touched: false, body });
        self.shown += usize::from(shown);
        self.touch(at);
        at
    }

    /// Notes that a record may have changed.
    fn touch(&mut self, at: usize) {
        if let Some(record) = self.records.get_mut(at).filter(|record| !record.touched) {
            record.touched = true;
            self.touched.push(at);
        }
    }

    fn show(&mut self, at: usize) {
        if let Some(record) = self.records.get_mut(at).filter(|record| !record.shown) {
            record.shown = true;
            self.shown += 1;
            self.touch(at);
        }
    }

    fn hide(&mut self, at: usize) {
        if let Some(record) = self.records.get_mut(at).filter(|record| record.shown) {
            record.shown = false;
            self.shown -= 1;
            self.touch(at);
        }
    }

    fn user_message(&mut self, event: &Event) {
        let user = User::new(event);
        let authored = user.authored();
        if authored {
            self.last_prompt_at = Some(event.time());
            if self.first_prompt.is_none() {
                self.first_prompt = user.opening();
            }
        }
        if self.is_checkpoint(event) {
            return;
        }
        let (id, key) = match named(event.data(), "id") {
            Some((id, key)) => (cut(event, id.raw()), key),
            None => (Text::from(format!("user:{}", event.seq())), format!("user:{}", event.seq())),
        };
        // The same message, worded anew for the model: a person keeps what was said.
        if replaces(event) && self.ids.contains_key(&key) {
            return;
        }
        let at = self.add(event, id, key, true, Body::User(user));
        if let (Some(turn), Some(record)) = (&mut self.turn, self.records.get(at)) {
            turn.prompt(&record.id, authored);
        }
    }
}
