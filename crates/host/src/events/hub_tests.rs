use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use serde_json::json;
use turnkeep_log::Text;

use super::{Hub, Moment, pause};
use crate::events::{
    EventId, Origin, Published,
    client::{Start, Subscription, Taken, Watch},
    event::{Event, Form, Wire},
    frames::{Channel, ResetReason},
};

const GLOBAL: Form = Form { wire: Wire::Sse, channel: Channel::Global, reasoning: true };

fn hub(replay: usize, queue: usize) -> Arc<Hub> {
    Hub::new(replay, queue)
}

fn watch(last: Option<EventId>) -> Watch {
    Watch { form: GLOBAL, directory: None, last: last.map(|id| id.to_string()) }
}

fn event(directory: Option<&str>, payload: &serde_json::Value) -> Published {
    Published {
        directory: directory.map(str::to_owned),
        project: None,
        payload: Text::from(payload.to_string()),
        origin: Origin::Upstream,
    }
}

fn note(hub: &Hub, text: &str) -> EventId {
    let payload = json!({ "type": "note", "properties": { "text": text } });
    hub.publish(event(Some("/d"), &payload)).unwrap()
}

fn notes(hub: &Hub, count: usize) {
    for _ in 0..count {
        note(hub, &"x".repeat(1000));
    }
}

/// What is there now, or `None` when that is nothing.
fn take(subscription: &mut Subscription) -> Option<Taken> {
    std::future::poll_fn(|context| subscription.poll_take(context)).now_or_never()
}

fn events(taken: Option<Taken>) -> Vec<Arc<Event>> {
    match taken {
        None => Vec::new(),
        Some(Taken::Events(events)) => events,
        Some(other) => panic!("{other:?}"),
    }
}

fn ids(taken: Option<Taken>) -> Vec<EventId> {
    events(taken).iter().map(|event| event.id).collect()
}

fn subscribe(hub: &Hub, watch: Watch) -> (Subscription, Start) {
    hub.subscribe(watch).unwrap()
}

#[test]
fn events_are_numbered_without_a_gap() {
    let hub = hub(1 << 20, 1 << 20);
    let (mut client, start) = subscribe(&hub, watch(None));
    let first = note(&hub, "a");
    assert_eq!(first.number, start.position.number + 1);
    let second = note(&hub, "b");
    assert_eq!(second, EventId { number: first.number + 1, ..first });
    assert_eq!(ids(take(&mut client)), [first, second]);
    assert_eq!(ids(take(&mut client)), []);
}

#[test]
fn a_client_that_comes_back_gets_exactly_what_came_after() {
    let hub = hub(1 << 20, 1 << 20);
    let all: Vec<_> = (0..20).map(|n| note(&hub, &n.to_string())).collect();
    for (at, last) in all.iter().enumerate() {
        let (mut client, start) = subscribe(&hub, watch(Some(*last)));
        assert_eq!(start.reset, None);
        assert_eq!(client.has_passed(&start), at == 19);
        assert_eq!(ids(take(&mut client)), all[at + 1..]);
        assert!(client.has_passed(&start));
    }
    let (mut client, _) = subscribe(&hub, watch(Some(EventId { number: 0, ..all[0] })));
    assert_eq!(ids(take(&mut client)), all);
}

#[test]
fn a_client_from_elsewhere_is_told_to_start_over() {
    let hub = hub(1 << 20, 1 << 20);
    let last = note(&hub, "a");
    let other = self::hub(1, 1).state().position();
    let ahead = EventId { number: last.number + 1, ..last };
    for id in [other.to_string(), ahead.to_string(), "evt-1".to_owned(), String::new()] {
        let (mut client, start) = subscribe(&hub, Watch { last: Some(id), ..watch(None) });
        assert_eq!(start.reset, Some(ResetReason::UnknownEpoch));
        assert_eq!(start.position, last);
        assert_eq!(ids(take(&mut client)), []);
    }
}

