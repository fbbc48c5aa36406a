//! Events without reasoning.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use turnkeep_log::{
    Text,
    json::{Json, Kind},
};

use super::envelope::{BODIES, Envelope, SYNC, id, rewrite_members};

/// How many parts a filter knows the types of by default.
pub const DEFAULT_KNOWN_PARTS: usize = 8192;

/// The fields of a part that hold reasoning whatever the part is.
const REASONING_FIELDS: [&str; 3] = ["reasoning", "reasoning_content", "reasoning_details"];

/// What becomes of an event at a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passed {
    /// It passes as it is.
    Kept,
    /// This passes in its place.
    Changed(Text),
    /// It does not pass, and neither does its id.
    Dropped,
}

/// Keeps reasoning from one client that asked to be spared it.
///
/// A delta does not say of what type its part is, so the filter has to have seen the part: feed it
/// every event that the client might get, in order. A delta of a part that it does not know is
/// dropped, since it might be reasoning; the event that ends the part has the whole text.
///
/// It remembers a bounded number of parts and forgets those first that it met first.
///
/// ```
/// use turnkeep_log::Text;
/// use turnkeep_turns::events::{DEFAULT_KNOWN_PARTS, Passed, ReasoningFilter};
///
/// let mut filter = ReasoningFilter::new(DEFAULT_KNOWN_PARTS);
/// let part = r#"{"type":"message.part.updated","properties":{
///     "part":{"id":"prt_1","messageID":"msg_1","type":"reasoning","text":""}}}"#;
/// let delta = r#"{"type":"message.part.delta","properties":{
///     "messageID":"msg_1","partID":"prt_1","field":"text","delta":"Hm."}}"#;
/// assert_eq!(filter.pass(&Text::from(part)), Passed::Dropped);
/// assert_eq!(filter.pass(&Text::from(delta)), Passed::Dropped);
/// ```
#[derive(Clone, Debug)]
pub struct ReasoningFilter {
    max_parts: usize,
    /// By message, then by part.
    known: HashMap<Arc<str>, HashMap<Arc<str>, Known>>,
    /// The message and part of everything known, by the turn in which it was met.
    met: BTreeMap<u64, (Arc<str>, Arc<str>)>,
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    met: u64,
    is_reasoning: bool,
}

/// What an event calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Keep,
    StripParts,
    Drop,
}

impl Default for ReasoningFilter {
    fn default() -> Self {
        Self::new(DEFAULT_KNOWN_PARTS)
    }
}

impl ReasoningFilter {
    /// A filter that knows the types of at most so many parts.
    #[must_use]
    pub fn new(max_parts: usize) -> Self {
        Self { max_parts, known: HashMap::new(), met: BTreeMap::new(), next: 0 }
    }

    /// Passes judgement on the next event, given as its JSON text. The text itself stays as it is:
    /// others are sent it as well.
    ///
    /// The version at the end of a type does not matter, and what is inside a `sync` event is
    /// judged as if it came by itself. What is no event passes.
    pub fn pass(&mut self, payload: &Text) -> Passed {
        let Some((envelope, event)) = Envelope::parse(payload) else { return Passed::Kept };
        let synced = envelope.synced();
        match self.judge(synced.as_ref().unwrap_or(&envelope)) {
            Verdict::Keep => Passed::Kept,
            Verdict::Drop => Passed::Dropped,
            Verdict::StripParts => {
                let mut out = String::new();
                let is_changed = if synced.is_some() {
                    rewrite_members(event, [SYNC], &mut out, strip_event)
                } else {
                    strip_event(event, &mut out)
                };
                if is_changed { Passed::Changed(Text::from(out)) } else { Passed::Kept }
            }
        }
    }

    /// How many parts it knows at the moment.
    #[must_use]
    pub fn known_parts(&self) -> usize {
        self.met.len()
    }

