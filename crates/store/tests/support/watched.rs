//! A store around another, which counts what is asked of it and lets a test step in.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use async_trait::async_trait;
use tokio::sync::Semaphore;
use turnkeep_log::{Event, Seq, SessionHeader, SessionId};
use turnkeep_store::{
    Access, Cancel, Deleted, Emptied, Emptying, EventRange, ListQuery, Routed, SessionHandle,
    SessionList, SessionStat, SessionStore, Trashed,
    error::{
        AppendError, Cancelled, CloseError, CreateError, DeleteError, FlushError, FlushStoreError,
        IoFailure, ListError, OpenError, PublishError, ReadError, RestoreError, SalvageError,
        StatError, TrashError, VerifyError,
    },
    jsonl::Encoding,
    memory::{self, MemoryStore},
    recover::{Branch, Salvage},
    verify::{Progress, Verification},
};

use super::{database::Database, disk::Disk};

/// Where sessions are, whatever the backend.
pub struct Place {
    pub name: &'static str,
    pub instance: Box<dyn Fn() -> Arc<dyn SessionStore>>,
}

/// One empty place of every kind.
pub fn places() -> Vec<Place> {
    let memory = memory::Disk::new();
    let zstd = Disk::new(Encoding::Zstd);
    let none = Disk::new(Encoding::None);
    let sqlite = Database::new();
    vec![
        Place { name: "memory", instance: Box::new(move || Arc::new(MemoryStore::new(&memory))) },
        Place { name: "jsonl zstd", instance: Box::new(move || Arc::new(zstd.store())) },
        Place { name: "jsonl none", instance: Box::new(move || Arc::new(none.store())) },
        Place { name: "sqlite", instance: Box::new(move || Arc::new(sqlite.store())) },
    ]
}

type Step = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// A store that counts.
#[derive(Default)]
struct Watch {
    stats: AtomicUsize,
    reads: AtomicUsize,
    reading: AtomicUsize,
    most_reading: AtomicUsize,
    called_off: AtomicUsize,
    /// Reads wait here for a permit, when there is one.
    gate: Mutex<Option<Arc<Semaphore>>>,
    after_stat: Mutex<Option<Step>>,
    before_read: Mutex<Option<Step>>,
    after_read: Mutex<Option<Step>>,
    failing_reads: AtomicUsize,
}

pub struct Watched {
    inner: Arc<dyn SessionStore>,
    watch: Arc<Watch>,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watched")
    }
}

impl Watched {
    pub fn new(inner: Arc<dyn SessionStore>) -> Arc<Self> {
        Arc::new(Self { inner, watch: Arc::default() })
    }

    /// As what a cache takes.
    pub fn store(self: &Arc<Self>) -> Arc<dyn SessionStore> {
        Arc::clone(self) as Arc<dyn SessionStore>
    }

    pub fn stats(&self) -> usize {
        self.watch.stats.load(SeqCst)
    }

    pub fn reads(&self) -> usize {
        self.watch.reads.load(SeqCst)
    }

    /// How many reads were under way at a time, at most.
    pub fn most_reading(&self) -> usize {
        self.watch.most_reading.load(SeqCst)
    }

    /// How many reads were called off while they waited.
    pub fn called_off(&self) -> usize {
        self.watch.called_off.load(SeqCst)
    }

    /// Lets no read through until permits are added.
    pub fn hold_reads(&self) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        *self.watch.gate.lock().unwrap() = Some(Arc::clone(&gate));
        gate
    }

    /// Waits until this many reads have begun.
    pub async fn reads_begun(&self, count: usize) {
        while self.reads() < count {
            tokio::task::yield_now().await;
        }
    }

    pub fn after_stat<F: Future<Output = ()> + Send + 'static>(
        &self,
        step: impl FnOnce() -> F + Send + 'static,
    ) {
        *self.watch.after_stat.lock().unwrap() = Some(Box::new(|| Box::pin(step())));
    }

    pub fn before_read<F: Future<Output = ()> + Send + 'static>(
        &self,
        step: impl FnOnce() -> F + Send + 'static,
    ) {
        *self.watch.before_read.lock().unwrap() = Some(Box::new(|| Box::pin(step())));
    }

    pub fn after_read<F: Future<Output = ()> + Send + 'static>(
        &self,
        step: impl FnOnce() -> F + Send + 'static,
    ) {
        *self.watch.after_read.lock().unwrap() = Some(Box::new(|| Box::pin(step())));
    }

    pub fn fail_reads(&self, count: usize) {
        self.watch.failing_reads.store(count, SeqCst);
    }
}

