//! What a list says of sessions, over every backend.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use support::{
    batch, cancelled, create, event_of, id, never, open, store_session,
    watched::{Watched, places},
};
use turnkeep_log::{Blank, Event, SessionHeader};
use turnkeep_store::{
    Access, ListQuery, Revision, SessionStat, SessionStore,
    cold::{BlankGates, BlankProbe, ColdCache, Glance},
};

const CREATED: i64 = 1_700_000_000_000;
const WIDE: BlankGates = BlankGates { max_events: 100, max_bytes: 100_000 };

fn stat_with(event_count: Option<u64>, size_bytes: Option<u64>) -> SessionStat {
    SessionStat {
        header: SessionHeader::new(id("s"), 100),
        revision: Revision::new("r".to_owned()),
        event_count,
        size_bytes,
        modified_at: Some(900),
        hints: None,
    }
}

#[test]
fn the_gate_is_chosen_by_what_is_known() {
    let gates = BlankGates::default();
    assert_eq!((gates.max_events, gates.max_bytes), (16, 1024));
    let no_events = BlankGates { max_events: 0, ..gates };
    let no_bytes = BlankGates { max_bytes: 0, ..gates };
    let off = BlankGates { max_events: 0, max_bytes: 0 };
    let table = [
        // (events, bytes): both gates, no events, no bytes, off
        (Some(16), None, [true, false, true, false]),
        (Some(17), None, [false, false, false, false]),
        (None, Some(1024), [true, true, false, false]),
        (None, Some(1025), [false, false, false, false]),
        // The number of events decides, whatever the size.
        (Some(16), Some(1 << 30), [true, false, true, false]),
        (Some(17), Some(1), [false, false, false, false]),
        (Some(0), Some(0), [true, false, true, false]),
        (None, None, [false, false, false, false]),
    ];
    for (events, bytes, expected) in table {
        let stat = stat_with(events, bytes);
        let found = [gates, no_events, no_bytes, off].map(|gates| gates.let_in(&stat));
        assert_eq!(found, expected, "{events:?} events, {bytes:?} bytes");
    }
}

#[test]
fn updated_is_when_it_was_made_or_last_spoken_in() {
    let stat = stat_with(None, None);
    let at = |last_prompt_at| Glance::of(&stat, Blank { blank: false, last_prompt_at });
    assert_eq!((at(None).updated_at, at(Some(50)).updated_at), (100, 100));
    assert_eq!((at(Some(150)).updated_at, at(Some(-1)).updated_at), (150, 100));
    assert!(!at(Some(150)).updated_at_estimated);
    let unread = Glance::unread(&stat);
    let expected =
        Glance { blank: false, last_prompt_at: None, updated_at: 900, updated_at_estimated: true };
    assert_eq!(unread, expected);
    let timeless = SessionStat { modified_at: None, ..stat };
    assert_eq!(Glance::unread(&timeless).updated_at, 100);
}

