//! What is buffered, and what is going on.

use std::collections::VecDeque;

use tokio::task::AbortHandle;
use turnkeep_log::{Event, Seq, SessionId};

use super::LiveOptions;
use crate::{
    error::{
        AppendError, FlushError, HandleClosed, NotSerializable, OwnershipLost, Poisoned,
        PublishError, SeqMismatch,
    },
    seam::EventRange,
    shell::writer::Broken,
};

/// The buffer of a write handle.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that change independently of each other")]
pub(super) struct State {
    /// What was taken and is neither stored nor being stored, in order.
    waiting: VecDeque<Event>,
    /// How long it is, as lines.
    bytes: usize,
    /// The seq that comes after everything that was taken.
    next: Seq,
    /// How many appends are under way.
    appends: usize,
    /// A batch is being stored.
    storing: bool,
    /// A job is going to store what waits.
    scheduled: bool,
    /// The time until what waits is stored, if it runs.
    window: Option<Window>,
    windows: u64,
    /// Storing has failed: nothing tries again until asked to.
    paused: bool,
    /// Why nothing will ever be stored any more.
    broken: Option<Broken>,
    closed: bool,
}

#[derive(Debug)]
struct Window {
    number: u64,
    task: Option<AbortHandle>,
}

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It waits, and will be stored.
    Taken,
    /// It waits, and the time of this window begins with it.
    TakenFirst(u64),
    /// It waits, and there is no room for another.
    TakenLast,
    /// There is no room until what waits is taken up.
    Crowded,
    /// There is no room, and storing what waits has failed.
    Stuck,
    /// An append is under way.
    Wait,
}

