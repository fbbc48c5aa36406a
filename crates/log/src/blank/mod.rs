//! Whether anything has happened in a session, and when somebody last spoke to it: what a list of
//! sessions shows of each.

#[cfg(test)]
mod tests;

use crate::{event::Event, json::Json};

/// What a list of sessions shows of one, folded from its log event by event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blank {
    /// Whether no turn has started yet. Lists hide such sessions.
    pub blank: bool,
    /// The time of the last message that a person sent, in milliseconds since the epoch. The last
    /// by its place in the log: times may go backwards.
    pub last_prompt_at: Option<i64>,
}

impl Default for Blank {
    /// A session without events.
    fn default() -> Self {
        Self { blank: true, last_prompt_at: None }
    }
}

impl Blank {
    /// The fold over a whole log.
    #[must_use]
    pub fn of(events: &[Event]) -> Self {
        let mut state = Self::default();
        for event in events {
            state.push(event);
        }
        state
    }

    /// Takes in the next event of the log.
    pub fn push(&mut self, event: &Event) {
        match event.event_type() {
            "turn/start" => self.blank = false,
            "user/message" if is_from_a_person(event) => self.last_prompt_at = Some(event.time()),
            _ => {}
        }
    }

    /// When the session was last of interest to a person, by which lists sort, newest first: when
    /// it was made, or when somebody last spoke to it, whichever is later.
    #[must_use]
    pub fn updated_at(&self, created_at: u64) -> u64 {
        let prompt = self.last_prompt_at.and_then(|time| u64::try_from(time).ok());
        prompt.map_or(created_at, |time| time.max(created_at))
    }
}

/// Plugins and tools put words in a person's place too; the source of the message tells.
fn is_from_a_person(event: &Event) -> bool {
    let kind = event.data().path(&["source", "kind"]).and_then(Json::as_str);
    kind.is_some_and(|kind| kind == "user")
}
