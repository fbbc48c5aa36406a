//! One after the other, on the blocking pool.

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, Ordering},
    },
};

use tokio::sync::oneshot;

use super::registry::locked;
use crate::seam::Cancel;

/// Runs jobs on one subject in the order in which they were submitted, one at a time.
///
/// No thread waits for jobs: the first job of an idle queue starts a blocking task, which ends when
/// the queue is empty. A job that was submitted runs, whether or not anyone waits for it. The
/// subject is dropped with the queue, or by its last job.
pub(crate) struct Queue<S> {
    state: Mutex<State<S>>,
}

struct State<S> {
    /// Absent while a job runs, and after the last one.
    subject: Option<S>,
    jobs: VecDeque<Job<S>>,
    running: bool,
    closed: bool,
}

/// What is to be done, and then, when the subject is back in its place, whom to tell.
type Job<S> = Box<dyn FnOnce(&mut Option<S>) -> Reply + Send>;
type Reply = Box<dyn FnOnce() + Send>;

/// Who is told an outcome that nobody waits for any more.
type Missed<T> = Arc<dyn Fn(T) + Send + Sync>;

/// Why a job did not run, or left no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotRun {
    /// The queue was closed before.
    Closed,
    /// It was called off before it began.
    Cancelled,
    /// It was lost: the runtime ended, or the job itself broke off.
    Lost,
}

/// A submitted job.
pub(crate) struct Submitted<T> {
    outcome: oneshot::Receiver<T>,
    missed: Missed<T>,
    stage: Arc<Stage>,
}

/// Whether a job is waiting, running or called off.
#[derive(Debug)]
struct Stage(AtomicU8);

impl Stage {
    const WAITING: u8 = 0;
    const RUNNING: u8 = 1;
    const CANCELLED: u8 = 2;

    /// Moves on from waiting; whether nobody else did before.
    fn move_to(&self, stage: u8) -> bool {
        let moved =
            self.0.compare_exchange(Self::WAITING, stage, Ordering::AcqRel, Ordering::Acquire);
        moved.is_ok()
    }
}

impl<S: Send + 'static> Queue<S> {
    pub(crate) fn new(subject: S) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                subject: Some(subject),
                jobs: VecDeque::new(),
                running: false,
                closed: false,
            }),
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        locked(&self.state).closed
    }

    /// Submits a job. Its outcome goes to whoever waits for it, and else to `missed`.
    pub(crate) fn submit<T: Send + 'static>(
        self: &Arc<Self>,
        job: impl FnOnce(&mut S) -> T + Send + 'static,
        missed: impl Fn(T) + Send + Sync + 'static,
    ) -> Result<Submitted<T>, NotRun> {
        let (sender, outcome) = oneshot::channel();
        let waiting = Arc::new(Stage(AtomicU8::new(Stage::WAITING)));
        let missed: Missed<T> = Arc::new(missed);
        let submitted =
            Submitted { outcome, missed: Arc::clone(&missed), stage: Arc::clone(&waiting) };
        let job: Job<S> = Box::new(move |subject| {
            let subject = subject.as_mut().filter(|_| waiting.move_to(Stage::RUNNING));
            let Some(outcome) = subject.map(job) else { return Box::new(|| {}) };
            Box::new(move || {
                if let Err(outcome) = sender.send(outcome) {
                    missed(outcome);
                }
            })
        });
        let run = {
            let mut state = locked(&self.state);
            if state.closed {
                return Err(NotRun::Closed);
            }
            self.push(&mut state, job)
        };
        start(run);
        Ok(submitted)
    }

    /// Closes the queue: what was submitted before runs, then `last`, which gets the subject, and
    /// nothing after. No effect when it was closed before.
    pub(crate) fn close(self: &Arc<Self>, last: impl FnOnce(Option<S>) + Send + 'static) {
        let job: Job<S> = Box::new(move |subject| {
            let subject = subject.take();
            Box::new(move || last(subject))
        });
        let run = {
            let mut state = locked(&self.state);
            if state.closed {
                return;
            }
            state.closed = true;
            self.push(&mut state, job)
        };
        start(run);
    }

    /// Closes a queue that has nothing to do and gives its subject back; `None`, and no effect,
    /// when there is something to do, or when it was closed before.
    pub(crate) fn close_if_idle(&self) -> Option<S> {
        let mut state = locked(&self.state);
        if state.closed || state.running {
            return None;
        }
        state.closed = true;
        state.subject.take()
    }

    /// Adds a job. The task to work it off, if none is at work, is to be started once the state is
    /// unlocked again.
    fn push(self: &Arc<Self>, state: &mut State<S>, job: Job<S>) -> Option<Run<S>> {
        state.jobs.push_back(job);
        let idle = !std::mem::replace(&mut state.running, true);
        idle.then(|| Run { queue: Arc::clone(self), finished: false })
    }
}

impl<T> Submitted<T> {
    /// Waits for the outcome. A job that has not begun can be called off.
    pub(crate) async fn outcome(mut self, cancel: &Cancel) -> Result<T, NotRun> {
        tokio::select! {
            biased;
            outcome = &mut self.outcome => return outcome.map_err(|_| NotRun::Lost),
            () = cancel.cancelled() => {}
        }
        if self.stage.move_to(Stage::CANCELLED) {
            return Err(NotRun::Cancelled);
        }
        (&mut self.outcome).await.map_err(|_| NotRun::Lost)
    }
}

/// The task that works a queue off.
struct Run<S> {
    queue: Arc<Queue<S>>,
    finished: bool,
}

fn start<S: Send + 'static>(run: Option<Run<S>>) {
    let Some(run) = run else { return };
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(move || run.work_off())),
        // A handle may be closed where no runtime is.
        Err(_) => drop(std::thread::Builder::new().spawn(move || run.work_off())),
    }
}

impl<S> Run<S> {
    fn work_off(mut self) {
        let mut reply: Reply = Box::new(|| {});
        while let Some((job, mut subject)) = self.next() {
            reply();
            reply = job(&mut subject);
            locked(&self.queue.state).subject = subject;
        }
        // The queue is let go before the last caller hears: one who drops the handle then has
        // dropped the last of it, and the subject with it.
        drop(self);
        reply();
    }

    fn next(&mut self) -> Option<(Job<S>, Option<S>)> {
        let mut state = locked(&self.queue.state);
        if let Some(job) = state.jobs.pop_front() {
            return Some((job, state.subject.take()));
        }
        state.running = false;
        self.finished = true;
        None
    }
}

impl<S> Drop for Run<S> {
    /// When the task never ran, or a job broke off: lets go of everything, so that nobody waits for
    /// what will not come.
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let (jobs, subject) = {
            let mut state = locked(&self.queue.state);
            state.closed = true;
            state.running = false;
            (std::mem::take(&mut state.jobs), state.subject.take())
        };
        drop((jobs, subject));
    }
}

impl<T> Drop for Submitted<T> {
    /// An outcome that came and was not looked at was missed, too.
    fn drop(&mut self) {
        self.outcome.close();
        if let Ok(outcome) = self.outcome.try_recv() {
            (self.missed)(outcome);
        }
    }
}

impl<S> fmt::Debug for Queue<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}
