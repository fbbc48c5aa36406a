//! The seam: what every backend offers, and what every user of a store relies on.
//!
//! A [`SessionStore`] knows sessions by id; a [`SessionHandle`] is one session held open, to read
//! or to write. Both are object-safe, so that a program can be written against
//! `dyn SessionStore` and take whichever backend its user names.
//!
//! ## What holds for every backend
//!
//! - **One writer.** At most one write handle of a session exists, across processes where the
//!   backend is shared between processes. Readers need no permission and never wait for a writer.
//! - **Acknowledged means kept.** Once [`append`](SessionHandle::append) has returned, the events
//!   survive a crash of the process and of the machine. A store that was opened with
//!   [`Durability::Flush`](crate::Durability::Flush) promises the machine's crash only from
//!   [`flush`](SessionHandle::flush) or [`close`](SessionHandle::close) on.
//! - **All or nothing.** A batch is stored whole or not at all. A torn tail never reaches a reader.
//! - **Order.** Event `i` of a log has seq `i`. Mutations of one handle take effect in the order
//!   of the calls; a failed one does not stop the next. What was published counts among them, each
//!   event from the moment it was accepted.
//! - **Accepted means stored soon, once, in order.** An event that
//!   [`publish`](SessionStore::publish) has accepted is stored with the others of its 200
//!   milliseconds, and durable after the next flush. Until then a crash may take it. When storing
//!   fails it is kept, in its place, and it is never given up in silence: a later flush stores it,
//!   or the close of the handle says that it is lost.
//! - **Fresh and monotonic reads.** A read that starts after an append has returned sees it,
//!   through any handle of the same store. What one handle has shown once it never takes back: a
//!   log that got shorter is an error.
//! - **Starting is committing.** Dropping the future of a mutation that has started does not undo
//!   it. Cancelling through [`Cancel`] works up to the moment an operation takes effect.

use std::fmt;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use turnkeep_log::{Event, Seq, SessionHeader, SessionId};

use crate::{
    error::{
        AppendError, CloseError, CreateError, DeleteError, FlushError, FlushStoreError, ListError,
        OpenError, PublishError, ReadError, RestoreError, SalvageError, StatError, TrashError,
        VerifyError,
    },
    recover::{Branch, Salvage},
    trash::{Deleted, Emptied, Emptying, Trashed},
    verify::{Progress, Verification},
};

/// Session logs, by id.
#[async_trait]
pub trait SessionStore: fmt::Debug + Send + Sync {
    /// Reserves a new session and returns the handle that owns it.
    ///
    /// Nothing is stored yet: the session is *pending*. This store shows it; no other process
    /// does. The first [`append`](SessionHandle::append) or [`flush`](SessionHandle::flush) stores
    /// it; closing the handle before that erases it without a trace, and its id is free again.
    ///
    /// # Errors
    ///
    /// `already_exists` for an id that is pending or stored.
    async fn create(
        &self,
        header: SessionHeader,
        cancel: &Cancel,
    ) -> Result<Box<dyn SessionHandle>, CreateError>;

    /// Opens a stored session, or one that is pending in this store.
    ///
    /// Opening to write claims the session first, then reads and checks the whole log; a failure
    /// gives the claim back. Opening to read checks the header; the events are checked by the
    /// first read.
    ///
    /// # Errors
    ///
    /// `not_found`; `already_owned` when someone else holds the session open to write;
    /// `format_unsupported` and `corrupt` for a log that cannot be faithfully read.
    async fn open(
        &self,
        id: &SessionId,
        access: Access,
        cancel: &Cancel,
    ) -> Result<Box<dyn SessionHandle>, OpenError>;

    /// What is known of a session without reading its events; `None` when there is no such session.
    ///
    /// # Errors
    ///
    /// `format_unsupported` for a log of another format version, `corrupt` for a header that
    /// cannot be read or names another session.
    async fn stat(&self, id: &SessionId, cancel: &Cancel)
    -> Result<Option<SessionStat>, StatError>;

    /// One page of the sessions in this store, newest first, ties by id.
    ///
    /// One session that cannot be read never hides the others: it is listed with its state and the
    /// reason.
    ///
    /// # Errors
    ///
    /// `io` when the store itself cannot be read.
    async fn list(&self, query: &ListQuery, cancel: &Cancel) -> Result<SessionList, ListError>;

    /// Makes everything that any write handle of this store has accepted durable, published events
    /// included.
    ///
    /// A handle that is being closed meanwhile is waited for, and counts as flushed: who closes it
    /// hears what went wrong.
    ///
    /// # Errors
    ///
    /// Every failure, after every handle was tried.
    async fn flush(&self, cancel: &Cancel) -> Result<(), FlushStoreError>;

