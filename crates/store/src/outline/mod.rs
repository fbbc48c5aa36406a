//! What the events of a log say in short: the part of them that lists show, and where turns are.

mod note;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use turnkeep_log::{Event, Seq};

pub(crate) use self::note::Note;
use crate::seam::SessionHints;

/// How many turns are kept by their boundaries, the newest; those before are only counted.
pub(crate) const MOST_TURNS: usize = 4096;

/// How many open tool calls are kept apart. Nobody runs that many tools at once.
pub(crate) const MOST_CALLS: usize = 1024;

/// The outline of a log, folded from its events in order.
///
/// It can be taken apart and put together again, and then goes on from where it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    /// The seq that comes next, which is the number of events so far.
    pub(crate) next: Seq,
    /// The title, as the JSON string it is written as.
    pub(crate) title: Option<Box<str>>,
    pub(crate) last_prompt_at: Option<i64>,
    pub(crate) last_event_at: Option<i64>,
    /// How many turns have started before those kept.
    pub(crate) older_turns: u64,
    /// The newest turns.
    pub(crate) turns: VecDeque<Turn>,
    pub(crate) calls: Calls,
}

/// Where a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Its `turn/start`.
    pub(crate) start: Seq,
    /// Its `turn/end`.
    pub(crate) end: Option<Seq>,
}

/// The tools that were started in the last turn, and have not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// These, in the order they were started.
    Open(Vec<Call>),
    /// Too many to keep apart.
    Uncounted,
}

impl Default for Calls {
    fn default() -> Self {
        Self::Open(Vec::new())
    }
}

/// A tool that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The id of the call, as the JSON string it is written as.
    pub(crate) id: Box<str>,
    /// Its `tool/call`.
    pub(crate) start: Seq,
}

impl Outline {
    /// Takes in consecutive events that continue the log. Those that it has seen before are passed
    /// over; those that leave a gap are not for this log.
    pub(crate) fn extend(&mut self, events: &[Event]) {
        if events.first().is_none_or(|first| first.seq() > self.next) {
            return;
        }
        let seen = self.next;
        for event in events.iter().filter(|event| event.seq() >= seen) {
            if let Some(note) = Note::of(event) {
                self.add(note);
            }
        }
        if let Some(last) = events.last() {
            self.reach(last.seq().plus(1), last.time());
        }
    }

    /// Goes on to before this event, the last one having happened at this time.
    pub(crate) fn reach(&mut self, next: Seq, last_event_at: i64) {
        if next > self.next {
            self.next = next;
            self.last_event_at = Some(last_event_at);
        }
    }

    /// Takes in what one event says. [`reach`](Self::reach) is to be called after it.
    pub(crate) fn add(&mut self, note: Note) {
        match note {
            Note::TurnStart(start) => {
                if self.turns.len() >= MOST_TURNS {
                    self.turns.pop_front();
                    self.older_turns += 1;
                }
                self.turns.push_back(Turn { start, end: None });
                self.calls = Calls::default();
            }
            Note::TurnEnd(end) => {
                if let Some(turn) = self.turns.back_mut().filter(|turn| turn.end.is_none()) {
                    turn.end = Some(end);
                }
                self.calls = Calls::default();
            }
            Note::Title(title) => self.title = Some(title),
            Note::Prompt(time) => self.last_prompt_at = Some(time),
            Note::CallStart(call) => self.start(call),
            Note::CallEnd(id) => {
                if let Calls::Open(calls) = &mut self.calls {
                    calls.retain(|call| call.id != id);
                }
            }
        }
    }

    fn start(&mut self, call: Call) {
        let Calls::Open(calls) = &mut self.calls else { return };
        calls.retain(|other| other.id != call.id);
        if calls.len() < MOST_CALLS {
            calls.push(call);
        } else {
            self.calls = Calls::Uncounted;
        }
    }

    /// How many turns have started.
    pub(crate) fn turn_count(&self) -> u64 {
        self.older_turns + self.turns.len() as u64
    }

    /// The `turn/start` of a turn that has not ended.
    pub(crate) fn open_turn(&self) -> Option<Seq> {
        self.turns.back().filter(|turn| turn.end.is_none()).map(|turn| turn.start)
    }

    /// How many tools have not answered.
    pub(crate) fn open_calls(&self) -> Option<u64> {
        match &self.calls {
            Calls::Open(calls) => Some(calls.len() as u64),
            Calls::Uncounted => None,
        }
    }

    /// What a list shows of it.
    pub(crate) fn hints(&self) -> SessionHints {
        SessionHints {
            event_count: self.next.0,
            title: self.title.as_deref().map(note::decoded),
            blank: self.turn_count() == 0,
            last_prompt_at: self.last_prompt_at,
            last_event_at: self.last_event_at,
            turns: self.turn_count(),
            open_turn: self.open_turn(),
            open_calls: self.open_calls(),
        }
    }
}
