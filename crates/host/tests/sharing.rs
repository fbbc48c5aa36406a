//! Many clients of one upstream: what they share, what they leave behind, and how much is held for
//! them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use support::{
    host::RunningHost,
    upstream::{Act, Request, ScriptedUpstream, answer, list, response, rows},
};
use turnkeep_host::HostOptions;

const PAGE: &str = "/api/openchamber/sessions/ses_1/messages";
const RECONCILE: &str = "/api/openchamber/sessions/ses_1/messages/reconcile?anchor=msg_0000_user";
const MESSAGE: &str = "/api/session/ses_1/message/msg_1";
const DIFF: &str = "/api/openchamber/sessions/ses_1/changes?messageID=msg_1&file=a";

async fn host(
    set: impl FnOnce(&mut HostOptions),
    script: impl Fn(&Request) -> Act + Send + Sync + 'static,
) -> (ScriptedUpstream, RunningHost) {
    let upstream = ScriptedUpstream::start(move |request| {
        (request.path != "/global/health").then(|| script(request))
    })
    .await;
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    set(&mut options);
    let host = RunningHost::start(options).await;
    // Ready, so that what is measured below is only what is asked for.
    host.get("/api/turnkeep/sessions").await;
    (upstream, host)
}

/// The bytes of an act that sends.
fn bytes(act: Act) -> Vec<u8> {
    let Act::Send(bytes) = act else { panic!("{act:?} sends nothing") };
    bytes
}

/// The requests for anything but the list of sessions.
fn asked(upstream: &ScriptedUpstream) -> Vec<Request> {
    let mut requests = upstream.requests();
    requests.retain(|request| request.path.starts_with("/session/"));
    requests
}