    /// Takes a stored session out of the store, into its trash. Its id is free again then.
    ///
    /// It goes whole, whether or not its log can be read; a crash leaves it in the store or in the
    /// trash, and nowhere else. Nobody may have it open to write, this process included. Handles
    /// that read it find out at their next read. Nothing leaves the trash by itself.
    ///
    /// # Errors
    ///
    /// `not_found`; `already_owned` while someone has it open to write, or pending in this store;
    /// `format_unsupported` for what has no place of its own that could be moved.
    async fn delete(&self, id: &SessionId, cancel: &Cancel) -> Result<Deleted, DeleteError>;

    /// What is in the trash, the latest deletion first, ties by id.
    ///
    /// # Errors
    ///
    /// `io` when the trash cannot be read.
    async fn trash(&self, cancel: &Cancel) -> Result<Vec<Trashed>, TrashError>;

    /// Puts a session back that was deleted: the last deletion of this id, or the one at a time.
    ///
    /// # Errors
    ///
    /// `not_found` when it is not in the trash; `already_exists` when the id is stored or pending
    /// again; `already_owned` while someone else handles it in the trash.
    async fn restore(
        &self,
        id: &SessionId,
        deleted_at: Option<i64>,
        cancel: &Cancel,
    ) -> Result<Deleted, RestoreError>;

    /// Removes sessions from the trash for good.
    ///
    /// # Errors
    ///
    /// `io` when one cannot be removed, `cancelled` between two; those before it are gone then.
    async fn empty_trash(&self, which: Emptying, cancel: &Cancel) -> Result<Emptied, TrashError>;

    /// Hands an event to the session's write handle in this store, to be stored a moment later
    /// together with others: the way for a stream of small events, from whoever has no handle.
    ///
    /// It returns once the event is accepted. The first event that waits opens a window of 200
    /// milliseconds, which later ones do not prolong; at its end all that wait are appended as one
    /// batch, and what came meanwhile is the next batch. A flush, an append through the handle or
    /// its close stores them at once, before anything else it does. Readers see an event when it is
    /// stored.
    ///
    /// So much may wait and no more. A full buffer is stored at once, and a producer that is
    /// faster than the storage waits here until there is room. Dropping the future before it
    /// returns means that the event was not accepted. Several publishers are served in the order
    /// of the calls, and wait for an append that is under way, since it decides which seq is next.
    ///
    /// When storing in the background fails, a warning is logged, the events stay where they are,
    /// and nothing tries again until a flush, an append, a close, or an event for which there is
    /// no room. So what was accepted is stored exactly once and in order, or the close of the
    /// handle [names it](CloseError::unstored).
    ///
    /// Without a write handle nothing is stored, and the answer says so.
    ///
    /// # Errors
    ///
    /// The event was not accepted, and what waits is as it was: `seq_mismatch` for an event that
    /// does not continue the log and what waits; `not_serializable` for one that is longer than
    /// readers take; `handle_closed` when the handle is being closed; `ownership_lost` and
    /// `poisoned` when nothing can be stored through it any more. When there is no room because
    /// storing failed, and fails again: the kinds of [`append`](SessionHandle::append), and the
    /// event may be published again.
    async fn publish(&self, id: &SessionId, event: Event) -> Result<Routed, PublishError>;

    /// Stores what was published to the session, then makes it durable, as
    /// [`flush`](SessionHandle::flush) does through its handle.
    ///
    /// # Errors
    ///
    /// As [`flush`](SessionHandle::flush). `handle_closed` when the handle was being closed, and
    /// that failed.
    async fn flush_session(&self, id: &SessionId, cancel: &Cancel) -> Result<Routed, FlushError>;

    /// Closes the session's write handle in this store: stores what was published, then gives the
    /// session back, as [`close`](SessionHandle::close) does.
    ///
    /// # Errors
    ///
    /// As [`close`](SessionHandle::close). A warning is logged as well, since who disposes of a
    /// session often cannot do anything about it.
    async fn dispose(&self, id: &SessionId) -> Result<Routed, CloseError>;

    /// Whether a write handle of this very store holds the session, or is just being opened.
    ///
    /// Answered from memory, at once. What other processes hold open is not known here. A store
    /// that wraps another one passes the question on.
    fn owns(&self, id: &SessionId) -> bool;