async fn take(step: &Mutex<Option<Step>>) {
    let step = step.lock().unwrap().take();
    if let Some(step) = step {
        step().await;
    }
}

#[async_trait]
impl SessionStore for Watched {
    async fn create(
        &self,
        header: SessionHeader,
        cancel: &Cancel,
    ) -> Result<Box<dyn SessionHandle>, CreateError> {
        self.inner.create(header, cancel).await
    }

    async fn open(
        &self,
        id: &SessionId,
        access: Access,
        cancel: &Cancel,
    ) -> Result<Box<dyn SessionHandle>, OpenError> {
        let inner = self.inner.open(id, access, cancel).await?;
        Ok(Box::new(WatchedHandle { inner, watch: Arc::clone(&self.watch) }))
    }

    async fn stat(
        &self,
        id: &SessionId,
        cancel: &Cancel,
    ) -> Result<Option<SessionStat>, StatError> {
        let stat = self.inner.stat(id, cancel).await;
        self.watch.stats.fetch_add(1, SeqCst);
        take(&self.watch.after_stat).await;
        stat
    }

    async fn list(&self, query: &ListQuery, cancel: &Cancel) -> Result<SessionList, ListError> {
        self.inner.list(query, cancel).await
    }

    async fn flush(&self, cancel: &Cancel) -> Result<(), FlushStoreError> {
        self.inner.flush(cancel).await
    }

    async fn publish(&self, id: &SessionId, event: Event) -> Result<Routed, PublishError> {
        self.inner.publish(id, event).await
    }

    async fn flush_session(&self, id: &SessionId, cancel: &Cancel) -> Result<Routed, FlushError> {
        self.inner.flush_session(id, cancel).await
    }

    async fn dispose(&self, id: &SessionId) -> Result<Routed, CloseError> {
        self.inner.dispose(id).await
    }

    async fn delete(&self, id: &SessionId, cancel: &Cancel) -> Result<Deleted, DeleteError> {
        self.inner.delete(id, cancel).await
    }

    async fn trash(&self, cancel: &Cancel) -> Result<Vec<Trashed>, TrashError> {
        self.inner.trash(cancel).await
    }

    async fn restore(
        &self,
        id: &SessionId,
        deleted_at: Option<i64>,
        cancel: &Cancel,
    ) -> Result<Deleted, RestoreError> {
        self.inner.restore(id, deleted_at, cancel).await
    }

    async fn empty_trash(&self, which: Emptying, cancel: &Cancel) -> Result<Emptied, TrashError> {
        self.inner.empty_trash(which, cancel).await
    }

    async fn verify_storage(&self, cancel: &Cancel) -> Result<Verification, VerifyError> {
        self.inner.verify_storage(cancel).await
    }

    async fn verify(
        &self,
        id: &SessionId,
        progress: &Progress,
        cancel: &Cancel,
    ) -> Result<Verification, VerifyError> {
        self.inner.verify(id, progress, cancel).await
    }

    async fn salvage(
        &self,
        id: &SessionId,
        branch: Option<Branch>,
        progress: &Progress,
        cancel: &Cancel,
    ) -> Result<Salvage, SalvageError> {
        self.inner.salvage(id, branch, progress, cancel).await
    }

    fn owns(&self, id: &SessionId) -> bool {
        self.inner.owns(id)
    }
}

struct WatchedHandle {
    inner: Box<dyn SessionHandle>,
    watch: Arc<Watch>,
}

impl std::fmt::Debug for WatchedHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WatchedHandle")
    }
}

#[async_trait]
impl SessionHandle for WatchedHandle {
    fn id(&self) -> &SessionId {
        self.inner.id()
    }

    fn header(&self) -> &SessionHeader {
        self.inner.header()
    }

    fn access(&self) -> Access {
        self.inner.access()
    }

