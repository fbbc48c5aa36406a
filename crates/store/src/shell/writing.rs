//! What a write handle and its store share: all that changes a session.

use std::sync::{Arc, atomic::AtomicU64};

use turnkeep_log::{Event, Seq};

use super::{
    closed::{Closed, Ended},
    live::Live,
    mutations::{Mutations, Owned, Unreported},
    queue::{NotRun, Submitted},
    writer::WriteLog,
};
use crate::{
    error::{AppendError, CloseError, FlushError},
    seam::EventRange,
};

/// The writing side of a handle. The handle alone owns it; its store finds it by the session's id.
#[derive(Debug)]
pub(crate) struct Writing<L: WriteLog> {
    mutations: Arc<Mutations<L>>,
    live: Arc<Live<L>>,
    unreported: Unreported,
    closed: Closed,
}

impl<L: WriteLog> Writing<L> {
    /// For a session that is owned. `observed` is how many events its handle has shown or stored.
    pub(crate) fn new(session: Owned<L>, observed: Arc<AtomicU64>) -> Arc<Self> {
        let owner = Arc::clone(session.claim().owner());
        let live = Live::new(&session, observed);
        let mutations = Mutations::new(session);
        live.attach(&mutations);
        let (unreported, closed) = (Unreported::default(), Closed::new());
        let writing = Arc::new(Self { mutations, live, unreported, closed });
        owner.attach(&writing);
        writing
    }

    pub(crate) fn live(&self) -> &Arc<Live<L>> {
        &self.live
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.mutations.is_closed()
    }

    /// Asks for a batch to be appended, behind what was published before.
    pub(crate) fn append(
        &self,
        events: Vec<Event>,
    ) -> Result<Submitted<Result<Seq, AppendError>>, NotRun> {
        let (live, appending) = (Arc::clone(&self.live), self.live.appending());
        let append = move |owned: &mut Owned<L>| {
            let _appending = appending;
            live.append(owned, &events)
        };
        self.mutations.submit(append, self.unreported.append(self.live.id()))
    }

    /// Asks for everything until now to be made durable, what was published before included.
    pub(crate) fn flush(&self) -> Result<Submitted<Result<(), FlushError>>, NotRun> {
        let live = Arc::clone(&self.live);
        let flush = move |owned: &mut Owned<L>| live.flush(owned);
        self.mutations.submit(flush, self.unreported.flush(self.live.id()))
    }

    /// Has what was accepted synced, if that has not been done, and says when it is.
    pub(crate) fn sync_unasked(&self, done: impl Fn() + Send + Sync + 'static) {
        // One that was closed meanwhile has synced what it had.
        let _ = self.mutations.submit(Owned::sync_unasked, move |()| done());
    }

    /// Closes the handle, now, and says how that ended.
    pub(crate) fn close(&self) -> Ended {
        let ended = self.closed.wait();
        if self.live.close() {
            let ending = self.ending();
            self.mutations.close(move |owned| ending.finish(owned));
        }
        ended
    }

    /// Where it is told how closing the handle ended.
    pub(crate) fn closed(&self) -> &Closed {
        &self.closed
    }

    /// Lets go of the session: at once when nothing is to be done, else as soon as it is done.
    pub(crate) fn abandon(&self) {
        if !self.live.close() {
            return;
        }
        let ending = self.ending();
        let nothing_waits = self.live.unstored().is_none();
        match nothing_waits.then(|| self.mutations.close_if_idle()).flatten() {
            Some(owned) => ending.let_go(Some(owned)),
            None => self.mutations.close(move |owned| ending.let_go(owned)),
        }
    }

    fn ending(&self) -> Ending<L> {
        Ending {
            live: Arc::clone(&self.live),
            unreported: self.unreported.clone(),
            to: self.closed.clone(),
        }
    }
}

/// The end of a handle, which is announced in any case.
struct Ending<L: WriteLog> {
    live: Arc<Live<L>>,
    unreported: Unreported,
    to: Closed,
}

impl<L: WriteLog> Ending<L> {
    /// Stores what waits, makes it durable, gives the session back, and tells how that went.
    fn finish(self, mut owned: Option<Owned<L>>) {
        let drained = self.drain(owned.as_mut());
        let synced = owned.as_mut().map_or(Ok(()), Owned::close);
        drop(owned);
        let synced = synced.map_err(|error| self.failure(error.kind(), error.to_string()));
        self.to.announce(drained.and(synced).and_then(|()| self.unreported.outcome()));
    }

    /// The same, without waiting for the disk: who wants that closes the handle.
    fn let_go(self, mut owned: Option<Owned<L>>) {
        let drained = self.drain(owned.as_mut());
        drop(owned);
        self.to.announce(drained.and_then(|()| self.unreported.outcome()));
    }

    fn drain(&self, owned: Option<&mut Owned<L>>) -> Result<(), CloseError> {
        let drained = owned.map_or(Ok(()), |owned| self.live.drain(owned));
        drained.map_err(|error| self.failure(error.kind(), error.to_string()))
    }

    fn failure(&self, kind: &'static str, message: String) -> CloseError {
        let unstored = self.live.unstored();
        let message = match unstored {
            Some(EventRange { offset, length }) => format!(
                "{} published events, from seq {offset} on, were not stored: {message}",
                length.unwrap_or_default()
            ),
            None => message,
        };
        CloseError { id: self.live.id().clone(), kind, message, unstored }
    }
}

impl<L: WriteLog> Drop for Ending<L> {
    fn drop(&mut self) {
        if !self.to.is_announced() {
            let message = "the runtime ended before it was done".to_owned();
            self.to.announce(Err(self.failure("poisoned", message)));
        }
    }
}
