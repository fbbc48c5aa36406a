//! The text of parts that are still being written.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use turnkeep_log::{
    Text,
    json::{Json, JsonStr, Kind, Walk},
};

use super::{
    envelope::{Envelope, id},
    overlay,
};
use crate::{projection::Projection, row::Row};

/// What an open part takes besides its text and what was said of it: its places in the maps, and
/// its ids.
const PART_BYTES: usize = 512;

/// The open parts of a message by their ids.
pub(crate) type OpenParts = BTreeMap<Arc<str>, OpenPart>;

/// The messages of a session that have open parts.
type OpenMessages = BTreeMap<Arc<str>, OpenParts>;

/// A part that is being written.
#[derive(Clone, Debug)]
pub(crate) struct OpenPart {
    /// When it was opened, counted in parts.
    opened: u64,
    /// The part as it was last told of, but with an empty text.
    pub(super) announced: Arc<str>,
    /// The inside of a string literal, pieces of those that were sent. So a surrogate pair that was
    /// sent in two halves becomes whole, as it does in JavaScript.
    pub(super) text: Arc<String>,
}

impl OpenPart {
    fn bytes(&self) -> usize {
        PART_BYTES + self.announced.len() + self.text.len()
    }
}

/// The text and reasoning parts that are being written, of all sessions, kept up to date by the
/// events of one stream.
///
/// OpenCode stores a part that is being written with an empty text, and the text itself is in
/// `message.part.delta` events only. So whoever reads a page in the middle of an answer has to be
/// given the text from here, and with it the id of the last event that was applied: then the page
/// and all events after that id make up what a client would have that saw every event.
///
/// A part is *open* from the event that tells of it to the one that has its end: a
/// `message.part.updated` with `time.end`, the removal of the part or of its message, or a
/// `message.updated` by which its assistant has finished or failed. A part that comes with its text
/// and without a `time` was never being written, as what a person says never is.
///
/// Whatever tells of a part tells all of it, so a part that has text the first time it is heard of
/// is known as well as one that has been followed from its start. A delta by itself is not: its
/// part was joined midway, and stays as its server lists it. So does a part that had to be
/// forgotten, which the oldest are when all together exceed the bytes allowed.
///
/// `sync` events are passed over. What they say has been said, or is said next, by an event of its
/// own.
///
/// ```
/// use turnkeep_log::Text;
/// use turnkeep_turns::events::LiveParts;
///
/// let mut live = LiveParts::new(1 << 20);
/// for event in [
///     r#"{"type":"message.part.updated","properties":{"sessionID":"ses_1","part":{"id":"prt_1",
///         "sessionID":"ses_1","messageID":"msg_1","type":"text","text":"","time":{"start":1}}}}"#,
///     r#"{"type":"message.part.delta","properties":{"sessionID":"ses_1","messageID":"msg_1",
///         "partID":"prt_1","field":"text","delta":"Half a sen"}}"#,
/// ] {
///     live.apply(&Text::from(event));
/// }
/// let record = r#"{"info":{"id":"msg_1"},"parts":[{"id":"prt_1","type":"text","text":""}]}"#;
/// assert_eq!(
///     live.of_session("ses_1").overlay(&Text::from(record)).as_deref(),
///     Some(r#"{"info":{"id":"msg_1"},"parts":[{"id":"prt_1","type":"text","text":"Half a sen"}]}"#)
/// );
/// ```
#[derive(Clone, Debug)]
pub struct LiveParts {
    max_bytes: usize,
    bytes: usize,
    /// Shared with the snapshots that have been taken, and copied when it changes under one.
    sessions: HashMap<Arc<str>, Arc<OpenMessages>>,
    /// Where every open part is, by when it was opened.
    opened: BTreeMap<u64, Place>,
    next: u64,
}

#[derive(Clone, Debug)]
struct Place {
    session: Arc<str>,
    message: Arc<str>,
    part: Arc<str>,
}