    async fn read(&self, range: EventRange, cancel: &Cancel) -> Result<Vec<Event>, ReadError> {
        let reading = self.watch.reading.fetch_add(1, SeqCst) + 1;
        self.watch.most_reading.fetch_max(reading, SeqCst);
        self.watch.reads.fetch_add(1, SeqCst);
        take(&self.watch.before_read).await;
        let gate = self.watch.gate.lock().unwrap().clone();
        let mut outcome = Ok(());
        if let Some(gate) = gate {
            tokio::select! {
                permit = gate.acquire() => permit.unwrap().forget(),
                () = cancel.cancelled() => {
                    self.watch.called_off.fetch_add(1, SeqCst);
                    outcome = Err(Cancelled { operation: "read" }.into());
                }
            }
        }
        let failing = self.watch.failing_reads.load(SeqCst);
        if failing > 0 {
            self.watch.failing_reads.store(failing - 1, SeqCst);
            let source = io::Error::from(io::ErrorKind::TimedOut);
            outcome = Err(IoFailure { context: "cannot read".to_owned(), source }.into());
        }
        let events = match outcome {
            Ok(()) => self.inner.read(range, cancel).await,
            Err(failure) => Err(failure),
        };
        self.watch.reading.fetch_sub(1, SeqCst);
        take(&self.watch.after_read).await;
        events
    }

    async fn append(&self, events: Vec<Event>, cancel: &Cancel) -> Result<Seq, AppendError> {
        self.inner.append(events, cancel).await
    }

    async fn flush(&self, cancel: &Cancel) -> Result<(), FlushError> {
        self.inner.flush(cancel).await
    }

    async fn close(&self) -> Result<(), CloseError> {
        self.inner.close().await
    }
}

/// A store that looks at sessions on one disk, and opens those on another.
#[derive(Debug)]
pub struct TwoFaced(pub Arc<dyn SessionStore>, pub Arc<dyn SessionStore>);

#[async_trait]
impl SessionStore for TwoFaced {
    async fn create(
        &self,
        header: SessionHeader,
        cancel: &Cancel,
    ) -> Result<Box<dyn SessionHandle>, CreateError> {
        self.0.create(header, cancel).await
    }

    async fn open(
        &self,
        id: &SessionId,
        access: Access,
        cancel: &Cancel,
    ) -> Result<Box<dyn SessionHandle>, OpenError> {
        self.1.open(id, access, cancel).await
    }

    async fn stat(
        &self,
        id: &SessionId,
        cancel: &Cancel,
    ) -> Result<Option<SessionStat>, StatError> {
        self.0.stat(id, cancel).await
    }

    async fn list(&self, query: &ListQuery, cancel: &Cancel) -> Result<SessionList, ListError> {
        self.0.list(query, cancel).await
    }

    async fn flush(&self, cancel: &Cancel) -> Result<(), FlushStoreError> {
        self.0.flush(cancel).await
    }

    async fn publish(&self, id: &SessionId, event: Event) -> Result<Routed, PublishError> {
        self.0.publish(id, event).await
    }

    async fn flush_session(&self, id: &SessionId, cancel: &Cancel) -> Result<Routed, FlushError> {
        self.0.flush_session(id, cancel).await
    }

    async fn dispose(&self, id: &SessionId) -> Result<Routed, CloseError> {
        self.0.dispose(id).await
    }

    async fn delete(&self, id: &SessionId, cancel: &Cancel) -> Result<Deleted, DeleteError> {
        self.0.delete(id, cancel).await
    }

    async fn trash(&self, cancel: &Cancel) -> Result<Vec<Trashed>, TrashError> {
        self.0.trash(cancel).await
    }

    async fn restore(
        &self,
        id: &SessionId,
        deleted_at: Option<i64>,
        cancel: &Cancel,
    ) -> Result<Deleted, RestoreError> {
        self.0.restore(id, deleted_at, cancel).await
    }

    async fn empty_trash(&self, which: Emptying, cancel: &Cancel) -> Result<Emptied, TrashError> {
        self.0.empty_trash(which, cancel).await
    }

    async fn verify_storage(&self, cancel: &Cancel) -> Result<Verification, VerifyError> {
        self.0.verify_storage(cancel).await
    }

    async fn verify(
        &self,
        id: &SessionId,
        progress: &Progress,
        cancel: &Cancel,
    ) -> Result<Verification, VerifyError> {
        self.0.verify(id, progress, cancel).await
    }

    async fn salvage(
        &self,
        id: &SessionId,
        branch: Option<Branch>,
        progress: &Progress,
        cancel: &Cancel,
    ) -> Result<Salvage, SalvageError> {
        self.0.salvage(id, branch, progress, cancel).await
    }

    fn owns(&self, _: &SessionId) -> bool {
        false
    }
}