    /// Checks what the sessions of this store have in common, such as their database: everything
    /// that a [verification](Self::verify) of each of them would check again.
    ///
    /// # Errors
    ///
    /// `io` when it cannot be looked at.
    async fn verify_storage(&self, cancel: &Cancel) -> Result<Verification, VerifyError>;

    /// Reads the whole of a session and says whether it is intact, and if not, what is lost.
    ///
    /// It needs no ownership, relies on nothing that was read or checked before, and changes
    /// nothing. What is wrong with a session is no error: it is what was asked for.
    ///
    /// # Errors
    ///
    /// `not_found`; `io` when there is no telling whether there is such a session.
    async fn verify(
        &self,
        id: &SessionId,
        progress: &Progress,
        cancel: &Cancel,
    ) -> Result<Verification, VerifyError>;

    /// Starts reading out what can be saved of a session: the events that follow each other from
    /// the first on, as far as they can be understood, damage between them or not.
    ///
    /// [`recover`](crate::recover::recover) makes a new session of them.
    ///
    /// # Errors
    ///
    /// `not_found`; `forked` when there are two ways to go on and `branch` names none;
    /// `format_unsupported` for a log of another format, `corrupt` for one that nothing can be
    /// saved of.
    async fn salvage(
        &self,
        id: &SessionId,
        branch: Option<Branch>,
        progress: &Progress,
        cancel: &Cancel,
    ) -> Result<Salvage, SalvageError>;
}

/// Whether there was a write handle for what was sent to a session by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "without a write handle nothing was done"]
pub enum Routed {
    /// The session's write handle in this store took it.
    ToWriter,
    /// This store holds no write handle of the session: nothing was done, and an event is dropped.
    NoWriter,
}

/// One session, held open.
///
/// Dropping a handle gives its ownership back, as soon as what was asked for is done and what was
/// published is stored; what cannot be stored, or is not flushed, is logged.
/// [`close`](SessionHandle::close) does the same, flushes first, and reports what went wrong.
#[async_trait]
pub trait SessionHandle: fmt::Debug + Send + Sync {
    /// The session's id.
    fn id(&self) -> &SessionId;

    /// The session's header, as it was when the handle was opened.
    fn header(&self) -> &SessionHeader;

    /// What the handle may do.
    fn access(&self) -> Access;

    /// The events in a range of the log; fewer, or none, where the log ends before the range does.
    ///
    /// # Errors
    ///
    /// `handle_closed`; `not_found` when a pending session was erased; `log_shrank` when the log is
    /// shorter than this handle has shown before; `format_unsupported` and `corrupt`.
    async fn read(&self, range: EventRange, cancel: &Cancel) -> Result<Vec<Event>, ReadError>;

    /// Appends a batch and returns the seq that the next event must carry.
    ///
    /// The events must carry consecutive seqs from the end of the log on. An empty batch is no
    /// change. The batch counts from the moment this returns, and is on disk then, unless the store
    /// was asked for [less](crate::Durability).
    ///
    /// What was [published](SessionStore::publish) before comes first. If that cannot be stored,
    /// the batch is not either, and this fails as storing it did.
    ///
    /// # Errors
    ///
    /// `seq_mismatch`, naming the expected seq: nothing was stored; `read_only`; `handle_closed`;
    /// `ownership_lost` when someone else changed the log: the batch does not count, close this
    /// handle and open the session again; `poisoned` after a failed sync, when nobody can say what is on
    /// disk: close and open again; `io` for a write that failed and was rolled back: it may be
    /// tried again.
    async fn append(&self, events: Vec<Event>, cancel: &Cancel) -> Result<Seq, AppendError>;

    /// Makes everything accepted so far durable, what was [published](SessionStore::publish)
    /// included; stores a pending session without events.
    ///
    /// # Errors
    ///
    /// As [`append`](SessionHandle::append), where published events are what does not fit.
    /// `poisoned` names the accepted events that are taken back, if there are any.
    async fn flush(&self, cancel: &Cancel) -> Result<(), FlushError>;

    /// Finishes what was asked for before, stores what was published, makes all of it durable, and
    /// gives the session back.
    ///
    /// From the moment of the call every other operation is refused. Calling it again waits for
    /// the same end and has the same outcome. Ownership is given back even when this fails.
    ///
    /// # Errors
    ///
    /// What kept published events from being stored, and which; else what kept accepted ones from
    /// being synced; else what kept earlier operations from being finished that nobody waited for.
    async fn close(&self) -> Result<(), CloseError>;
}

/// What a handle may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read, whoever writes.
    Read,
    /// Read and append, alone.
    Write,
}

