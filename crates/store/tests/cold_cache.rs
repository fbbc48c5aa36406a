//! The cache of cold sessions, over every backend.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::SeqCst},
};

use support::{
    append, batch, cancelled, create, event_of, header, id, never, open, seqs, store_session,
    texts,
    watched::{Watched, places},
};
use tokio_util::sync::CancellationToken;
use turnkeep_log::{Event, Seq, SessionHeader, repair};
use turnkeep_store::{
    Access, Cancel, SessionStore,
    cold::{ColdCache, ColdError, ColdOptions, Lease, WINDOW_SIDE},
    memory::{Disk, MemoryStore},
};

/// A store that is being watched, and a place to make others on.
struct Stage {
    name: &'static str,
    watched: Arc<Watched>,
    other: Box<dyn Fn() -> Arc<dyn SessionStore>>,
}

fn stages() -> Vec<Stage> {
    let stage = |place: support::watched::Place| Stage {
        name: place.name,
        watched: Watched::new((place.instance)()),
        other: place.instance,
    };
    places().into_iter().map(stage).collect()
}

impl Stage {
    async fn observe(&self, cache: &ColdCache, name: &str) -> Lease {
        cache.observe(&self.watched.store(), &id(name), &never()).await.unwrap()
    }

    /// Writes as another process would.
    async fn extend(&self, name: &str, first: u64, count: u64) {
        let writer = open(&*(self.other)(), name, Access::Write).await;
        append(&*writer, first, count).await;
        writer.close().await.unwrap();
    }
}

