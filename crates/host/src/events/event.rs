//! One event, and each of its forms once.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use turnkeep_log::Text;

use super::{
    client::Start,
    frames::{self, Channel, ResetReason},
    id::EventId,
};

/// What an event takes besides its texts, roughly.
const OVERHEAD: usize = 512;

/// What an event takes of a client's allowance besides its payload, roughly: the id, the directory.
pub(super) const FRAME_OVERHEAD: usize = 128;

/// The form that one kind of client gets events in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) wire: Wire,
    pub(crate) channel: Channel,
    pub(crate) reasoning: bool,
}

/// How events travel to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// As blocks of an SSE stream.
    Sse,
    /// As messages of a WebSocket, which name the directory as the client did, if it did.
    Socket(Option<Arc<str>>),
}

/// An event in its place.
#[derive(Debug)]
pub(crate) struct Event {
    /// Its place in the line of all events since the process began.
    pub(super) place: u64,
    pub(crate) id: EventId,
    /// Set when this is no event of a source, but says that some were missed.
    pub(crate) reset: Option<ResetReason>,
    pub(super) is_sync: bool,
    pub(super) directory: Directory,
    pub(super) project: Option<String>,
    pub(super) payload: Text,
    pub(super) without_reasoning: WithoutReasoning,
    pub(super) encoded: Encoded,
}

/// The directory of an event.
#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    /// As its source spells it.
    pub(super) name: Option<String>,
    /// With symbolic links resolved, which is what is compared.
    pub(super) real: Option<Arc<str>>,
}

/// An event as clients get it that do not want reasoning.
#[derive(Clone, Debug)]
pub(super) enum WithoutReasoning {
    Same,
    Changed(Text),
    Nothing,
}

/// The forms of an event, made when they are first needed.
#[derive(Debug)]
pub(super) struct Encoded {
    blocks: [OnceLock<Bytes>; 4],
    messages: [OnceLock<Bytes>; 2],
    /// Those that name another directory than the event's own.
    named: Mutex<Vec<(Arc<str>, bool, Bytes)>>,
    held: Held,
}

/// How many bytes an event holds on to, counted in with those of all others.
#[derive(Debug)]
pub(super) struct Held {
    own: AtomicUsize,
    all: Arc<AtomicUsize>,
}

impl Held {
    pub(super) fn new(all: Arc<AtomicUsize>) -> Self {
        let held = Self { own: AtomicUsize::new(0), all };
        held.add(OVERHEAD);
        held
    }

    fn add(&self, bytes: usize) {
        self.own.fetch_add(bytes, Ordering::Relaxed);
        self.all.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(*self.own.get_mut(), Ordering::Relaxed);
    }
}

impl Encoded {
    /// None yet, of an event of these texts.
    pub(super) fn new(payload: &Text, without: &WithoutReasoning, held: Held) -> Self {
        let changed = match without {
            WithoutReasoning::Changed(text) => text.len(),
            WithoutReasoning::Same | WithoutReasoning::Nothing => 0,
        };
        held.add(payload.len() + changed);
        Self {
            blocks: Default::default(),
            messages: Default::default(),
            named: Mutex::default(),
            held,
        }
    }
}

impl Event {
    /// What a client is sent of the event; `None` when that is nothing.
    pub(crate) fn encoded(&self, form: &Form) -> Option<Bytes> {
        let (payload, is_other) = self.payload(form.reasoning)?;
        let directory = self.directory.name.as_deref();
        let (id, project) = (Some(self.id), self.project.as_deref());
        Some(match &form.wire {
            Wire::Sse => {
                let at = match form.channel {
                    Channel::Global => usize::from(is_other),
                    Channel::Directory => 2 + usize::from(is_other),
                };
                self.once(self.encoded.blocks.get(at), || {
                    frames::block(form.channel, id, directory, project, payload)
                })
            }
            Wire::Socket(Some(name)) if Some(&**name) != directory => {
                let named = self.encoded.named.lock();
                let mut named = named.unwrap_or_else(PoisonError::into_inner);
                let known = named.iter().find(|(it, other, _)| it == name && *other == is_other);
                if let Some((_, _, bytes)) = known {
                    return Some(bytes.clone());
                }
                let bytes = frames::message(id, Some(name), payload);
                self.encoded.held.add(bytes.len());
                named.push((Arc::clone(name), is_other, bytes.clone()));
                bytes
            }
            Wire::Socket(_) => self.once(self.encoded.messages.get(usize::from(is_other)), || {
                frames::message(id, directory, payload)
            }),
        })
    }

    fn once(&self, cell: Option<&OnceLock<Bytes>>, encode: impl FnOnce() -> Bytes) -> Bytes {
        let Some(cell) = cell else { return encode() };
        let encode = || {
            let bytes = encode();
            self.encoded.held.add(bytes.len());
            bytes
        };
        cell.get_or_init(encode).clone()
    }

    /// The payload for a client, and whether it differs from what the source sent.
    fn payload(&self, reasoning: bool) -> Option<(&Text, bool)> {
        match &self.without_reasoning {
            _ if reasoning => Some((&self.payload, false)),
            WithoutReasoning::Same => Some((&self.payload, false)),
            WithoutReasoning::Changed(text) => Some((text, true)),
            WithoutReasoning::Nothing => None,
        }
    }

    /// Whether it came after the client had come.
    pub(crate) fn is_new(&self, start: &Start) -> bool {
        self.place >= start.barrier
    }

    /// What the event takes of a client's allowance, roughly; nothing when it is not sent.
    pub(super) fn cost(&self, reasoning: bool) -> u64 {
        let payload = self.payload(reasoning);
        payload.map_or(0, |(text, _)| (text.len() + FRAME_OVERHEAD) as u64)
    }
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