fn slowly(request: &Request) -> Act {
    let act = match request.path.as_str() {
        "/session/ses_1/message/msg_1" => answer(200, &[], r#"{"info":{"id":"msg_1"},"parts":[]}"#),
        "/session/ses_1/diff" => answer(200, &[], r#"[{"file":"a"}]"#),
        path if path.ends_with("/message") => list(&rows(3), request),
        _ => return answer(404, &[], "{}"),
    };
    Act::SendAfter(Duration::from_millis(600), bytes(act))
}

#[tokio::test]
async fn the_same_read_is_done_once_for_all_who_wait() {
    for (path, requests) in [(PAGE, 1), (RECONCILE, 2), (MESSAGE, 1), (DIFF, 1)] {
        let (upstream, host) = host(|_| {}, slowly).await;
        let answers = join_all((0..8).map(|_| host.get(path))).await;
        assert!(answers.iter().all(|told| told.status == 200 && told.body == answers[0].body));
        assert_eq!(asked(&upstream).len(), requests, "{path}");
        assert_eq!(host.get(path).await.body, answers[0].body);
        assert_eq!(asked(&upstream).len(), 2 * requests, "nothing is kept: {path}");
    }
}

#[tokio::test]
async fn a_page_is_shared_by_all_that_need_it() {
    let (upstream, host) = host(|_| {}, slowly).await;
    let three = format!("{PAGE}?turns=3");
    let bare = format!("{PAGE}?turns=1&includeReasoning=false");
    let (first, second, third) =
        tokio::join!(host.get(&three), host.get(&bare), host.get(RECONCILE));
    assert_eq!(first.json()["turnCount"], 3);
    assert_eq!(second.json()["turnCount"], 1);
    assert_eq!(third.json()["records"].as_array().unwrap().len(), 9);
    assert_eq!(asked(&upstream).len(), 2, "one page, and the newest row for the round");
}

#[tokio::test]
async fn other_reads_are_not_shared() {
    let (upstream, host) = host(|_| {}, slowly).await;
    let paths = [
        PAGE.to_owned(),
        PAGE.replace("ses_1", "ses_2"),
        format!("{PAGE}?scanLimit=50"),
        format!("{PAGE}?directory=/no/such"),
        format!("{PAGE}?directory=/no/such/other"),
    ];
    let answers = join_all(paths.iter().map(|path| host.get(path))).await;
    assert!(answers.iter().all(|told| told.status == 200));
    assert_eq!(asked(&upstream).len(), paths.len());
}

#[tokio::test]
async fn one_who_leaves_does_not_take_the_read_along() {
    let (upstream, host) = host(|_| {}, slowly).await;
    let leaving = host.request("GET", PAGE).timeout(Duration::from_millis(100));
    let staying = async {
        upstream.wait_for_requests(1).await;
        host.get(PAGE).await
    };
    let (left, stayed) = tokio::join!(leaving.send(), staying);
    assert!(left.unwrap_err().is_timeout());
    assert_eq!(stayed.status, 200);
    assert_eq!((asked(&upstream).len(), upstream.hangups()), (1, 0));
}

#[tokio::test]
async fn the_last_one_who_leaves_takes_the_connection_along() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n[";
    for act in [Act::Stall, Act::SendAndStall(head.into())] {
        for path in [PAGE, RECONCILE, MESSAGE, DIFF] {
            let (stalls, answers) = (act.clone(), answer(404, &[], "{}"));
            let (upstream, host) = host(
                |_| {},
                move |request| {
                    let ours = request.path.starts_with("/session/");
                    if ours { stalls.clone() } else { answers.clone() }
                },
            )
            .await;
            let leave = |ms| host.request("GET", path).timeout(Duration::from_millis(ms)).send();
            let started = Instant::now();
            let (first, second) = tokio::join!(leave(100), leave(300));
            assert!(first.is_err() && second.is_err());
            upstream.wait_for_hangups(1).await;
            assert!(started.elapsed() >= Duration::from_millis(300), "not before the last one");
            assert_eq!(asked(&upstream).len(), 1, "{path}");
        }
    }
}

#[tokio::test]
async fn one_deadline_is_for_the_whole_request() {
    let deadline = Duration::from_millis(1500);
    for path in [PAGE.to_owned() + "?turns=10&scanLimit=10", RECONCILE.to_owned()] {
        let all = rows(30);
        let (upstream, host) = host(
            |options| {
                options.page_deadline = deadline;
                options.scan_limit = 10;
            },
            move |request| match request.path.as_str() {
                "/session/ses_1/message" => {
                    Act::SendAfter(Duration::from_millis(600), bytes(list(&all, request)))
                }
                _ => answer(404, &[], "{}"),
            },
        )
        .await;
        let started = Instant::now();
        let told = host.get(&path).await;
        assert_eq!((told.status, told.body.as_str()), (504, r#"{"error":"upstream timeout"}"#));
        assert!((deadline..5 * deadline).contains(&started.elapsed()), "{:?}", started.elapsed());
        assert!((2..=3).contains(&asked(&upstream).len()), "{:?}", asked(&upstream));
        upstream.wait_for_hangups(1).await;
    }
}

/// A page of one row of so many bytes.
fn large(bytes: usize) -> String {
    let row = json!({ "info": { "id": "msg_1", "role": "user" }, "parts": [{ "text": "x".repeat(bytes) }] });
    format!("[{row}]")
}

#[tokio::test]
async fn bodies_wait_until_there_is_room_for_them() {
    let deadline = Duration::from_secs(3);
    let json = [("content-type", "application/json")];
    let whole = |bytes| response(200, &json, &large(bytes));
    let (second, small, huge) = (whole(800_000), whole(8_000), whole(2 << 20));
    let (upstream, host) = host(
        |options| {
            options.page_deadline = deadline;
            options.upstream_body_bytes = 1 << 20;
        },
        move |request| match request.path.as_str() {
            // Takes the room, and never ends.
            "/session/ses_1/message" => Act::SendAndStall(second[..second.len() - 1].to_vec()),
            "/session/ses_2/message" => Act::Send(second.clone()),
            "/session/ses_3/message" => Act::Send(small.clone()),
            "/session/ses_4/message" => Act::SendAndClose(huge.clone()),
            _ => answer(404, &[], "{}"),
        },
    )
    .await;
    let started = Instant::now();
    let waited = |session: &'static str, after: u64| {
        let path = PAGE.replace("ses_1", session);
        let host = &host;
        async move {
            tokio::time::sleep(Duration::from_millis(after)).await;
            let told = host.get(&path).await;
            (told.status, started.elapsed())
        }
    };
    let (stuck, second, small, never) = tokio::join!(
        waited("ses_1", 0),
        waited("ses_2", 300),
        waited("ses_3", 300),
        waited("ses_4", 300)
    );
    assert_eq!(stuck.0, 504);
    assert_eq!(second.0, 200);
    assert!(second.1 >= deadline, "it waited for the first one's room: {:?}", second.1);
    assert_eq!(small.0, 200);
    assert!(small.1 < deadline, "what is small needs no room: {:?}", small.1);
    // There is never room for this one.
    assert_eq!(never.0, 502);
    assert_eq!(upstream.hangups(), 1);
}