fn open_turn() -> Vec<Event> {
    vec![
        event_of("turn/start", 0, r#"{"turn":1}"#),
        event_of("step/start", 1, r#"{"turn":1,"step":1}"#),
    ]
}

#[tokio::test]
async fn what_has_not_changed_is_read_once() {
    for stage in stages() {
        store_session(&*stage.watched, "s", 3).await;
        let cache = ColdCache::default();
        let first = stage.observe(&cache, "s").await;
        let second = stage.observe(&cache, "s").await;
        assert_eq!(first.events(), batch(0, 3), "{}", stage.name);
        assert_eq!(first.header(), &header("s"));
        let stat = stage.watched.stat(&id("s"), &never()).await.unwrap().unwrap();
        assert_eq!(first.revision(), &stat.revision);
        assert!(first.same_reading(&second) && !first.is_live());
        assert_eq!(stage.watched.reads(), 1, "{}", stage.name);
        drop((first, second));
        stage.observe(&cache, "s").await;
        assert_eq!(stage.watched.reads(), 1, "kept without a lease");
    }
}

#[tokio::test]
async fn what_has_changed_is_read_again_and_leases_keep_what_they_saw() {
    for stage in stages() {
        store_session(&*stage.watched, "s", 3).await;
        let cache = ColdCache::default();
        let old = stage.observe(&cache, "s").await;
        stage.extend("s", 3, 2).await;
        let new = stage.observe(&cache, "s").await;
        assert_eq!(new.events(), batch(0, 5), "{}", stage.name);
        assert_eq!(old.events(), batch(0, 3));
        assert_eq!(cache.len(), 1, "one for each session");
        drop(old);
        assert!(stage.observe(&cache, "s").await.same_reading(&new), "its lease held nothing else");
        assert_eq!(stage.watched.reads(), 2);
    }
}

#[tokio::test]
async fn the_balanced_view_is_closed_in_memory_only() {
    for stage in stages() {
        let writer = create(&*stage.watched, "s").await;
        writer.append(open_turn(), &never()).await.unwrap();
        writer.close().await.unwrap();
        let cache = ColdCache::default();
        let seen = stage.observe(&cache, "s").await;
        let closers = repair::closers(&open_turn());
        assert_eq!(seen.closers(), closers);
        let balanced: Vec<_> = seen.balanced().cloned().collect();
        assert_eq!(balanced, [open_turn(), closers].concat(), "{}", stage.name);
        assert_eq!(seqs(&balanced), [0, 1, 2, 3]);
        assert_eq!(texts(&balanced)[3].matches("interrupted").count(), 1);
        assert_eq!(seen.events(), open_turn());
        let reader = open(&*(stage.other)(), "s", Access::Read).await;
        assert_eq!(support::read(&*reader).await, open_turn(), "nothing was stored");
    }
}

#[tokio::test]
async fn another_instance_is_another_source() {
    for stage in stages() {
        store_session(&*stage.watched, "s", 2).await;
        let cache = ColdCache::default();
        let first = stage.observe(&cache, "s").await;
        let twin = Watched::new((stage.other)());
        let second = cache.observe(&twin.store(), &id("s"), &never()).await.unwrap();
        if stage.name.starts_with("jsonl") {
            assert_eq!(first.revision(), second.revision(), "the revision alone would not tell");
        }
        assert_eq!((stage.watched.reads(), twin.reads()), (1, 1), "{}", stage.name);
        assert!(!first.same_reading(&second));
        assert_eq!(cache.len(), 1);
    }
}

#[tokio::test]
async fn a_session_that_is_being_written_is_read_each_time_and_left_open() {
    for stage in stages() {
        let writer = create(&*stage.watched, "s").await;
        let cache = ColdCache::default();
        let pending = stage.observe(&cache, "s").await;
        assert!(pending.is_live() && pending.events().is_empty(), "{}", stage.name);
        writer.append(open_turn(), &never()).await.unwrap();
        let seen = stage.observe(&cache, "s").await;
        assert!(seen.is_live() && seen.closers().is_empty());
        assert_eq!(seen.balanced().count(), 2);
        stage.observe(&cache, "s").await;
        assert_eq!((stage.watched.reads(), cache.len()), (3, 0));
        // To another store it is cold, whoever writes it.
        let elsewhere = cache.observe(&(stage.other)(), &id("s"), &never()).await.unwrap();
        assert_eq!((elsewhere.is_live(), elsewhere.closers().len()), (false, 2));
        writer.close().await.unwrap();
        assert!(!stage.observe(&cache, "s").await.is_live());
    }
}

#[tokio::test]
async fn a_session_opened_to_write_meanwhile_is_live() {
    for stage in stages() {
        let writer = create(&*stage.watched, "s").await;
        writer.append(open_turn(), &never()).await.unwrap();
        writer.close().await.unwrap();
        for step in ["after stat", "before read", "after read"] {
            let cache = ColdCache::default();
            let held = Arc::new(tokio::sync::Mutex::new(None));
            let attach = {
                let (held, store) = (Arc::clone(&held), stage.watched.store());
                move || async move {
                    *held.lock().await = Some(open(&*store, "s", Access::Write).await);
                }
            };
            match step {
                "after stat" => stage.watched.after_stat(attach),
                "before read" => stage.watched.before_read(attach),
                _ => stage.watched.after_read(attach),
            }
            let seen = stage.observe(&cache, "s").await;
            assert!(seen.is_live() && seen.closers().is_empty(), "{}, {step}", stage.name);
            assert_eq!(cache.len(), 0, "{step}");
            let writer = held.lock().await.take().unwrap();
            writer.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_session_closed_meanwhile_is_cold() {
    for stage in stages() {
        let writer = create(&*stage.watched, "s").await;
        writer.append(open_turn(), &never()).await.unwrap();
        stage.watched.after_read(move || async move { writer.close().await.unwrap() });
        let seen = stage.observe(&ColdCache::default(), "s").await;
        assert_eq!((seen.is_live(), seen.closers().len()), (false, 2), "{}", stage.name);
    }
}

#[tokio::test]
async fn what_grows_while_it_is_read_counts_as_of_before() {
    for stage in stages() {
        store_session(&*stage.watched, "s", 2).await;
        let cache = ColdCache::default();
        let other = (stage.other)();
        stage.watched.before_read(move || async move {
            let writer = open(&*other, "s", Access::Write).await;
            append(&*writer, 2, 1).await;
            writer.close().await.unwrap();
        });
        let before = stage.watched.stat(&id("s"), &never()).await.unwrap().unwrap().revision;
        let seen = stage.observe(&cache, "s").await;
        assert_eq!(seen.revision(), &before, "{}", stage.name);
        assert_eq!(seen.events(), batch(0, 3));
        assert_eq!(stage.observe(&cache, "s").await.events(), batch(0, 3));
        assert_eq!(stage.watched.reads(), 2, "it is not taken for what is there now");
        stage.observe(&cache, "s").await;
        assert_eq!(stage.watched.reads(), 2);
    }
}

#[tokio::test]
async fn those_who_look_at_the_same_time_share_one_reading() {
    for stage in stages() {
        store_session(&*stage.watched, "s", 3).await;
        let cache = ColdCache::default();
        let gate = stage.watched.hold_reads();
        let looks: Vec<_> = (0..8)
            .map(|_| {
                let (cache, store) = (cache.clone(), stage.watched.store());
                tokio::spawn(async move { cache.observe(&store, &id("s"), &never()).await })
            })
            .collect();
        while stage.watched.stats() < 8 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(8);
        let mut leases = Vec::new();
        for look in looks {
            leases.push(look.await.unwrap().unwrap());
        }
        assert!(leases.iter().all(|lease| lease.same_reading(&leases[0])), "{}", stage.name);
        assert_eq!(stage.watched.reads(), 1, "{}", stage.name);
    }
}

#[tokio::test]
async fn a_failure_is_shared_and_not_kept() {
    for stage in stages() {
        store_session(&*stage.watched, "s", 3).await;
        let cache = ColdCache::default();
        stage.watched.fail_reads(1);
        let gate = stage.watched.hold_reads();
        let looks: Vec<_> = (0..3)
            .map(|_| {
                let (cache, store) = (cache.clone(), stage.watched.store());
                tokio::spawn(async move { cache.observe(&store, &id("s"), &never()).await })
            })
            .collect();
        while stage.watched.stats() < 3 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(9);
        for look in looks {
            let failure = look.await.unwrap().unwrap_err();
            assert_eq!(failure.kind(), "io", "{}", stage.name);
            assert_eq!(failure.to_string(), "cannot read: timed out");
        }
        assert_eq!((stage.watched.reads(), cache.len()), (1, 0));
        assert_eq!(stage.observe(&cache, "s").await.events().len(), 3);
    }
}

#[tokio::test]
async fn who_stops_waiting_takes_nothing_from_the_others() {
    for stage in stages() {
        store_session(&*stage.watched, "s", 3).await;
        let cache = ColdCache::default();
        let gate = stage.watched.hold_reads();
        let token = CancellationToken::new();
        let look = |cancel: Cancel| {
            let (cache, store) = (cache.clone(), stage.watched.store());
            tokio::spawn(async move { cache.observe(&store, &id("s"), &cancel).await })
        };
        let called_off = look(token.clone().into());
        let dropped = look(never());
        let patient = look(never());
        while stage.watched.stats() < 3 {
            tokio::task::yield_now().await;
        }
        stage.watched.reads_begun(1).await;
        token.cancel();
        let failure = called_off.await.unwrap().unwrap_err();
        assert_eq!(failure.kind(), "cancelled", "{}", stage.name);
        dropped.abort();
        let _ = dropped.await;
        gate.add_permits(1);
        assert_eq!(patient.await.unwrap().unwrap().events().len(), 3);
        assert_eq!((stage.watched.reads(), stage.watched.called_off()), (1, 0));
    }
}

#[tokio::test]
async fn a_reading_that_nobody_waits_for_is_called_off() {
    for stage in stages() {
        store_session(&*stage.watched, "s", 3).await;
        let cache = ColdCache::default();
        let gate = stage.watched.hold_reads();
        let (looking, store) = (cache.clone(), stage.watched.store());
        let alone =
            tokio::spawn(
                async move { looking.observe(&store, &id("s"), &never()).await.map(drop) },
            );
        stage.watched.reads_begun(1).await;
        alone.abort();
        while stage.watched.called_off() == 0 {
            tokio::task::yield_now().await;
        }
        // The next one does not get what came of that.
        gate.add_permits(1);
        assert_eq!(stage.observe(&cache, "s").await.events().len(), 3, "{}", stage.name);
        assert_eq!(stage.watched.reads(), 2);
    }
}

#[tokio::test]
async fn a_late_reading_does_not_take_the_place_of_a_newer_one() {
    for stage in stages() {
        store_session(&*stage.watched, "s", 1).await;
        let cache = ColdCache::default();
        let (go, wait) = tokio::sync::oneshot::channel();
        stage.watched.before_read(move || async move { wait.await.unwrap() });
        let (looking, store) = (cache.clone(), stage.watched.store());
        let slow = tokio::spawn(async move { looking.observe(&store, &id("s"), &never()).await });
        stage.watched.reads_begun(1).await;
        stage.extend("s", 1, 1).await;
        let quick = stage.observe(&cache, "s").await;
        go.send(()).unwrap();
        let slow = slow.await.unwrap().unwrap();
        assert_ne!(slow.revision(), quick.revision(), "{}", stage.name);
        let next = stage.observe(&cache, "s").await;
        assert!(next.same_reading(&quick), "{}", stage.name);
        assert_eq!(stage.watched.reads(), 2);
    }
}

#[tokio::test]
async fn of_what_no_lease_pins_the_last_five_are_kept() {
    for stage in stages() {
        for name in ["a", "b", "c", "d", "e", "f", "g"] {
            store_session(&*stage.watched, name, 1).await;
        }
        let cache = ColdCache::default();
        let pinned = stage.observe(&cache, "a").await;
        for name in ["b", "c", "d", "e", "f"] {
            stage.observe(&cache, name).await;
        }
        assert_eq!(cache.len(), 6, "{}", stage.name);
        // Looked at again, so that it is not the oldest any more.
        stage.observe(&cache, "b").await;
        stage.observe(&cache, "g").await;
        assert_eq!(cache.len(), 6);
        let reads = stage.watched.reads();
        stage.observe(&cache, "b").await;
        stage.observe(&cache, "a").await;
        assert_eq!(stage.watched.reads(), reads, "pinned, and used");
        stage.observe(&cache, "c").await;
        assert_eq!(stage.watched.reads(), reads + 1, "let go");
        let again = pinned.clone();
        drop(pinned);
        assert_eq!(cache.len(), 6, "a clone pins, too");
        drop(again);
        assert_eq!(cache.len(), 5, "evicted on release");
    }
}

#[tokio::test]
async fn what_is_kept_is_bounded_in_bytes_too() {
    for stage in stages() {
        for name in ["a", "b", "large"] {
            let count = if name == "large" { 200 } else { 1 };
            store_session(&*stage.watched, name, count).await;
        }
        let small = stage.observe(&ColdCache::default(), "a").await.bytes();
        let options = ColdOptions { max_bytes: small * 2 + 1, ..ColdOptions::default() };
        let cache = ColdCache::new(options);
        stage.observe(&cache, "a").await;
        stage.observe(&cache, "b").await;
        assert_eq!(cache.len(), 2, "{}", stage.name);
        let large = stage.observe(&cache, "large").await;
        assert!(large.bytes() > options.max_bytes);
        assert_eq!(cache.len(), 3, "pinned ones do not count");
        drop(large);
        assert!(cache.len() <= 2, "{}", stage.name);
        let none = ColdCache::new(ColdOptions { max_unpinned: 0, ..options });
        let lease = stage.observe(&none, "a").await;
        assert!(stage.observe(&none, "a").await.same_reading(&lease));
        drop(lease);
        assert!(none.is_empty());
    }
}

#[tokio::test]
async fn failures_have_their_kinds() {
    for stage in stages() {
        let cache = ColdCache::default();
        let store = stage.watched.store();
        let absent = cache.observe(&store, &id("absent"), &never()).await.unwrap_err();
        assert_eq!(absent.kind(), "not_found", "{}", stage.name);
        store_session(&*stage.watched, "s", 1).await;
        let called_off = cache.observe(&store, &id("s"), &cancelled()).await.unwrap_err();
        assert_eq!(called_off.kind(), "cancelled");
        assert_eq!(called_off.to_string(), "observe was cancelled before it took effect");

        for (name, kind, event_type, data) in [
            ("corrupt", "corrupt", "assistant/message", "{}"),
            ("unknown", "format_unsupported", "acme/unheard-of", "{}"),
        ] {
            let writer = create(&*stage.watched, name).await;
            writer.append(vec![event_of(event_type, 0, data)], &never()).await.unwrap();
            writer.close().await.unwrap();
            let failure = cache.observe(&store, &id(name), &never()).await.unwrap_err();
            assert_eq!(failure.kind(), kind, "{}", stage.name);
        }
        let newer = SessionHeader { version: 7, ..header("newer") };
        let writer = store.create(newer, &never()).await.unwrap();
        writer.flush(&never()).await.unwrap();
        writer.close().await.unwrap();
        let failure = cache.observe(&store, &id("newer"), &never()).await.unwrap_err();
        assert_eq!(failure.kind(), "format_unsupported", "{}", stage.name);
        assert!(cache.is_empty());
    }
}

#[tokio::test]
async fn a_session_that_never_stays_the_same_is_a_conflict() {
    // The store shows another session at every look, as after a deletion and a new creation.
    let (one, two) = (Disk::new(), Disk::new());
    let stores = [&one, &two].map(MemoryStore::new);
    for (created_at, store) in [1, 2].into_iter().zip(&stores) {
        let header = SessionHeader { created_at, ..header("s") };
        let writer = store.create(header, &never()).await.unwrap();
        writer.flush(&never()).await.unwrap();
    }
    let store: Arc<dyn SessionStore> = Arc::new(support::watched::TwoFaced(
        Arc::new(stores[0].clone()),
        Arc::new(stores[1].clone()),
    ));
    let failure = ColdCache::default().observe(&store, &id("s"), &never()).await.unwrap_err();
    assert!(matches!(failure, ColdError::SourceConflict(_)), "{failure}");
    assert_eq!(
        failure.to_string(),
        "session \"s\" changed while it was read: another session took its id; try again"
    );
}

#[tokio::test]
async fn several_are_read_four_at_a_time_and_come_in_order() {
    for stage in stages() {
        let names: Vec<String> = (0..11).map(|number| format!("s{number}")).collect();
        for name in &names {
            store_session(&*stage.watched, name, 1).await;
        }
        let mut ids: Vec<_> = names.iter().map(|name| id(name)).collect();
        ids.insert(3, id("absent"));
        let cache = ColdCache::default();
        let gate = stage.watched.hold_reads();
        let (looking, store, wanted) = (cache.clone(), stage.watched.store(), ids.clone());
        let looks =
            tokio::spawn(async move { looking.observe_all(&store, &wanted, &never()).await });
        stage.watched.reads_begun(4).await;
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert_eq!(stage.watched.reads(), 4, "{}", stage.name);
        gate.add_permits(11);
        let outcomes = looks.await.unwrap();
        assert_eq!(stage.watched.most_reading(), 4);
        assert_eq!(outcomes.len(), 12);
        for (at, (outcome, wanted)) in outcomes.iter().zip(&ids).enumerate() {
            match outcome {
                Ok(lease) => assert_eq!(lease.id(), wanted),
                Err(failure) => assert_eq!((at, failure.kind()), (3, "not_found")),
            }
        }
        assert!(cache.observe_all(&stage.watched.store(), &[], &never()).await.is_empty());
    }
}

#[tokio::test]
async fn a_window_shows_fifty_on_each_side_at_most() {
    for stage in stages() {
        store_session(&*stage.watched, "s", 200).await;
        let seen = stage.observe(&ColdCache::default(), "s").await;
        let window = |around, before, after| seqs(seen.window(Seq(around), before, after));
        assert_eq!(window(100, 2, 3), [98, 99, 100, 101, 102, 103]);
        assert_eq!(window(100, 0, 0), [100]);
        assert_eq!(window(1, 5, 0), [0, 1]);
        assert_eq!(window(199, 1, 9), [198, 199]);
        assert_eq!(window(200, 5, 5), [0; 0], "no such event");
        assert_eq!(window(u64::MAX, usize::MAX, usize::MAX), [0; 0]);
        let widest = window(100, usize::MAX, usize::MAX);
        assert_eq!(widest, (50..=150).collect::<Vec<_>>());
        assert_eq!(widest.len(), 2 * WINDOW_SIDE + 1);
    }
}

#[tokio::test]
async fn a_log_without_a_whole_first_line_is_told_from_no_log() {
    for encoding in support::disk::BOTH {
        let disk = support::disk::Disk::new(encoding);
        disk.lay("half", b"");
        let store: Arc<dyn SessionStore> = Arc::new(disk.store());
        assert!(store.stat(&id("half"), &never()).await.unwrap().is_none());
        let cache = ColdCache::default();
        let failure = cache.observe(&store, &id("half"), &never()).await.unwrap_err();
        assert_eq!(failure.kind(), "corrupt", "{failure}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_look_is_never_older_than_what_was_acknowledged_before() {
    for stage in stages() {
        store_session(&*stage.watched, "s", 1).await;
        let cache = ColdCache::new(ColdOptions { max_unpinned: 1, ..ColdOptions::default() });
        let acknowledged = Arc::new(AtomicU64::new(1));
        let observers: Vec<_> = (0..4)
            .map(|_| {
                let (cache, store) = (cache.clone(), stage.watched.store());
                let acknowledged = Arc::clone(&acknowledged);
                tokio::spawn(async move {
                    let mut longest = 0;
                    while longest < 40 {
                        let least = acknowledged.load(SeqCst);
                        let seen = cache.observe(&store, &id("s"), &never()).await.unwrap();
                        longest = seen.events().len() as u64;
                        assert!(longest >= least, "{longest} < {least}");
                        assert_eq!(seen.events(), batch(0, longest));
                    }
                })
            })
            .collect();
        for seq in 1..40 {
            stage.extend("s", seq, 1).await;
            acknowledged.store(seq + 1, SeqCst);
        }
        for observer in observers {
            observer.await.unwrap();
        }
        assert!(cache.len() <= 1, "{}", stage.name);
    }
}
