//! What is logged of events that could not be stored or were cut off: which session, and never
//! what it says.
//!
//! A program of its own, since it takes down what all threads log.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    fmt::{Debug, Write as _},
    sync::{Mutex, Once, PoisonError},
    time::Duration,
};

use support::{append, create, disk, event_of, id, never, open, read, store_session};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use turnkeep_store::{
    Access, Routed, SessionStore,
    contract::live,
    memory::{Disk, MemoryStore},
};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Notes;

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("turnkeep_store")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

fn lines_of(session: &str) -> Vec<String> {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.iter().filter(|line| line.contains(&format!("session={session} "))).cloned().collect()
}

fn take_notes() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Notes).unwrap());
}

async fn publish_secrets(store: &MemoryStore, session: &str) {
    for seq in 0..3 {
        let secret = event_of("todo/write", seq, r#"{"todos":["canary"]}"#);
        assert_eq!(store.publish(&id(session), secret).await.unwrap(), Routed::ToWriter);
    }
}

#[test]
fn failures_that_nobody_is_told_of_are_logged() {
    take_notes();
    live::run(async {
        let disk = Disk::new();
        let store = MemoryStore::new(&disk);
        disk.set_full(true);

        // In the background, once.
        let writer = create(&store, "background").await;
        publish_secrets(&store, "background").await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let lines = lines_of("background");
        assert_eq!(lines.len(), 1, "{lines:?}");
        for part in ["could not be stored", "kind=\"io\"", "first=0", "events=3"] {
            assert!(lines[0].contains(part), "{lines:?}");
        }
        // Who is told needs no line.
        writer.flush(&never()).await.unwrap_err();
        writer.close().await.unwrap_err();
        assert_eq!(lines_of("background").len(), 1);

        // When a handle is dropped that has something to store.
        let writer = create(&store, "dropped").await;
        publish_secrets(&store, "dropped").await;
        drop(writer);
        store.flush(&never()).await.unwrap();
        assert!(lines_of("dropped")[0].contains("events=3"), "{:?}", lines_of("dropped"));

        // When nobody waits for the end of closing.
        let writer = create(&store, "unheard").await;
        publish_secrets(&store, "unheard").await;
        drop(writer.close());
        store.flush(&never()).await.unwrap();
        assert!(!lines_of("unheard").is_empty());
    });
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(!lines.iter().any(|line| line.contains("canary")), "{lines:?}");
}

#[tokio::test]
async fn a_tail_that_is_cut_off_is_warned_of_by_the_writer_that_cuts_it() {
    take_notes();
    for encoding in disk::BOTH {
        let name = format!("cut-{encoding:?}");
        let disk = disk::Disk::new(encoding);
        store_session(&disk.store(), &name, 3).await;
        let end = disk.bytes(&name).len();
        let torn = "{\"type\":\"todo/write\",\"seq\":3,\"time\":1,\"data\":\"canary\"}\n";
        let torn = disk.encode(torn);
        disk.add(&name, &torn[..torn.len() - 1]);
        // Not by who reads, nor by who opens it to write and does not.
        let store = disk.store();
        read(&*open(&store, &name, Access::Read).await).await;
        let writer = open(&store, &name, Access::Write).await;
        writer.flush(&never()).await.unwrap();
        assert_eq!(lines_of(&name), Vec::<String>::new());
        append(&*writer, 3, 1).await;
        append(&*writer, 4, 1).await;
        let lines = lines_of(&name);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let (offset, bytes) = (format!("offset={end} "), format!("bytes={} ", torn.len() - 1));
        for part in ["cut off the tail", &offset, &bytes, "copied=true"] {
            assert!(lines[0].contains(part), "{part}: {lines:?}");
        }
        assert!(!lines[0].contains("canary"), "{lines:?}");
    }
}