#[test]
fn what_is_kept_is_bounded_in_bytes_and_what_is_gone_is_too_old() {
    let hub = hub(64 << 10, 1 << 20);
    let first = note(&hub, "first");
    let ids: Vec<_> = (0..1000).map(|_| note(&hub, &"x".repeat(1000))).collect();
    assert!(hub.stats().replay_bytes <= 70 << 10, "{:?}", hub.stats());
    let (_client, start) = subscribe(&hub, watch(Some(first)));
    assert_eq!(start.reset, Some(ResetReason::TooOld));
    let (mut client, start) = subscribe(&hub, watch(ids.get(990).copied()));
    assert_eq!(start.reset, None);
    assert_eq!(self::ids(take(&mut client)), ids[991..]);
    // Forms that events are sent in count as well.
    for reasoning in [true, false] {
        for wire in [Wire::Sse, Wire::Socket(None), Wire::Socket(Some(Arc::from("/x")))] {
            let form = Form { wire, channel: Channel::Global, reasoning };
            let watch = Watch { form: form.clone(), ..watch(ids.get(980).copied()) };
            let (mut client, _) = subscribe(&hub, watch);
            for event in events(take(&mut client)) {
                event.encoded(&form);
            }
        }
    }
    let full = hub.stats().replay_bytes;
    note(&hub, "one more");
    assert!(hub.stats().replay_bytes <= 70 << 10, "{full} and then {:?}", hub.stats());
}

#[test]
fn a_client_that_does_not_keep_up_is_dropped_and_no_other() {
    let hub = hub(1 << 10, 100 << 10);
    let (mut slow, _) = subscribe(&hub, watch(None));
    let (mut quick, _) = subscribe(&hub, watch(None));
    let mut got = 0;
    for _ in 0..200 {
        note(&hub, &"x".repeat(1000));
        got += events(take(&mut quick)).len();
    }
    let last = note(&hub, "last");
    got += events(take(&mut quick)).len();
    assert_eq!(got, 201);
    assert!(matches!(take(&mut slow), Some(Taken::Slow(id)) if id == last));
    let stats = hub.stats();
    assert_eq!((stats.sse_clients, stats.clients_too_slow), (1, 1));
    assert!(stats.replay_bytes <= 4 << 10, "nothing is kept for it: {stats:?}");
}

#[test]
fn nothing_that_a_client_waits_for_is_forgotten() {
    let hub = hub(0, 1 << 20);
    let (mut client, _) = subscribe(&hub, watch(None));
    let sent: Vec<_> = (0..200).map(|_| note(&hub, &"x".repeat(1000))).collect();
    let mut got = Vec::new();
    while let Some(taken) = take(&mut client) {
        got.extend(ids(Some(taken)));
    }
    assert_eq!(got, sent);
    note(&hub, "after it");
    take(&mut client);
    note(&hub, "all are gone");
    assert!(hub.stats().replay_bytes <= 2 << 10, "{:?}", hub.stats());
}

#[test]
fn one_event_may_be_larger_than_what_may_wait() {
    let hub = hub(1 << 10, 1 << 10);
    let (mut client, _) = subscribe(&hub, watch(None));
    let large = note(&hub, &"x".repeat(1 << 20));
    assert_eq!(ids(take(&mut client)), [large]);
}

#[test]
fn coming_back_is_not_being_slow() {
    let hub = hub(1 << 20, 10 << 10);
    let first = note(&hub, "first");
    notes(&hub, 500);
    let (mut client, start) = subscribe(&hub, watch(Some(first)));
    assert_eq!(start.reset, None);
    note(&hub, "one more");
    let mut got = 0;
    while let Some(taken) = take(&mut client) {
        got += events(Some(taken)).len();
    }
    assert_eq!(got, 501);
    // Once it has caught up it is as any other.
    notes(&hub, 100);
    assert!(matches!(take(&mut client), Some(Taken::Slow(_))));
}