impl LiveParts {
    /// Nothing is open yet. The open parts of all sessions together are kept to about `max_bytes`.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, bytes: 0, sessions: HashMap::new(), opened: BTreeMap::new(), next: 0 }
    }

    /// Takes the next event of the stream, given as its JSON text. One that says nothing of open
    /// parts changes nothing.
    pub fn apply(&mut self, payload: &Text) {
        let Some((envelope, _)) = Envelope::parse(payload) else { return };
        let Some(body) = envelope.body() else { return };
        // No `?` in the arms: what has no ids is passed over.
        let _ = match &*envelope.name() {
            "message.part.delta" => self.append(body),
            "message.part.updated" => self.update(body),
            "message.part.removed" => self.remove_part(body),
            "message.removed" => self.remove_message(body),
            "message.updated" => self.finish_message(body),
            "session.deleted" => self.remove_session(body),
            _ => None,
        };
    }

    /// Forgets everything: the stream was interrupted, so that nobody knows what is missing.
    pub fn clear(&mut self) {
        self.sessions.clear();
        self.opened.clear();
        self.bytes = 0;
    }

    /// What is open in a session at this moment. Taking it costs a reference count, and it stays as
    /// it is whatever is applied later.
    #[must_use]
    pub fn of_session(&self, session: &str) -> LiveText {
        LiveText { messages: self.sessions.get(session).cloned() }
    }

    /// How many parts are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.opened.len()
    }

    /// Whether no part is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.opened.is_empty()
    }

    /// About how many bytes the open parts take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn append(&mut self, body: Json<'_>) -> Option<()> {
        let (mut session, mut message, mut part, mut field, mut delta) = Default::default();
        for member in body.members()? {
            let slot: &mut Option<Json<'_>> = match &*member.key.decode_lossy() {
                "sessionID" => &mut session,
                "messageID" => &mut message,
                "partID" => &mut part,
                "field" => &mut field,
                "delta" => &mut delta,
                _ => continue,
            };
            *slot = Some(member.value);
        }
        if field?.as_str()? != "text" {
            return None;
        }
        let delta = delta?.as_str()?.raw();
        let (message, part) = (id(message)?, id(part)?);
        let messages = self.sessions.get_mut(&*id(session)?)?;
        // Not before it is certain that the part is there: this may copy what a snapshot holds.
        messages.get(&*message)?.get(&*part)?;
        let open = Arc::make_mut(messages).get_mut(&*message)?.get_mut(&*part)?;
        Arc::make_mut(&mut open.text).push_str(delta);
        self.bytes += delta.len();
        self.make_room();
        Some(())
    }

    fn update(&mut self, body: Json<'_>) -> Option<()> {
        let part = body.get("part")?;
        let named = |key| id(part.get(key)).or_else(|| id(body.get(key)));
        let (session, message, id) =
            (named("sessionID")?, named("messageID")?, id(part.get("id"))?);
        if !is_open(part) {
            return self.close(&session, &message, &id);
        }
        let mut announced = String::new();
        if !overlay::set_text(part, "", &mut announced) {
            announced.push_str(part.text());
        }
        let text = part.get("text").and_then(Json::as_str).map_or("", JsonStr::raw);
        let mut open = OpenPart {
            opened: self.next,
            announced: Arc::from(announced),
            text: Arc::new(text.to_owned()),
        };
        self.bytes += open.bytes();
        let messages = self.sessions.entry(Arc::from(&*session)).or_default();
        let parts = Arc::make_mut(messages).entry(Arc::from(&*message)).or_default();
        if let Some(known) = parts.get_mut(&*id) {
            open.opened = known.opened;
            self.bytes -= known.bytes();
            *known = open;
        } else {
            let part: Arc<str> = Arc::from(&*id);
            let place = Place {
                session: Arc::from(&*session),
                message: Arc::from(&*message),
                part: Arc::clone(&part),
            };
            self.opened.insert(self.next, place);
            self.next += 1;
            parts.insert(part, open);
        }
        self.make_room();
        Some(())
    }

    fn remove_part(&mut self, body: Json<'_>) -> Option<()> {
        let [session, message, part] =
            ["sessionID", "messageID", "partID"].map(|key| id(body.get(key)));
        self.close(&session?, &message?, &part?)
    }

    fn remove_message(&mut self, body: Json<'_>) -> Option<()> {
        let message = id(body.get("messageID")).or_else(|| id(body.path(&["info", "id"])));
        self.close_message(&session_of(body)?, &message?)
    }

    fn finish_message(&mut self, body: Json<'_>) -> Option<()> {
        let info = body.get("info")?;
        let is_set = |keys: &[&str]| info.path(keys).is_some_and(|value| !value.is_null());
        let is_assistant = info.get("role").and_then(Json::as_str)? == "assistant";
        if is_assistant && (is_set(&["time", "completed"]) || is_set(&["error"])) {
            self.close_message(&session_of(body)?, &id(info.get("id"))?)?;
        }
        Some(())
    }

    fn remove_session(&mut self, body: Json<'_>) -> Option<()> {
        let session = id(body.get("sessionID")).or_else(|| id(body.path(&["info", "id"])))?;
        for parts in self.sessions.remove(&*session)?.values() {
            self.forget(parts.values());
        }
        Some(())
    }

    fn close_message(&mut self, session: &str, message: &str) -> Option<()> {
        let messages = self.sessions.get_mut(session)?;
        messages.get(message)?;
        let parts = Arc::make_mut(messages).remove(message)?;
        if messages.is_empty() {
            self.sessions.remove(session);
        }
        self.forget(parts.values());
        Some(())
    }

    fn close(&mut self, session: &str, message: &str, part: &str) -> Option<()> {
        let messages = self.sessions.get_mut(session)?;
        messages.get(message)?.get(part)?;
        let open = Arc::make_mut(messages);
        let parts = open.get_mut(message)?;
        let closed = parts.remove(part)?;
        if parts.is_empty() {
            open.remove(message);
        }
        if messages.is_empty() {
            self.sessions.remove(session);
        }
        self.forget([&closed]);
        Some(())
    }

    /// Takes parts that have left the maps out of the books.
    fn forget<'p>(&mut self, parts: impl IntoIterator<Item = &'p OpenPart>) {
        for part in parts {
            self.bytes -= part.bytes();
            self.opened.remove(&part.opened);
        }
    }

    fn make_room(&mut self) {
        while self.bytes > self.max_bytes {
            let Some((_, oldest)) = self.opened.first_key_value() else { return };
            let Place { session, message, part } = oldest.clone();
            if self.close(&session, &message, &part).is_none() {
                return;
            }
        }
    }
}

