//! Many clients of one real OpenCode server: all of them see the same, also those that were away.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::time::Duration;

use serde_json::Value;
use support::{
    cable::Cable,
    host::RunningHost,
    live::{EventSocket, EventStream, Received, Transcript, number},
};
use tokio::task::JoinSet;
use turnkeep_host::{HostOptions, UpstreamOptions};
use turnkeep_test_opencode::{OpenCode, Options};

/// How many clients of each kind there are.
const CLIENTS: usize = 50;

/// Long enough for any turn here, on a machine busy with other tests.
const PATIENCE: Duration = Duration::from_secs(90);

async fn host(cable: &Cable, replay_bytes: Option<usize>) -> RunningHost {
    let mut options = HostOptions::default();
    options.upstream = Some(UpstreamOptions::new(&cable.url()).unwrap());
    options.replay_buffer_bytes = replay_bytes.unwrap_or(options.replay_buffer_bytes);
    let host = RunningHost::start(options).await;
    until_numbered(&host).await;
    host
}

/// Waits until the host reads the events of its upstream: from then on pages have a place among
/// them.
async fn until_numbered(host: &RunningHost) {
    let page = "/api/openchamber/sessions/ses_nobody/messages/reconcile?anchor=msg_1";
    let _ = host.get(page).await;
    let opened = tokio::time::timeout(PATIENCE, EventStream::open(host, None)).await.unwrap();
    drop(opened);
}

/// The end of a turn: nothing of it follows the last word of its user message.
fn is_idle(event: &Received, session: &str) -> bool {
    event.kind() == "session.idle" && event.session() == Some(session)
}

/// What both kinds of clients do: read until so many turns of the session are over.
macro_rules! read_turns {
    ($client:expr, $session:expr, $turns:expr) => {{
        let mut events = Vec::new();
        let mut over = 0;
        while over < $turns {
            let event = $client.next().await.expect("the stream goes on");
            over += usize::from(is_idle(&event, $session));
            events.push(event);
        }
        events
    }};
}

/// The events from the first prompt on: clients begin to listen one after the other.
fn since_busy(events: Vec<Received>, session: &str) -> Vec<Received> {
    let about = |event: &Received| event.session() == Some(session) && event.id.is_some();
    let events: Vec<_> = events.into_iter().filter(about).collect();
    let first = events.iter().position(|event| event.kind() == "message.updated").unwrap();
    events[first..].to_vec()
}

#[tokio::test]
async fn a_hundred_clients_see_the_same_events_in_the_same_order_through_one_reader() {
    let server = OpenCode::start(Options::default()).await.unwrap();
    let cable = Cable::to(server.base_url()).await;
    let host = host(&cable, None).await;
    let session = server.create_session().await.unwrap();

    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let mut stream = EventStream::open(&host, None).await;
        let mut socket = EventSocket::open(&host, None).await;
        // A socket is a client once it is told so.
        while socket.frame().await.unwrap()["type"] != "ready" {}
        let (over_sse, over_socket) = (session.clone(), session.clone());
        clients.spawn(async move { read_turns!(stream, &over_sse, 2) });
        clients.spawn(async move { read_turns!(socket, &over_socket, 2) });
    }
    server.prompt(&session, "Look around. #steps=3 #reason #slow=2 #chunks=40").await.unwrap();
    server.prompt(&session, "Go on. #steps=1 #reason #chunks=40").await.unwrap();
    let read = tokio::time::timeout(PATIENCE, clients.join_all()).await.unwrap();

    let mut seen = read.into_iter().map(|events| since_busy(events, &session));
    let first = seen.next().unwrap();
    assert!(first.len() > 150, "{} events", first.len());
    assert!(first.iter().any(|event| event.kind() == "message.part.delta"));
    let numbers: Vec<_> = first.iter().map(|event| number(event.id.as_deref().unwrap())).collect();
    assert!(numbers.is_sorted() && numbers.windows(2).all(|pair| pair[0] != pair[1]));
    for other in seen {
        assert!(other == first, "every client sees what the first one does");
    }
    assert_eq!(cable.streams(), 1, "one reader of the upstream");
}

/// A client that stays, reading until the turn is over.
async fn stay(mut stream: EventStream, session: String) -> Vec<Received> {
    let events = read_turns!(stream, &session, 1);
    // The last word on the turn comes after its end.
    let mut events = events;
    while let Ok(Some(event)) = tokio::time::timeout(Duration::from_secs(2), stream.next()).await {
        events.push(event);
    }
    events
}