fn prompt(seq: u64, source: &str) -> Event {
    let data =
        format!(r#"{{"content":[],"source":{{"kind":"{source}"}},"role":"user","id":"m{seq}"}}"#);
    let time = CREATED.unsigned_abs() + seq;
    let text = format!(
        r#"{{"type":"user/message","seq":{seq},"time":{time},"data":{data},"surfaceOp":"append"}}"#
    );
    Event::parse(&text.into()).unwrap()
}

/// Events that do not get much smaller when they are compressed.
fn noise(count: u64) -> Vec<Event> {
    let scrambled = |seq: u64| (seq + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let data = |seq| format!(r#"{{"todos":[],"n":"{:x}"}}"#, scrambled(seq));
    (0..count).map(|seq| event_of("todo/write", seq, &data(seq))).collect()
}

fn turn_start(seq: u64) -> Event {
    event_of("turn/start", seq, r#"{"turn":1}"#)
}

async fn store_events(store: &dyn SessionStore, name: &str, events: Vec<Event>) {
    let writer = create(store, name).await;
    writer.append(events, &never()).await.unwrap();
    writer.close().await.unwrap();
}

async fn extend(store: &dyn SessionStore, name: &str, events: Vec<Event>) {
    let writer = open(store, name, Access::Write).await;
    writer.append(events, &never()).await.unwrap();
    writer.close().await.unwrap();
}

/// The sessions as the listing has them, by id.
async fn listed(store: &dyn SessionStore) -> Vec<SessionStat> {
    let list = store.list(&ListQuery::default(), &never()).await.unwrap();
    let mut stats: Vec<_> = list.entries.into_iter().filter_map(|entry| entry.stat).collect();
    stats.sort_by(|left, right| left.header.id.cmp(&right.header.id));
    stats
}

async fn glances(probe: &BlankProbe, watched: &Arc<Watched>) -> Vec<Glance> {
    let stats = listed(&**watched).await;
    probe.glances(&watched.store(), &stats, &never()).await.unwrap()
}

fn blank() -> Glance {
    Glance { blank: true, last_prompt_at: None, updated_at: CREATED, updated_at_estimated: false }
}

#[tokio::test]
async fn small_sessions_are_read_and_large_ones_are_shown() {
    for place in places() {
        let watched = Watched::new((place.instance)());
        store_events(&*watched, "a", batch(0, 2)).await;
        store_events(&*watched, "b", vec![turn_start(0), prompt(1, "user"), prompt(2, "tool")])
            .await;
        store_events(&*watched, "c", noise(200)).await;
        let probe = BlankProbe::new(WIDE, &ColdCache::default());
        // A log that is compressed is small.
        let gates = BlankGates { max_events: 100, max_bytes: 1200 };
        let narrow = BlankProbe::new(gates, &ColdCache::default());
        let stats = listed(&*watched).await;
        let found = glances(&narrow, &watched).await;
        assert_eq!(found[0], blank(), "{}", place.name);
        let spoken = Glance {
            blank: false,
            last_prompt_at: Some(CREATED + 1),
            updated_at: CREATED + 1,
            updated_at_estimated: false,
        };
        assert_eq!(found[1], spoken, "{}", place.name);
        assert_eq!(found[2], Glance::unread(&stats[2]), "{}", place.name);
        assert!(found[2].updated_at_estimated && !found[2].blank);
        assert_eq!((watched.reads(), watched.stats()), (2, 0), "{}", place.name);
        assert_eq!(glances(&probe, &watched).await[0], blank());
    }
}

#[tokio::test]
async fn a_probe_that_is_off_asks_for_nothing() {
    for place in places() {
        let watched = Watched::new((place.instance)());
        store_session(&*watched, "s", 1).await;
        let off = BlankGates { max_events: 0, max_bytes: 0 };
        let probe = BlankProbe::new(off, &ColdCache::default());
        let stats = listed(&*watched).await;
        let found = glances(&probe, &watched).await;
        assert_eq!(found, [Glance::unread(&stats[0])], "{}", place.name);
        assert_eq!((watched.reads(), watched.stats()), (0, 0));
        // Nor does one whose only open gate is the other one.
        let other = if stats[0].event_count.is_some() {
            BlankGates { max_events: 0, max_bytes: u64::MAX }
        } else {
            BlankGates { max_events: u64::MAX, max_bytes: 0 }
        };
        let probe = BlankProbe::new(other, &ColdCache::default());
        assert_eq!(glances(&probe, &watched).await, found, "{}", place.name);
        assert_eq!(watched.reads(), 0);
    }
}

#[tokio::test]
async fn what_is_known_not_to_be_blank_is_not_read_again() {
    for place in places() {
        let watched = Watched::new((place.instance)());
        store_events(&*watched, "s", vec![turn_start(0), prompt(1, "user")]).await;
        let probe = BlankProbe::new(WIDE, &ColdCache::default());
        let first = glances(&probe, &watched).await[0];
        assert_eq!((first.blank, first.last_prompt_at), (false, Some(CREATED + 1)));
        assert_eq!(glances(&probe, &watched).await[0], first);
        extend(&*(place.instance)(), "s", vec![prompt(2, "user")]).await;
        let later = glances(&probe, &watched).await[0];
        assert_eq!(watched.reads(), 1, "{}", place.name);
        // Somebody may have spoken since: when it was updated is a guess again.
        assert_eq!((later.blank, later.last_prompt_at), (false, Some(CREATED + 1)));
        assert!(later.updated_at_estimated);
    }
}

#[tokio::test]
async fn what_is_known_to_be_blank_is_read_again_once_it_changed() {
    for place in places() {
        let watched = Watched::new((place.instance)());
        store_session(&*watched, "s", 1).await;
        let probe = BlankProbe::new(WIDE, &ColdCache::default());
        assert!(glances(&probe, &watched).await[0].blank);
        assert!(glances(&probe, &watched).await[0].blank);
        assert_eq!(watched.reads(), 1, "{}", place.name);
        extend(&*(place.instance)(), "s", vec![turn_start(1)]).await;
        assert!(!glances(&probe, &watched).await[0].blank, "{}", place.name);
        assert_eq!(watched.reads(), 2);
    }
}

#[tokio::test]
async fn what_someone_has_looked_at_is_not_read() {
    for place in places() {
        let watched = Watched::new((place.instance)());
        store_events(&*watched, "a", vec![turn_start(0)]).await;
        store_session(&*watched, "b", 1).await;
        let cache = ColdCache::default();
        for name in ["a", "b"] {
            cache.observe(&watched.store(), &id(name), &never()).await.unwrap();
        }
        let probe = BlankProbe::new(WIDE, &cache);
        let found: Vec<bool> =
            glances(&probe, &watched).await.iter().map(|glance| glance.blank).collect();
        assert_eq!((found, watched.reads()), (vec![false, true], 2), "{}", place.name);
        // And what it reads itself pushes nothing out of the cache.
        for number in 0..9 {
            store_session(&*watched, &format!("c{number}"), 1).await;
        }
        glances(&probe, &watched).await;
        assert_eq!((watched.reads(), cache.len()), (11, 2));
        // Of another session of this id nothing is known, nor of one in another store.
        let other = Watched::new((place.instance)());
        glances(&probe, &other).await;
        assert_eq!(other.reads(), 11, "{}", place.name);
    }
}

#[tokio::test]
async fn sixteen_are_read_at_a_time() {
    for place in places() {
        let watched = Watched::new((place.instance)());
        for number in 0..20 {
            store_session(&*watched, &format!("s{number:02}"), 1).await;
        }
        let probe = BlankProbe::new(WIDE, &ColdCache::default());
        let gate = watched.hold_reads();
        let stats = listed(&*watched).await;
        let (store, probing) = (watched.store(), probe.clone());
        let glances =
            tokio::spawn(async move { probing.glances(&store, &stats, &never()).await.unwrap() });
        watched.reads_begun(16).await;
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert_eq!(watched.reads(), 16, "{}", place.name);
        gate.add_permits(20);
        assert_eq!(glances.await.unwrap(), vec![blank(); 20]);
        assert_eq!((watched.reads(), watched.most_reading()), (20, 16));
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_shown() {
    for place in places() {
        let watched = Watched::new((place.instance)());
        store_events(&*watched, "bad", vec![event_of("assistant/message", 0, "{}")]).await;
        store_session(&*watched, "good", 1).await;
        let probe = BlankProbe::new(WIDE, &ColdCache::default());
        let stats = listed(&*watched).await;
        let found = glances(&probe, &watched).await;
        assert_eq!(found, [Glance::unread(&stats[0]), blank()], "{}", place.name);
        // One that has gone since it was listed.
        let header = SessionHeader::new(id("gone"), 100);
        let gone = SessionStat { header, ..stats[1].clone() };
        let store = watched.store();
        let found = probe.glances(&store, std::slice::from_ref(&gone), &never()).await.unwrap();
        assert_eq!(found, [Glance::unread(&gone)], "{}", place.name);
        // One that fails this time is probed the next time.
        watched.fail_reads(2);
        store_session(&*watched, "late", 1).await;
        let found: Vec<bool> =
            glances(&probe, &watched).await.iter().map(|glance| glance.blank).collect();
        assert_eq!(found.iter().filter(|blank| **blank).count(), 1, "{}", place.name);
        assert_eq!(glances(&probe, &watched).await[2], blank());
        assert!(probe.glances(&store, &stats, &cancelled()).await.is_err());
    }
}

#[tokio::test]
async fn whoever_writes_a_session_knows_better() {
    for place in places() {
        let watched = Watched::new((place.instance)());
        let writer = create(&*watched, "s").await;
        writer.append(batch(0, 1), &never()).await.unwrap();
        let known = Blank { blank: true, last_prompt_at: Some(CREATED + 7) };
        let asked = Arc::new(AtomicBool::new(false));
        let answers = Arc::clone(&asked);
        let probe = BlankProbe::new(WIDE, &ColdCache::default())
            .with_live(move |_| answers.load(SeqCst).then_some(known));
        let found = glances(&probe, &watched).await[0];
        assert_eq!((found.blank, found.updated_at_estimated), (false, true), "someone is at it");
        asked.store(true, SeqCst);
        let found = glances(&probe, &watched).await[0];
        let stats = listed(&*watched).await;
        assert_eq!(found, Glance::of(&stats[0], known), "{}", place.name);
        assert_eq!(watched.reads(), 0);
        writer.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_session_that_is_taken_up_while_it_is_probed_is_live() {
    for place in places() {
        let watched = Watched::new((place.instance)());
        store_session(&*watched, "s", 1).await;
        let live = Arc::new(AtomicBool::new(false));
        let (seen, attach) = (Arc::clone(&live), Arc::clone(&live));
        let known = Blank { blank: false, last_prompt_at: Some(CREATED + 9) };
        let probe = BlankProbe::new(WIDE, &ColdCache::default())
            .with_live(move |_| seen.load(SeqCst).then_some(known));
        watched.after_read(move || async move { attach.store(true, SeqCst) });
        let found = glances(&probe, &watched).await[0];
        assert_eq!(found.last_prompt_at, Some(CREATED + 9), "{}", place.name);

        // By the store alone it is known that someone has it, and not what they make of it.
        live.store(false, SeqCst);
        let probe = BlankProbe::new(WIDE, &ColdCache::default());
        let held = Arc::new(tokio::sync::Mutex::new(None));
        let (holds, store) = (Arc::clone(&held), watched.store());
        watched.after_read(move || async move {
            *holds.lock().await = Some(open(&*store, "s", Access::Write).await);
        });
        let found = glances(&probe, &watched).await[0];
        assert!(!found.blank && found.updated_at_estimated, "{}", place.name);
        held.lock().await.take().unwrap().close().await.unwrap();
        assert!(glances(&probe, &watched).await[0].blank);
    }
}