#[test]
fn what_is_not_for_a_client_does_not_wait_for_it() {
    let hub = hub(1 << 20, 10 << 10);
    let form = Form { channel: Channel::Directory, ..GLOBAL };
    let here = Watch { form, directory: Some(Arc::from("/here")), last: None };
    let (mut client, _) = subscribe(&hub, here);
    notes(&hub, 100);
    let payload = json!({ "type": "t", "properties": {} });
    let ours = hub.publish(event(Some("/here"), &payload)).unwrap();
    let everyones = hub.publish(event(None, &payload)).unwrap();
    let sync = json!({ "type": "sync", "syncEvent": { "aggregateID": "s" } });
    hub.publish(event(Some("/here"), &sync)).unwrap();
    assert_eq!(ids(take(&mut client)), [ours, everyones]);
}

#[test]
fn an_epoch_ends_with_each_connection_and_everyone_is_told() {
    let hub = hub(1 << 20, 1 << 20);
    hub.connect_upstream();
    let (mut client, _) = subscribe(&hub, watch(None));
    let before = note(&hub, "before");
    hub.lose_upstream();
    assert_eq!(hub.position(Origin::Upstream), None);
    hub.connect_upstream();
    let after = note(&hub, "after");
    assert_eq!(hub.position(Origin::Upstream), Some(after));
    let got = events(take(&mut client));
    let resets: Vec<_> = got.iter().map(|event| event.reset).collect();
    assert_eq!(resets, [None, Some(ResetReason::UpstreamReconnected), None]);
    assert_eq!((got[0].id, got[2].id), (before, after));
    assert_ne!(before.epoch, after.epoch);
    let (mut later, start) = subscribe(&hub, watch(Some(got[1].id)));
    assert_eq!((start.reset, ids(take(&mut later))), (None, vec![after]));
    let (_later, start) = subscribe(&hub, watch(Some(before)));
    assert_eq!(start.reset, Some(ResetReason::UnknownEpoch));
}

#[test]
fn the_store_is_followed_or_it_is_not() {
    let hub = hub(1 << 20, 1 << 20);
    assert_eq!(hub.position(Origin::Store), None);
    hub.follow_store(true);
    let (mut client, start) = subscribe(&hub, watch(None));
    assert_eq!(hub.position(Origin::Store), Some(start.position));
    assert_eq!(hub.position(Origin::Upstream), None);
    hub.follow_store(true);
    assert_eq!(hub.position(Origin::Store), Some(start.position), "nothing was missed");
    hub.follow_store(false);
    assert_eq!(hub.position(Origin::Store), None);
    hub.follow_store(true);
    assert_ne!(hub.position(Origin::Store).unwrap().epoch, start.position.epoch);
    assert!(events(take(&mut client))[0].reset.is_some());
}

#[test]
fn a_moment_is_one_place_in_the_line() {
    let hub = hub(1 << 20, 1 << 20);
    assert!(hub.moment(Origin::Upstream, "s").is_none());
    hub.connect_upstream();
    let moment = || hub.moment(Origin::Upstream, "s").unwrap();
    let empty = moment();
    assert!(empty.live.is_empty());
    let part = json!({ "id": "p", "sessionID": "s", "messageID": "m", "type": "text", "text": "", "time": { "start": 1 } });
    let part =
        json!({ "type": "message.part.updated", "properties": { "sessionID": "s", "part": part } });
    let opened = hub.publish(event(Some("/d"), &part)).unwrap();
    let delta = json!({ "sessionID": "s", "messageID": "m", "partID": "p", "field": "text", "delta": "Hi" });
    let delta = json!({ "type": "message.part.delta", "properties": delta });
    let written = hub.publish(event(Some("/d"), &delta)).unwrap();
    let Moment { id, live, session_events } = moment();
    assert_eq!((id, session_events), (written, written.number));
    assert!(opened.number < session_events && !live.is_empty());
    assert!(hub.moment(Origin::Upstream, "other").unwrap().live.is_empty());
    assert_ne!(moment().state(), empty.state());
    let known = moment().state();
    note(&hub, "elsewhere");
    assert_eq!(moment().state(), known, "what happens elsewhere changes nothing");
    hub.connect_upstream();
    assert!(moment().live.is_empty());
    assert_ne!(moment().state(), known);
}