fn applied(start: Transcript, events: &[Received], session: &str) -> Transcript {
    let mut transcript = start;
    for event in events.iter().filter(|event| event.session() == Some(session)) {
        transcript.apply(event);
    }
    transcript
}

/// Everything of a session, and the last event that is in it.
async fn caught_up(host: &RunningHost, session: &str, anchor: &str) -> (Transcript, String) {
    let path = format!("/api/openchamber/sessions/{session}/messages/reconcile?anchor={anchor}");
    let answer = host.get(&path).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let page = answer.json();
    assert_eq!((&page["anchorFound"], &page["complete"]), (&Value::from(true), &Value::from(true)));
    let place = answer.header("x-turnkeep-event-id").expect("pages have a place").to_owned();
    (Transcript::of_records(page["records"].as_array().unwrap()), place)
}

#[tokio::test]
async fn a_client_that_was_cut_off_ends_with_the_transcript_of_one_that_never_left() {
    let server = OpenCode::start(Options::default()).await.unwrap();
    let cable = Cable::to(server.base_url()).await;
    let host = host(&cable, None).await;
    // What this one keeps for clients that come back is a few events.
    let forgetful = self::host(&cable, Some(16 << 10)).await;
    let session = server.create_session().await.unwrap();
    server.prompt(&session, "Begin. #steps=1").await.unwrap();
    let list: Value = serde_json::from_str(&server.full_list(&session).await.unwrap()).unwrap();
    let anchor = list[0]["info"]["id"].as_str().unwrap().to_owned();

    let (start, _) = caught_up(&host, &session, &anchor).await;
    let stays = tokio::spawn(stay(EventStream::open(&host, None).await, session.clone()));
    let leaves = async |host: &RunningHost| {
        let (start, _) = caught_up(host, &session, &anchor).await;
        (start, EventStream::open(host, None).await)
    };
    let (back_in_time, mut in_time) = leaves(&host).await;
    let (_, mut too_late) = leaves(&forgetful).await;
    server
        .prompt_async(&session, "Tell me more. #steps=0 #reason #slow=15 #chunks=300")
        .await
        .unwrap();

    // Both are cut off in the middle of the answer.
    let mut before = Vec::new();
    while before.iter().filter(|event: &&Received| event.kind() == "message.part.delta").count()
        < 40
    {
        before.push(in_time.next().await.unwrap());
    }
    drop(in_time);
    let mut last_late = None;
    loop {
        let event = too_late.next().await.unwrap();
        last_late = event.id.clone().or(last_late);
        if event.kind() == "message.part.delta" {
            break;
        }
    }
    drop(too_late);
    tokio::time::sleep(Duration::from_millis(1500)).await;

    // One comes back in time and is sent what it missed.
    let newest = before.iter().rev().find_map(|event| event.id.clone()).unwrap();
    let again = EventStream::open(&host, Some(&newest)).await;
    let returned = tokio::spawn(stay(again, session.clone()));

    // The other one is told that it must start anew, and does.
    let mut again = EventStream::open(&forgetful, last_late.as_deref()).await;
    let reset = loop {
        let event = again.next().await.unwrap();
        assert_ne!(event.kind(), "message.part.delta", "a gap is told of before anything else");
        if event.is_reset() {
            break event;
        }
    };
    assert_eq!(reset.payload["properties"]["reason"], "too_old", "{reset:?}");
    let (anew, place) = caught_up(&forgetful, &session, &anchor).await;
    let late = stay(again, session.clone()).await;
    let is_after =
        |event: &&Received| event.id.as_deref().is_some_and(|id| number(id).1 > number(&place).1);
    let late: Vec<_> = late.iter().filter(is_after).cloned().collect();

    let expected = applied(start, &stays.await.unwrap(), &session);
    before.extend(returned.await.unwrap());
    assert!(!before.iter().any(Received::is_reset), "nothing was lost of this one");
    assert!(applied(back_in_time, &before, &session) == expected, "the one that came back in time");
    assert!(applied(anew, &late, &session) == expected, "the one that came back too late");
    let (now, _) = caught_up(&host, &session, &anchor).await;
    assert!(now == expected, "and that is what the server has");
    assert!(expected.texts().values().any(|text| text.len() > 1000));
}