    fn judge(&mut self, event: &Envelope<'_>) -> Verdict {
        let body = event.body();
        match &*event.base_name() {
            "message.part.delta" => {
                if body.is_some_and(|body| self.may_see(body)) {
                    Verdict::Keep
                } else {
                    Verdict::Drop
                }
            }
            "message.part.updated" => self.meet(body),
            "message.part.removed" => {
                if let Some((message, part)) = body.and_then(ids_of) {
                    self.forget(&message, &part);
                }
                Verdict::Keep
            }
            "message.removed" => {
                let own = id(body.and_then(|body| body.get("messageID")));
                if let Some(message) = own.or_else(|| id(body?.path(&["info", "id"]))) {
                    for known in self.known.remove(&*message).into_iter().flatten() {
                        self.met.remove(&known.1.met);
                    }
                }
                Verdict::Keep
            }
            "message.updated" | "message.created" => Verdict::StripParts,
            name if name.starts_with("session.next.reasoning.") => Verdict::Drop,
            _ => Verdict::Keep,
        }
    }

    /// Whether the client may see this delta: it is of a part that is known to be no reasoning.
    fn may_see(&self, body: Json<'_>) -> bool {
        let field = body.get("field").and_then(Json::as_str);
        if field.is_some_and(|field| REASONING_FIELDS.iter().any(|name| field == *name)) {
            return false;
        }
        let known = ids_of(body).and_then(|(message, part)| self.known.get(&*message)?.get(&*part));
        known.is_some_and(|known| !known.is_reasoning)
    }

    /// Learns of what type a part is.
    fn meet(&mut self, body: Option<Json<'_>>) -> Verdict {
        let part = body.and_then(|body| body.get("part"));
        let kind = id(part.and_then(|part| part.get("type")));
        let message = id(part.and_then(|part| part.get("messageID")))
            .or_else(|| id(body.and_then(|body| body.get("messageID"))));
        let is_reasoning = kind.as_deref() == Some("reasoning");
        if let (Some(_), Some(message), Some(part)) =
            (kind, message, id(part.and_then(|part| part.get("id"))))
        {
            self.learn(&message, &part, is_reasoning);
        }
        if is_reasoning { Verdict::Drop } else { Verdict::Keep }
    }

    fn learn(&mut self, message: &str, part: &str, is_reasoning: bool) {
        if let Some(known) = self.known.get_mut(message).and_then(|parts| parts.get_mut(part)) {
            known.is_reasoning = is_reasoning;
            return;
        }
        let (message, part): (Arc<str>, Arc<str>) = (Arc::from(message), Arc::from(part));
        let known = Known { met: self.next, is_reasoning };
        self.next += 1;
        self.met.insert(known.met, (Arc::clone(&message), Arc::clone(&part)));
        self.known.entry(message).or_default().insert(part, known);
        while self.met.len() > self.max_parts {
            let Some((_, (message, part))) = self.met.pop_first() else { break };
            self.forget(&message, &part);
        }
    }

    fn forget(&mut self, message: &str, part: &str) {
        let Some(parts) = self.known.get_mut(message) else { return };
        if let Some(known) = parts.remove(part) {
            self.met.remove(&known.met);
        }
        if parts.is_empty() {
            self.known.remove(message);
        }
    }
}

/// The message and the part that a body names.
fn ids_of(body: Json<'_>) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let (mut message, mut part) = (None, None);
    for member in body.members()? {
        if member.key == "messageID" {
            message = Some(member.value);
        } else if member.key == "partID" {
            part = Some(member.value);
        }
    }
    Some((id(message)?, id(part)?))
}

/// Takes reasoning out of the parts that come with a message.
fn strip_event(event: Json<'_>, out: &mut String) -> bool {
    rewrite_members(event, BODIES, out, |body, out| {
        rewrite_members(body, ["parts"], out, strip_parts)
    })
}

fn strip_parts(parts: Json<'_>, out: &mut String) -> bool {
    let is_reasoning = |part: &Json<'_>| {
        part.get("type").and_then(Json::as_str).is_some_and(|kind| kind == "reasoning")
    };
    if parts.kind() != Kind::Array
        || !parts.elements().into_iter().flatten().any(|part| is_reasoning(&part))
    {
        return false;
    }
    out.push('[');
    for (index, part) in
        parts.elements().into_iter().flatten().filter(|part| !is_reasoning(part)).enumerate()
    {
        if index > 0 {
            out.push(',');
        }
        out.push_str(part.text());
    }
    out.push(']');
    true
}