/// Whether a part is being written.
fn is_open(part: Json<'_>) -> bool {
    let kind = part.get("type").and_then(Json::as_str);
    if !kind.is_some_and(|kind| kind == "text" || kind == "reasoning") {
        return false;
    }
    match part.get("time").filter(|time| time.kind() == Kind::Object) {
        Some(time) => time.get("end").is_none_or(Json::is_null),
        None => part.get("text").and_then(Json::as_str).is_none_or(JsonStr::is_empty),
    }
}

/// The session that a body names, itself or in its `info`.
fn session_of(body: Json<'_>) -> Option<std::borrow::Cow<'_, str>> {
    id(body.get("sessionID")).or_else(|| id(body.path(&["info", "sessionID"])))
}

/// The open parts of one session at one moment: cheap to clone, and never changing.
///
/// The default one has none, and costs nothing.
#[derive(Clone, Debug, Default)]
pub struct LiveText {
    messages: Option<Arc<OpenMessages>>,
}

impl LiveText {
    /// Whether no part is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_none()
    }

    /// A record of the session, `{info, parts}` as JSON text, as of this moment; `None` when that is
    /// what it is already.
    ///
    /// A part that was open has the text it had, and no `time.end`, even if it has ended since: the
    /// deltas that led to its end are still to come to whoever is sent the record. One that the
    /// record does not have is put in its place in the order of ids: the event that told of it does
    /// not come again, and if it has been removed since, the event that says so does come. All else
    /// stays byte for byte, except that an object in which `parts`, `text`, `time` or `end` stands
    /// twice is brought into the form `JSON.stringify` would give it.
    ///
    /// A record whose parts are no array, and what is no record, is left alone.
    #[must_use]
    pub fn overlay(&self, record: &Text) -> Option<Text> {
        self.messages.as_ref()?;
        let mut out = String::new();
        self.write(Json::parse(record).ok()?, &mut out).then(|| Text::from(out))
    }

    /// As [`overlay`](Self::overlay): appends nothing and says no when there is nothing to change.
    pub(crate) fn write(&self, record: Json<'_>, out: &mut String) -> bool {
        let id = self.messages.as_ref().and_then(|_| Row::read(&mut Walk::over(record)).id_text());
        let parts = id.and_then(|id| self.message(&id));
        parts.is_some_and(|parts| overlay::record(record, parts, out))
    }

    /// Appends the record of this id as of this moment, as a client is to see it.
    pub(crate) fn project(
        &self,
        id: &str,
        record: Json<'_>,
        projection: Projection,
        out: &mut String,
    ) {
        let Some(open) = self.message(id) else { return projection.write(record, out) };
        let mut text = String::new();
        let is_changed = overlay::record(record, open, &mut text);
        let record = if is_changed { Json::parse(&text).unwrap_or(record) } else { record };
        projection.write_open(record, open, out);
    }

    fn message(&self, id: &str) -> Option<&OpenParts> {
        self.messages.as_ref()?.get(id)
    }
}
