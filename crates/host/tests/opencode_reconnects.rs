//! A page and the events behind its place make the exact text, whenever a client comes back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use support::{
    cable::Cable,
    host::{Client, RunningHost},
    live::{EventStream, Transcript, number},
};
use turnkeep_host::{HostOptions, UpstreamOptions};
use turnkeep_test_opencode::{OpenCode, Options};

/// How many times clients come back in all.
const RECONNECTS: usize = 200;

/// How many clients come and go during one answer.
const CLIENTS: usize = 8;

const PROMPT: &str = "Explain it. #steps=1 #reason #slow=10 #chunks=250";

type Texts = BTreeMap<String, String>;

/// What the session's texts were after each event, by the event's number: from a client that never
/// leaves.
type History = Arc<Mutex<HashMap<String, Texts>>>;

/// The session as a page has it, and the place of that among the events.
async fn page(host: &Client, session: &str) -> Option<(Transcript, String)> {
    let path = format!("/api/openchamber/sessions/{session}/messages?turns=10");
    let answer = host.get(&path).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    // There is none while the host looks for its upstream.
    let place = answer.header("x-turnkeep-event-id")?.to_owned();
    let records = answer.json()["records"].as_array().unwrap().clone();
    Some((Transcript::of_records(&records), place))
}

/// Waits for a page that has a place.
async fn placed_page(host: &Client, session: &str) -> (Transcript, String) {
    loop {
        if let Some(page) = page(host, session).await {
            return page;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Comes back, takes a page, reads on for about so many events, and leaves. What it knows is
/// compared with what the one that stays knew at the same event.
async fn come_and_go(
    host: &Client,
    session: &str,
    events: usize,
    history: &History,
) -> (usize, usize) {
    let (mut transcript, place) = placed_page(host, session).await;
    let mut stream = EventStream::open(host, Some(&place)).await;
    let (mut compared, mut applied) = (0, 0);
    while applied < events {
        let Ok(Some(event)) = tokio::time::timeout(Duration::from_secs(3), stream.next()).await
        else {
            break;
        };
        if event.is_reset() {
            break;
        }
        let Some(id) = &event.id else { continue };
        assert!(number(id).1 > number(&place).1 && number(id).0 == number(&place).0);
        if event.session() == Some(session) {
            transcript.apply(&event);
            applied += 1;
            // The one that stays may not have come that far yet.
            tokio::time::sleep(Duration::from_millis(5)).await;
            let there = history.lock().unwrap().get(id).cloned();
            if let Some(there) = there {
                compared += 1;
                let here = transcript.texts();
                for (part, text) in &here {
                    // A page may know of a part before the event that tells of it.
                    let Some(other) = there.get(part) else { continue };
                    assert!(text == other, "{part} at {id}, page of {place}:\n{text}\n{other}");
                }
            }
        }
    }
    (compared, applied)
}

/// Stays for the whole answer, and notes what the texts are after each event.
async fn stay(mut stream: EventStream, start: Transcript, session: String, history: History) {
    let mut transcript = start;
    while let Some(event) = stream.next().await {
        if event.session() != Some(&session) {
            continue;
        }
        transcript.apply(&event);
        if let Some(id) = &event.id {
            history.lock().unwrap().insert(id.clone(), transcript.texts());
        }
    }
}

/// The texts as the server has them in the end.
async fn texts_of(server: &OpenCode, session: &str) -> Texts {
    let list: Vec<Value> = serde_json::from_str(&server.full_list(session).await.unwrap()).unwrap();
    Transcript::of_records(&list).texts()
}

async fn started() -> (OpenCode, Arc<Cable>, Arc<RunningHost>) {
    let server = OpenCode::start(Options::default()).await.unwrap();
    let cable = Arc::new(Cable::to(server.base_url()).await);
    let mut options = HostOptions::default();
    options.upstream = Some(UpstreamOptions::new(&cable.url()).unwrap());
    let host = Arc::new(RunningHost::start(options).await);
    (server, cable, host)
}

/// A pseudo-random number below `below`.
fn next(seed: &mut u64, below: usize) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    usize::try_from(*seed % below as u64).unwrap()
}

#[tokio::test]
async fn two_hundred_clients_that_come_back_in_an_answer_have_the_exact_text() {
    let (server, _cable, host) = started().await;
    let session = server.create_session().await.unwrap();
    server.prompt(&session, "Begin. #steps=0").await.unwrap();
    let history = History::default();
    let (start, place) = placed_page(&host, &session).await;
    let stream = EventStream::open(&host, Some(&place)).await;
    let stays = tokio::spawn(stay(stream, start, session.clone(), Arc::clone(&history)));

    let done = Arc::new(AtomicUsize::new(0));
    let compared = Arc::new(AtomicUsize::new(0));
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let (host, session) = (Arc::clone(&host), session.clone());
        let (done, compared, history) =
            (Arc::clone(&done), Arc::clone(&compared), Arc::clone(&history));
        let mut seed = 0x9e37_79b9 + client as u64;
        clients.spawn(async move {
            while done.load(Ordering::Relaxed) < RECONNECTS {
                tokio::time::sleep(Duration::from_millis(next(&mut seed, 60) as u64)).await;
                let events = 5 + next(&mut seed, 25);
                let (same, applied) = come_and_go(&host, &session, events, &history).await;
                compared.fetch_add(same, Ordering::Relaxed);
                // One that found no answer under way proves nothing.
                if applied >= 5 {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    let mut answers = 0;
    while done.load(Ordering::Relaxed) < RECONNECTS {
        server.prompt(&session, PROMPT).await.unwrap();
        answers += 1;
        assert!(
            answers < 20,
            "{} of {RECONNECTS} after {answers} answers",
            done.load(Ordering::Relaxed)
        );
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    stays.abort();
    let compared = compared.load(Ordering::Relaxed);
    println!(
        "{} reconnects in {answers} answers, {compared} comparisons",
        done.load(Ordering::Relaxed)
    );
    assert!(compared > RECONNECTS * 4, "{compared}");
    // A page of now has the texts that the server has, but for what a page leaves out.
    let (now, _) = placed_page(&host, &session).await;
    let truth = texts_of(&server, &session).await;
    for (part, text) in now.texts() {
        assert_eq!(Some(&text), truth.get(&part));
    }
}

#[tokio::test]
async fn clients_have_the_exact_text_in_the_end_although_the_line_to_the_upstream_is_cut() {
    let (server, cable, host) = started().await;
    let session = server.create_session().await.unwrap();
    server.prompt(&session, "Begin. #steps=0").await.unwrap();

    // Follows to the end of the answer: a page, what comes behind it, and a page again when told to.
    let follow = async |delay: u64| {
        tokio::time::sleep(Duration::from_millis(delay)).await;
        'anew: loop {
            let (mut transcript, place) = placed_page(&host, &session).await;
            let mut stream = EventStream::open(&host, Some(&place)).await;
            loop {
                let Some(event) = stream.next().await else { continue 'anew };
                if event.is_reset() {
                    continue 'anew;
                }
                if event.session() == Some(&session) {
                    transcript.apply(&event);
                    if event.kind() == "session.idle" {
                        return transcript.texts();
                    }
                }
            }
        }
    };
    for round in 0..3 {
        // The event that says that a turn is over comes a little after the answer: this round must not see it.
        server.wait_until_idle(&session).await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let cuts = async {
            for _ in 0..2 {
                tokio::time::sleep(Duration::from_millis(700 + 200 * round)).await;
                cable.cut();
            }
        };
        let followers = futures_util::future::join_all((0..20).map(|client| follow(client * 60)));
        let answer = server.prompt(&session, PROMPT);
        let all = async { tokio::join!(followers, cuts, answer) };
        let (texts, (), answer) = tokio::time::timeout(Duration::from_secs(60), all).await.unwrap();
        answer.unwrap();
        let truth = texts_of(&server, &session).await;
        let newest = truth.keys().next_back().unwrap();
        for text in texts {
            assert_eq!(text.get(newest), truth.get(newest), "round {round}");
        }
    }
    assert!(cable.streams() > 3, "the line was cut {} times", cable.streams());
}
