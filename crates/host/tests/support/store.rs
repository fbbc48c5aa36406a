//! Stores with sessions in them.

use std::{
    fs,
    ops::RangeInclusive,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use serde_json::{Value, json};
use tempfile::TempDir;
use turnkeep_log::{Event, RecordScan, Seq, SessionHeader, SessionId, Text};
use turnkeep_store::{
    Access, Cancel, Deleted, Emptied, Emptying, ListQuery, Routed, SessionHandle, SessionList,
    SessionStat, SessionStore, Trashed,
    error::{
        CloseError, CreateError, DeleteError, FlushError, FlushStoreError, ListError, OpenError,
        PublishError, RestoreError, SalvageError, StatError, TrashError, VerifyError,
    },
    jsonl::{JsonlOptions, JsonlStore},
    recover::{Branch, Salvage},
    verify::{Progress, Verification},
};

use super::logs::SAID;

/// A store in a folder of its own.
#[derive(Debug)]
pub struct TestStore {
    pub folder: TempDir,
    pub store: Arc<JsonlStore>,
}

impl TestStore {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(JsonlStore::open(JsonlOptions::new(folder.path())).unwrap());
        Self { folder, store }
    }

    /// Stores a session with these events.
    pub async fn add(&self, header: SessionHeader, events: Vec<Event>) -> String {
        let id = header.id.as_str().to_owned();
        let handle = self.store.create(header, &Cancel::never()).await.unwrap();
        handle.append(events, &Cancel::never()).await.unwrap();
        handle.close().await.unwrap();
        id
    }

    /// Stores a session, in the session's directory `/work/demo`, of these events: type, data.
    pub async fn add_made(&self, id: &str, events: &[(&str, Value)]) -> String {
        self.add(header(id), made(0, |at| 1000 + at, events)).await
    }

    /// Goes on with a stored session.
    pub async fn append(&self, id: &str, events: Vec<Event>) {
        let id = SessionId::new(id).unwrap();
        let handle = self.store.open(&id, Access::Write, &Cancel::never()).await.unwrap();
        handle.append(events, &Cancel::never()).await.unwrap();
        handle.close().await.unwrap();
    }

    /// Stores a real session of another writer.
    pub async fn add_golden(&self, name: &str) -> String {
        let (header, events) = golden(name);
        self.add(header, events).await
    }

    /// The log of a session.
    pub fn log(&self, id: &str) -> PathBuf {
        let projects = fs::read_dir(self.folder.path()).unwrap();
        let logs = projects.map(|project| project.unwrap().path().join(id));
        let mut logs = logs.map(|folder| folder.join("session.jsonl.zstd"));
        logs.find(|log| log.exists()).unwrap()
    }
}

/// A real session of another writer.
pub fn golden(name: &str) -> (SessionHeader, Vec<Event>) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/dsh/golden");
    let text = fs::read_to_string(format!("{folder}/{name}/session.jsonl")).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let mut scan = RecordScan::new(Seq(0));
    scan.feed(&Text::from(rest));
    (SessionHeader::parse(first, None).unwrap(), scan.take_events())
}

pub fn header(id: &str) -> SessionHeader {
    let mut header = SessionHeader::new(SessionId::new(id).unwrap(), 1);
    header.cwd = Some("/work/demo".to_owned());
    header
}

/// Events from `first` on, at these times.
pub fn made(first: usize, time: impl Fn(usize) -> usize, events: &[(&str, Value)]) -> Vec<Event> {
    let event = |(at, (name, data)): (usize, &(&str, Value))| {
        let seq = first + at;
        let surface = match *name {
            "user/message" | "assistant/message" => r#","surfaceOp":"append""#,
            _ => "",
        };
        let text = format!(
            r#"{{"type":"{name}","seq":{seq},"time":{},"data":{data}{surface}}}"#,
            time(seq)
        );
        Event::parse(&Text::from(text)).unwrap()
    };
    events.iter().enumerate().map(event).collect()
}

/// What a person wrote.
pub fn prompt(id: &str, text: &str) -> (&'static str, Value) {
    let content = json!([{ "type": "text", "text": text }]);
    let source = json!({ "kind": "user" });
    ("user/message", json!({ "content": content, "source": source, "role": "user", "id": id }))
}

/// What the program added for the model.
pub fn notice(id: &str, text: &str) -> (&'static str, Value) {
    let content = json!([{ "type": "text", "text": text }]);
    let source = json!({ "kind": "plugin", "plugin": "p" });
    ("user/message", json!({ "content": content, "source": source, "role": "user", "id": id }))
}

/// A session of this many turns of a prompt, a notice and an answer each.
pub fn turns(count: usize) -> Vec<(&'static str, Value)> {
    turns_in(1..=count)
}

/// The same of these turns.
pub fn turns_in(range: RangeInclusive<usize>) -> Vec<(&'static str, Value)> {
    let turn = |turn: usize| {
        let answer = json!({
            "turn": turn,
            "step": 1,
            "message": {
                "role": "assistant",
                "id": format!("answer-{turn}"),
                "content": [{ "type": "text", "text": format!("answer {turn} {SAID}") }],
                "source": { "kind": "model", "provider": "p", "model": "m" },
            },
        });
        [
            ("turn/start", json!({ "turn": turn })),
            prompt(&format!("prompt-{turn}"), &format!("question {turn} {SAID}")),
            notice(&format!("notice-{turn}"), &format!("by the way, {SAID}")),
            ("assistant/message", answer),
            ("turn/end", json!({ "turn": turn, "reason": { "kind": "completed" } })),
        ]
    };
    range.flat_map(turn).collect()
}

/// A store that counts how often sessions are opened and listed, or panics when it is asked for one.
#[derive(Debug)]
pub struct WatchedStore {
    pub inner: Arc<dyn SessionStore>,
    pub opened: AtomicUsize,
    pub listed: AtomicUsize,
    pub panics: bool,
}

impl WatchedStore {
    pub fn new(inner: Arc<dyn SessionStore>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            opened: AtomicUsize::new(0),
            listed: AtomicUsize::new(0),
            panics: false,
        })
    }

    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }

    pub fn listed(&self) -> usize {
        self.listed.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl SessionStore for WatchedStore {
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
        self.opened.fetch_add(1, Ordering::SeqCst);
        self.inner.open(id, access, cancel).await
    }

    async fn stat(
        &self,
        id: &SessionId,
        cancel: &Cancel,
    ) -> Result<Option<SessionStat>, StatError> {
        assert!(!self.panics, "canary-4711");
        self.inner.stat(id, cancel).await
    }

    async fn list(&self, query: &ListQuery, cancel: &Cancel) -> Result<SessionList, ListError> {
        self.listed.fetch_add(1, Ordering::SeqCst);
        self.inner.list(query, cancel).await
    }

    async fn flush(&self, cancel: &Cancel) -> Result<(), FlushStoreError> {
        self.inner.flush(cancel).await
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

    async fn publish(&self, id: &SessionId, event: Event) -> Result<Routed, PublishError> {
        self.inner.publish(id, event).await
    }

    async fn flush_session(&self, id: &SessionId, cancel: &Cancel) -> Result<Routed, FlushError> {
        self.inner.flush_session(id, cancel).await
    }

    async fn dispose(&self, id: &SessionId) -> Result<Routed, CloseError> {
        self.inner.dispose(id).await
    }

    fn owns(&self, id: &SessionId) -> bool {
        self.inner.owns(id)
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
}