impl State {
    /// For a log whose next event has this seq.
    pub(super) fn new(next: Seq) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            next,
            appends: 0,
            storing: false,
            scheduled: false,
            window: None,
            windows: 0,
            paused: false,
            broken: None,
            closed: false,
        }
    }

    /// Takes an event in, if it may and there is room.
    pub(super) fn admit(
        &mut self,
        id: &SessionId,
        options: &LiveOptions,
        max_event_bytes: u64,
        event: &Event,
    ) -> Result<Admission, PublishError> {
        self.check_open(id)?;
        if self.appends > 0 {
            return Ok(Admission::Wait);
        }
        let (expected, got) = (self.next, event.seq());
        if got != expected {
            return Err(SeqMismatch { id: id.clone(), expected, index: 0, got }.into());
        }
        let length = line_len(event);
        if length as u64 > max_event_bytes {
            let what = "the event".to_owned();
            let problem = format!(
                "event {got} has {length} bytes, and readers of this store take \
                 {max_event_bytes} at once; raise `max_frame_bytes`"
            );
            return Err(NotSerializable { id: id.clone(), what, problem }.into());
        }
        let crowded = self.waiting.len() >= options.max_events
            || self.bytes.saturating_add(length) > options.max_bytes;
        if crowded && !self.waiting.is_empty() {
            return Ok(if self.paused { Admission::Stuck } else { Admission::Crowded });
        }
        self.waiting.push_back(event.clone());
        self.bytes += length;
        self.next = self.next.plus(1);
        let full = self.waiting.len() >= options.max_events || self.bytes >= options.max_bytes;
        let idle = !self.storing && !self.scheduled && !self.paused && self.window.is_none();
        Ok(match (full, idle) {
            (true, _) => Admission::TakenLast,
            (false, true) => {
                self.windows += 1;
                self.window = Some(Window { number: self.windows, task: None });
                Admission::TakenFirst(self.windows)
            }
            (false, false) => Admission::Taken,
        })
    }

    fn check_open(&self, id: &SessionId) -> Result<(), PublishError> {
        let id = || id.clone();
        match &self.broken {
            _ if self.closed => Err(HandleClosed { id: id(), operation: "publish" }.into()),
            Some(Broken::Lost(evidence)) => {
                Err(OwnershipLost { id: id(), evidence: evidence.clone() }.into())
            }
            Some(Broken::Poisoned(cause)) => {
                Err(Poisoned { id: id(), cause: cause.clone() }.into())
            }
            None => Ok(()),
        }
    }

    /// Notes the task that waits for the end of a window; whether the window still counts.
    pub(super) fn watch_window(&mut self, number: u64, task: AbortHandle) -> bool {
        match &mut self.window {
            Some(window) if window.number == number => {
                window.task = Some(task);
                true
            }
            _ => false,
        }
    }

    /// Ends a window; whether it still counted.
    pub(super) fn end_window(&mut self, number: u64) -> bool {
        self.window.take_if(|window| window.number == number).is_some()
    }

    /// Whether a job has to be submitted that stores what waits, and is from now on.
    pub(super) fn schedule(&mut self) -> bool {
        let needed = !self.scheduled && !self.paused && !self.closed && !self.waiting.is_empty();
        self.scheduled |= needed;
        needed
    }

    /// The job that was scheduled runs, or never will.
    pub(super) fn unschedule(&mut self) {
        self.scheduled = false;
    }

    /// Takes up all that waits, to store it.
    pub(super) fn take(&mut self) -> Vec<Event> {
        if let Some(task) = self.window.take().and_then(|window| window.task) {
            task.abort();
        }
        self.storing = true;
        self.bytes = 0;
        std::mem::take(&mut self.waiting).into()
    }

    /// Puts back what of a batch was not stored.
    pub(super) fn put_back(&mut self, rest: impl DoubleEndedIterator<Item = Event>) {
        for event in rest.rev() {
            self.bytes += line_len(&event);
            self.waiting.push_front(event);
        }
        self.storing = false;
    }

    /// All that was taken up is stored.
    pub(super) fn succeeded(&mut self) {
        self.paused = false;
    }

    /// What was taken up could not be stored.
    pub(super) fn failed(&mut self, error: &AppendError) {
        self.paused = true;
        self.note(error);
    }

    /// Notes a failure after which nothing can be stored.
    pub(super) fn note(&mut self, error: &AppendError) {
        match error {
            AppendError::OwnershipLost(lost) => {
                self.broken = Some(Broken::Lost(lost.evidence.clone()));
            }
            AppendError::Poisoned(poisoned) => {
                self.broken = Some(Broken::Poisoned(poisoned.cause.clone()));
            }
            _ => {}
        }
    }

    /// The same, of a flush.
    pub(super) fn note_flush(&mut self, error: &FlushError) {
        match error {
            FlushError::OwnershipLost(lost) => {
                self.broken = Some(Broken::Lost(lost.evidence.clone()));
            }
            FlushError::Poisoned(poisoned) => {
                self.broken = Some(Broken::Poisoned(poisoned.cause.clone()));
            }
            _ => {}
        }
    }

    /// Nothing will ever be stored any more, and no error said so.
    pub(super) fn break_off(&mut self) {
        let cause = "storing published events broke off".to_owned();
        self.broken.get_or_insert(Broken::Poisoned(cause));
    }

    pub(super) fn begin_append(&mut self) {
        self.appends += 1;
    }

    pub(super) fn end_append(&mut self) {
        self.appends -= 1;
    }

    /// An append has brought the log this far, and nothing waits.
    pub(super) fn continue_at(&mut self, next: Seq) {
        self.next = next;
    }

    /// Takes no more. Whether it took some until now.
    pub(super) fn close(&mut self) -> bool {
        !std::mem::replace(&mut self.closed, true)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn unstored(&self) -> Option<EventRange> {
        let first = self.waiting.front()?;
        Some(EventRange { offset: first.seq().0, length: Some(self.waiting.len() as u64) })
    }
}

/// How long an event is as a line of a log.
pub(super) fn line_len(event: &Event) -> usize {
    event.text().len() + 1
}
