use std::sync::Arc;

use async_trait::async_trait;
use turnkeep_log::{Event, Seq, SessionHeader, SessionId, Text};
use turnkeep_store::{
    Access, Cancel, EventRange, Revision, SessionHandle, SessionStat,
    error::{AppendError, CloseError, FlushError, HandleClosed, ReadError},
};

use super::{Entry, Folds, OVERHEAD_BYTES};

fn stat(id: &str, revision: &str) -> SessionStat {
    SessionStat {
        header: SessionHeader {
            version: 0,
            id: SessionId::new(id).unwrap(),
            created_at: 1,
            cwd: None,
            parent_session: None,
            seed_length: None,
            origin: None,
            delegation_depth: 0,
            agent_preset: None,
        },
        revision: Revision::new(revision.to_owned()),
        event_count: None,
        size_bytes: None,
        modified_at: None,
        hints: None,
    }
}

/// A handle that nothing is read with here.
#[derive(Debug)]
struct Closed(SessionHeader);

impl Closed {
    fn refusal(&self, operation: &'static str) -> HandleClosed {
        HandleClosed { id: self.0.id.clone(), operation }
    }
}

#[async_trait]
impl SessionHandle for Closed {
    fn id(&self) -> &SessionId {
        &self.0.id
    }

    fn header(&self) -> &SessionHeader {
        &self.0
    }

    fn access(&self) -> Access {
        Access::Read
    }

    async fn read(&self, _: EventRange, _: &Cancel) -> Result<Vec<Event>, ReadError> {
        Err(self.refusal("read").into())
    }

    async fn append(&self, _: Vec<Event>, _: &Cancel) -> Result<Seq, AppendError> {
        Err(self.refusal("append").into())
    }

    async fn flush(&self, _: &Cancel) -> Result<(), FlushError> {
        Err(self.refusal("flush").into())
    }

    async fn close(&self) -> Result<(), CloseError> {
        Ok(())
    }
}

fn entry(stat: &SessionStat) -> Entry {
    Entry::new(stat, Arc::new(Closed(stat.header.clone())))
}

fn titled(seq: u64, title: &str) -> Event {
    let text =
        format!(r#"{{"type":"session/title","seq":{seq},"time":1,"data":{{"title":"{title}"}}}}"#);
    Event::parse(&Text::from(text)).unwrap()
}

/// Keeps a fold of one event of this session; how many bytes that counts for.
async fn keep(folds: &Folds, id: &str) -> u64 {
    let stat = stat(id, "r");
    let shared = folds.shared(&stat.header.id);
    let mut slot = shared.lock().await;
    let mut entry = entry(&stat);
    entry.extend(&[titled(0, id)], stat.revision.clone());
    let bytes = entry.bytes();
    *slot = Some(entry);
    folds.used(&stat.header.id, &shared, bytes);
    bytes
}

fn is_kept(folds: &Folds, id: &str) -> bool {
    folds.glimpse(&stat(id, "r")).is_some()
}

#[test]
fn a_fold_is_taken_up_where_it_ended() {
    let mut entry = entry(&stat("s", "r1"));
    entry.extend(&[titled(0, "one"), titled(1, "two")], Revision::new("r2".to_owned()));
    assert!(entry.is_at(&stat("s", "r2")));
    assert!(!entry.is_at(&stat("s", "r3")));
    assert!(entry.continues_to(&stat("s", "r3")));
    assert_eq!(entry.newest().unwrap().seq().0, 1);
    assert_eq!(entry.glimpse().title.as_deref(), Some("two"));
}

#[test]
fn a_new_session_under_an_old_name_is_not_a_continuation() {
    let mut entry = entry(&stat("s", "r1"));
    entry.extend(&[titled(0, "one"), titled(1, "two")], Revision::new("r2".to_owned()));
    let mut remade = stat("s", "r2");
    remade.header.created_at = 2;
    assert!(!entry.is_at(&remade) && !entry.continues_to(&remade));
    let mut shorter = stat("s", "r3");
    shorter.event_count = Some(1);
    assert!(!entry.continues_to(&shorter));
}

#[tokio::test]
async fn the_least_recently_used_fold_goes_first() {
    let folds = Folds::new(3 * OVERHEAD_BYTES);
    keep(&folds, "a").await;
    keep(&folds, "b").await;
    assert!(is_kept(&folds, "a") && is_kept(&folds, "b"));
    drop(folds.shared(&SessionId::new("a").unwrap()));
    keep(&folds, "c").await;
    assert!(is_kept(&folds, "a") && !is_kept(&folds, "b") && is_kept(&folds, "c"));
}

#[tokio::test]
async fn a_fold_larger_than_the_room_there_is_is_not_kept() {
    let folds = Folds::new(OVERHEAD_BYTES);
    assert!(keep(&folds, "a").await > OVERHEAD_BYTES);
    assert!(!is_kept(&folds, "a"));
}

#[tokio::test]
async fn a_glimpse_is_never_stale_and_never_waits() {
    let folds = Folds::new(u64::MAX);
    keep(&folds, "a").await;
    assert_eq!(folds.glimpse(&stat("a", "newer")), None);
    let shared = folds.shared(&SessionId::new("a").unwrap());
    let extending = Arc::clone(&shared).lock_owned().await;
    assert!(!is_kept(&folds, "a"));
    drop(extending);
    assert!(is_kept(&folds, "a"));
}
