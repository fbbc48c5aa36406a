//! Closing a turn that was cut short.
//!
//! A harness that dies leaves its last turn open: tool calls without a result, a step and a turn
//! without an end. No model takes such a conversation, so whoever resumes the session first
//! appends what is missing. What that is follows from the log alone, down to the byte: it has no
//! clock and mints no ids, so that two readers close the same log the same way, and so does the
//! harness whose logs these are.
//!
//! | still open | is closed by |
//! |---|---|
//! | a tool call of the open step, in the order the model asked for them | a `tool/result` that is an error: the outcome is unknown when a `tool/call` says that the tool was started, else the call never began |
//! | a step | a `step/end` |
//! | a turn | a `turn/end` with the reason `interrupted` |
//!
//! Where no turn is open nothing is. Closers take the next seqs and the time of the last event.
//! Reading never calls for them: a log with an open turn is a good log, and only a resume, or a
//! view that asks for a balanced one, adds them.
//!
//! ```
//! use turnkeep_log::{RecordScan, Seq, Text, repair};
//!
//! let log = concat!(
//!     r#"{"type":"turn/start","seq":0,"time":5,"data":{"turn":1}}"#, "\n",
//!     r#"{"type":"step/start","seq":1,"time":6,"data":{"turn":1,"step":1}}"#, "\n",
//! );
//! let mut scan = RecordScan::new(Seq(0));
//! scan.feed(&Text::from(log));
//!
//! let closers = repair::closers(&scan.take_events());
//! assert_eq!(
//!     closers[1].text().as_str(),
//!     r#"{"type":"turn/end","seq":3,"time":6,"data":{"turn":1,"reason":{"kind":"interrupted"}}}"#
//! );
//! ```

mod calls;
mod write;

#[cfg(test)]
mod tests;

use calls::Calls;

use crate::{event::Event, id::Seq, json::Json};

/// The events that close the turn a whole log leaves open; none when it leaves none open.
#[must_use]
pub fn closers(events: &[Event]) -> Vec<Event> {
    let mut state = TurnState::default();
    for event in events {
        state.push(event);
    }
    state.closers()
}

/// What of a log is open after its last event, for a reader that keeps no events.
///
/// It holds the unanswered calls of the open step and a few numbers, whatever the length of the
/// log. Payloads that are not what their type promises are passed over; an opening event opens even
/// so, and what closes it then lacks the number that the opening lacked.
#[derive(Clone, Debug, Default)]
pub struct TurnState {
    last: Option<(Seq, i64)>,
    turn: Option<OpenTurn>,
}

#[derive(Clone, Debug)]
struct OpenTurn {
    turn: Ordinal,
    step: Option<Ordinal>,
    calls: Calls,
}

/// The number of a turn or a step, when it has one that JavaScript could write again.
#[derive(Clone, Copy, Debug, Default)]
struct Ordinal(Option<f64>);

impl Ordinal {
    fn read(data: Json<'_>, key: &str) -> Self {
        Self(data.get(key).and_then(Json::as_f64).filter(|number| number.is_finite()))
    }

    fn or(self, other: Option<Self>) -> Self {
        Self(self.0.or(other.and_then(|other| other.0)))
    }
}

impl TurnState {
    /// Takes in the next event of the log.
    pub fn push(&mut self, event: &Event) {
        self.last = Some((event.seq(), event.time()));
        if event.event_type() == "turn/start" {
            let turn = Ordinal::read(event.data(), "turn");
            self.turn = Some(OpenTurn { turn, step: None, calls: Calls::default() });
        } else if event.event_type() == "turn/end" {
            self.turn = None;
        } else if let Some(open) = &mut self.turn {
            open.push(event);
        }
    }

    /// Whether a turn is open, so that there is something to close.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.turn.is_some()
    }

    /// The events to append, in order; none when no turn is open.
    ///
    /// None as well where they would not fit into any log: past seq 2^53 − 1, or with a call id so
    /// long that naming it makes an event longer than one may be.
    #[must_use]
    pub fn closers(&self) -> Vec<Event> {
        let (Some((seq, time)), Some(open)) = (self.last, &self.turn) else {
            return Vec::new();
        };
        write::closers(open, seq.plus(1), time).unwrap_or_default()
    }
}

impl OpenTurn {
    fn push(&mut self, event: &Event) {
        match event.event_type() {
            "step/start" => self.step = Some(Ordinal::read(event.data(), "step")),
            "step/end" => {
                self.step = None;
                self.calls = Calls::default();
            }
            "assistant/message" => {
                let step = Ordinal::read(event.data(), "step").or(self.step);
                self.calls.ask(event.data(), step);
            }
            "tool/call" => self.calls.start(event),
            "tool/result" => self.calls.answer(event.data()),
            _ => {}
        }
    }
}