#[test]
fn what_speaks_of_a_connection_or_is_no_event_is_dropped() {
    let hub = hub(1 << 20, 1 << 20);
    for payload in [
        r#"{"type":"server.connected","properties":{}}"#,
        r#"{"type":"server.heartbeat","properties":{}}"#,
        "{}",
        "[",
        "",
    ] {
        let published = Published {
            directory: None,
            project: None,
            payload: Text::from(payload),
            origin: Origin::Upstream,
        };
        assert_eq!(hub.publish(published), None, "{payload}");
    }
}

#[test]
fn an_event_over_several_lines_goes_out_on_one() {
    let hub = hub(1 << 20, 1 << 20);
    let (mut client, _) = subscribe(&hub, watch(None));
    hub.publish(Published {
        directory: None,
        project: None,
        payload: Text::from("{\"type\":\r\n\"t\",\n\"properties\":{\"a\":\"\\n\"}}"),
        origin: Origin::Store,
    });
    let event = &events(take(&mut client))[0];
    let sent = event.encoded(&GLOBAL).unwrap();
    let expected = r#"data: {"payload":{"type":  "t", "properties":{"a":"\n"}}}"#;
    assert_eq!(sent, format!("id: {}\n{expected}\n\n", event.id));
}

#[test]
fn who_leaves_is_not_counted_any_more() {
    let hub = hub(1 << 20, 1 << 20);
    let count = hub.subscribers();
    let many: Vec<_> = (0..1000).map(|_| subscribe(&hub, watch(None))).collect();
    assert_eq!((*count.borrow(), hub.stats().sse_clients), (1000, 1000));
    drop(many);
    assert_eq!((*count.borrow(), hub.stats().sse_clients), (0, 0));
}

#[test]
fn a_hub_that_is_closed_ends_its_streams_behind_what_is_there() {
    let hub = hub(1 << 20, 1 << 20);
    let (mut client, _) = subscribe(&hub, watch(None));
    let last = note(&hub, "last");
    hub.close();
    assert_eq!(ids(take(&mut client)), [last]);
    assert!(matches!(take(&mut client), Some(Taken::Closed)));
    hub.open();
    let (mut client, _) = subscribe(&hub, watch(None));
    assert!(take(&mut client).is_none());
}

#[test]
fn only_a_crowd_waits() {
    assert_eq!(pause(0), Duration::ZERO);
    assert_eq!(pause(49), Duration::ZERO);
    assert_eq!(pause(1000), Duration::from_millis(20));
    assert_eq!(pause(1_000_000), Duration::from_millis(50));
}

#[tokio::test]
async fn in_a_crowd_several_events_are_told_at_once_and_none_is_forgotten() {
    let hub = hub(1 << 20, 1 << 20);
    let _crowd: Vec<_> = (0..1000).map(|_| subscribe(&hub, watch(None))).collect();
    let (mut client, _) = subscribe(&hub, watch(None));
    let (watching, publishing) = (Arc::clone(&hub), Arc::clone(&hub));
    let looks = tokio::spawn(async move {
        let (mut looks, mut got) = (0, 0);
        while got < 100 {
            let taken = std::future::poll_fn(|context| client.poll_take(context)).await;
            looks += 1;
            got += events(Some(taken)).len();
        }
        drop(watching);
        looks
    });
    tokio::spawn(async move {
        for number in 0..100 {
            note(&publishing, &number.to_string());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let looks = tokio::time::timeout(Duration::from_secs(10), looks).await.unwrap().unwrap();
    assert!(looks < 60, "{looks} looks at 100 events");
}