/// A range of events by their index, which is their seq.
///
/// Both are natural numbers, so that no read has a negative or fractional one to refuse:
///
/// ```
/// turnkeep_store::EventRange { offset: 1, length: Some(2) };
/// ```
/// ```compile_fail
/// turnkeep_store::EventRange { offset: -1, length: None };
/// ```
/// ```compile_fail
/// turnkeep_store::EventRange { offset: 0, length: Some(1.5) };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRange {
    /// The first event wanted.
    pub offset: u64,
    /// How many are wanted at most; all to the end when absent.
    pub length: Option<u64>,
}

impl EventRange {
    /// The whole log.
    pub const ALL: Self = Self { offset: 0, length: None };

    /// From this event to the end.
    #[must_use]
    pub fn from(offset: Seq) -> Self {
        Self { offset: offset.0, length: None }
    }
}

/// What is known of a session without reading its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStat {
    /// The session's header.
    pub header: SessionHeader,
    /// Which state of the log this was.
    pub revision: Revision,
    /// How many events the log holds, where the backend can tell without reading them.
    pub event_count: Option<u64>,
    /// How many bytes the log takes in storage, where it has a file of its own.
    pub size_bytes: Option<u64>,
    /// When the log last changed, in milliseconds since the epoch, as the storage reports it.
    pub modified_at: Option<i64>,
    /// What the events say, where that is known without reading them.
    pub hints: Option<SessionHints>,
}

/// What the events of a session say, in short, for lists.
///
/// Only known where somebody has written it down: in a file tree that is an index beside the log,
/// which may be missing, and is made again. Nothing is decided by hints that reading the events
/// would decide otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHints {
    /// How many events the log holds.
    pub event_count: u64,
    /// What the last `session/title` says; U+FFFD stands for a lone surrogate.
    pub title: Option<String>,
    /// Whether no turn has started yet.
    pub blank: bool,
    /// The time of the last message that a person sent, in milliseconds since the epoch.
    pub last_prompt_at: Option<i64>,
    /// The time of the last event, in milliseconds since the epoch.
    pub last_event_at: Option<i64>,
    /// How many turns have started.
    pub turns: u64,
    /// The `turn/start` of a turn that has not ended.
    pub open_turn: Option<Seq>,
    /// How many tools were started in that turn and have not answered; `None` when there are too
    /// many to count.
    pub open_calls: Option<u64>,
}

/// Names one state of one log: while two are equal the log has not changed in between.
///
/// Unequal revisions say nothing. Revisions of different sessions or stores cannot be compared.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Revision(String);

impl Revision {
    /// A revision spelled by a backend.
    #[must_use]
    pub fn new(token: String) -> Self {
        Self(token)
    }

    /// The spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which sessions to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Where the page before this one ended: [`SessionList::cursor`] of that page.
    pub cursor: Option<String>,
    /// How many entries at most; all when absent.
    pub limit: Option<usize>,
    /// Only sessions of this directory.
    pub cwd: Option<String>,
    /// Only sessions in one of these states; in any when empty.
    pub states: Vec<SessionState>,
}

/// One page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionList {
    /// The sessions, newest first.
    pub entries: Vec<SessionEntry>,
    /// Where the next page starts; absent on the last one.
    pub cursor: Option<String>,
}

/// One session in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEntry {
    /// The session's id, from its header or, where that cannot be read, from where it is stored.
    pub id: SessionId,
    /// What is known of it; absent where the header cannot be read.
    pub stat: Option<SessionStat>,
    /// Whether it can be read, as far as the header and the storage tell.
    pub state: SessionState,
    /// Why it is in another state than [`SessionState::Ok`], in one sentence.
    pub reason: Option<String>,
}

/// Whether a listed session can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// It can.
    Ok,
    /// What is stored does not make a session.
    Damaged,
    /// It was written by a newer build.
    Newer,
    /// It is someone else's, in a form this store does not serve.
    Foreign,
}

impl SessionState {
    /// The name on the wire and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Damaged => "damaged",
            Self::Newer => "newer",
            Self::Foreign => "foreign",
        }
    }
}

/// Lets an operation be called off before it takes effect.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Option<CancellationToken>);

impl Cancel {
    /// Never calls anything off.
    #[must_use]
    pub fn never() -> Self {
        Self(None)
    }

    /// Whether the operation has been called off.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    /// Returns once the operation is called off; never, when nothing can do that.
    pub async fn cancelled(&self) {
        match &self.0 {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

impl From<CancellationToken> for Cancel {
    fn from(token: CancellationToken) -> Self {
        Self(Some(token))
    }
}
