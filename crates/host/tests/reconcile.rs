//! Catching up after a lost connection, with a session of the store and with one behind an upstream.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use serde_json::{Value, json};
use support::{
    both::{Served, TURN},
    contract::ids,
    host::Answer,
    logs::Logs,
    upstream::{Act, ScriptedUpstream, answer, list, rows, wait_until},
};
use turnkeep_host::{Budgets, HostOptions};

const PATH: &str = "/api/openchamber/sessions/ses_1/messages/reconcile";

fn ten_records(options: &mut HostOptions) {
    options.reconcile = Budgets { records: 10, ..Budgets::default() };
}

/// The ids of a round's pages, old to new.
fn all_ids(pages: &[Value]) -> Vec<String> {
    pages.iter().rev().flat_map(ids).collect()
}

#[tokio::test]
async fn a_gap_is_sent_from_its_anchor_to_the_newest_record() {
    for served in Served::both(12, |_| {}).await {
        let len = served.len();
        for first in [0, 1, TURN * 5, len - 1] {
            let pages = served.host.round(served.session, &served.id(first)).await;
            let [page] = &pages[..] else { panic!("one page, not {pages:?}") };
            assert_eq!(ids(page), served.ids(first..len));
            let newest = served.id(len - 1);
            assert_eq!(page["capturedHeadMessageID"], newest);
            assert_eq!(page["latestHeadMessageID"], newest);
            assert_eq!((&page["anchorFound"], &page["complete"]), (&json!(true), &json!(true)));
        }
    }
}

#[tokio::test]
async fn a_long_gap_comes_in_pages_without_gap_or_overlap() {
    for served in Served::both(40, ten_records).await {
        let len = served.len();
        for first in [7, 10, 60, len - 10, len - 11] {
            let pages = served.host.round(served.session, &served.id(first)).await;
            assert_eq!(all_ids(&pages), served.ids(first..len), "from {first}");
            assert_eq!(pages.len(), (len - first).div_ceil(10));
            let last = pages.last().unwrap();
            assert_eq!(last["anchorFound"], true);
            assert!(last["scannedRecords"].as_u64().unwrap() >= (len - first) as u64);
        }
    }
}

#[tokio::test]
async fn an_anchor_that_is_not_there_resets() {
    for served in Served::both(12, |_| {}).await {
        let page = served.host.reconcile(served.session, "anchor", "msg_nowhere").await;
        assert_eq!((&page["resetRequired"], &page["records"]), (&json!(true), &json!([])));
        assert_eq!(page["capturedHeadMessageID"], served.id(served.len() - 1));
    }
    for served in Served::both(40, |options| {
        options.reconcile = Budgets { records: 10, pages: 2, ..Budgets::default() };
    })
    .await
    {
        let pages = served.host.round(served.session, "msg_nowhere").await;
        assert_eq!(pages.len(), 2, "a round has a budget");
        assert_eq!(pages[1]["resetRequired"], true);
        // Within reach the budget does not matter.
        let first = served.len() - 30;
        let pages = served.host.round(served.session, &served.id(first)).await;
        assert!(pages.last().unwrap()["resetRequired"] == false, "{pages:?}");
    }
}

#[tokio::test]
async fn an_empty_session_resets_without_heads() {
    let body = r#"{"records":[],"anchorFound":false,"capturedHeadMessageID":null,"latestHeadMessageID":null,"continuation":null,"complete":true,"resetRequired":true,"scannedRecords":0,"responseBytes":0}"#;
    let behind = Served::behind_upstream(0, |_| {}).await;
    let stored = Served::in_store(1, |_| {}).await;
    stored.store().unwrap().add_made("untold", &[("session/title", json!({ "title": "x" }))]).await;
    for (served, path) in [(behind, PATH.to_owned()), (stored, PATH.replace("ses_1", "untold"))] {
        let told = served.host.get(&format!("{path}?anchor=msg_1")).await;
        assert_eq!((told.status, told.body.as_str()), (200, body));
    }
}

#[tokio::test]
async fn records_come_whole_but_for_their_patches() {
    let row = json!({
        "info": {
            "id": "msg_1",
            "role": "user",
            "time": { "created": 1 },
            "summary": { "diffs": [{ "file": "a", "patch": "+x", "additions": 1, "deletions": 0 }] },
        },
        "parts": [
            { "type": "file", "url": "data:text/plain,hello" },
            { "type": "reasoning", "text": "hm" },
            { "type": "tool", "state": { "output": "long" } },
        ],
    });
    let body = json!([row]).to_string();
    let upstream = ScriptedUpstream::start(move |request| {
        request.path.starts_with("/session/").then(|| answer(200, &[], &body))
    })
    .await;
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    let host = support::host::RunningHost::start(options).await;
    let page = host.get(&format!("{PATH}?anchor=msg_1")).await.json();
    assert_eq!(page["records"][0]["parts"], row["parts"]);
    assert_eq!(page["records"][0]["info"]["summary"]["diffs"][0].get("patch"), None);
    let page = host.get(&format!("{PATH}?anchor=msg_1&includeReasoning=false")).await.json();
    assert_eq!(page["records"][0]["parts"], json!([row["parts"][0], row["parts"][2]]));
    let queries: Vec<_> = upstream.requests().into_iter().map(|request| request.query).collect();
    assert_eq!(queries, ["limit=100", "limit=1", "limit=100", "limit=1"], "and the newest row");
}

#[tokio::test]
async fn parameters_are_checked_with_exact_answers() {
    let exactly_one = r#"{"error":"provide exactly one of anchor or continuation"}"#;
    let bad_anchor = r#"{"error":"anchor is required and must be a non-empty message id"}"#;
    let bad_continuation = r#"{"error":"invalid continuation"}"#;
    let long = "a".repeat(513);
    let too_long = "a".repeat(8193);
    for served in Served::both(3, |_| {}).await {
        for (query, body) in [
            ("", exactly_one),
            ("anchor=", exactly_one),
            ("anchor=&continuation=", exactly_one),
            ("anchor=a&anchor=b", exactly_one),
            ("anchor=a&continuation=b", exactly_one),
            ("continuation=a&continuation=b", exactly_one),
            (&format!("anchor={long}"), bad_anchor),
            // Two UTF-16 units each.
            (&format!("anchor={}", "%F0%9F%98%80".repeat(257)), bad_anchor),
            (&format!("continuation={too_long}"), bad_continuation),
            ("continuation=x", bad_continuation),
            ("continuation=ocr1.a.b", bad_continuation),
            ("continuation=ocr2.%zz.b", bad_continuation),
            ("continuation=+", bad_continuation),
        ] {
            let told = served.host.get(&format!("{PATH}?{query}")).await;
            assert_eq!((told.status, told.body.as_str()), (400, body), "{query}");
        }
        assert!(served.upstream().is_none_or(|upstream| upstream.requests().is_empty()));
        // What is repeated or empty is as if it were not there.
        let anchor = served.id(3);
        for query in [
            format!("anchor={anchor}&continuation="),
            format!("anchor={anchor}&continuation=a&continuation=b"),
            format!("anchor={anchor}&directory=/a&directory=/b&scanLimit=0&unknown"),
            format!("&&anchor={}&=", anchor.replace('_', "%5F").replace('-', "%2d")),
        ] {
            let told = served.host.get(&format!("{PATH}?{query}")).await;
            assert_eq!((told.status, ids(&told.json())), (200, served.ids(3..9)), "{query}");
        }
        // A plus is a space, and a bad escape stands for itself: ids like any other.
        for anchor in ["a+b", "%", "%zz"] {
            let page = served.host.reconcile(served.session, "anchor", anchor).await;
            assert_eq!(page["resetRequired"], true, "{anchor}");
        }
        let path = |id: &str| format!("/api/openchamber/sessions/{id}/messages/reconcile?anchor=a");
        let told = served.host.get(&path(&long)).await;
        assert_eq!(
            (told.status, told.body.as_str()),
            (400, r#"{"error":"sessionID is required"}"#)
        );
        let told = served.host.get(&path("nobody")).await;
        let unknown = r#"{"error":"session not found","code":"session_not_found"}"#;
        assert_eq!((told.status, told.body.as_str()), (404, unknown));
    }
}

#[tokio::test]
async fn a_continuation_is_good_for_its_own_round_only() {
    for served in Served::both(12, ten_records).await {
        let page = served.host.reconcile(served.session, "anchor", &served.id(0)).await;
        let next = page["continuation"].as_str().unwrap();
        let goes_on = |query: String| {
            let path = format!("{PATH}?continuation={query}");
            let host = &served.host;
            async move { host.get(&path).await }
        };
        let refused = |told: Answer| {
            assert_eq!(
                (told.status, told.body.as_str()),
                (400, r#"{"error":"invalid continuation"}"#)
            );
        };
        assert_eq!(goes_on(next.to_owned()).await.status, 200);
        assert_eq!(goes_on(next.to_owned()).await.status, 200, "it may be used again");
        refused(goes_on(format!("{next}&directory=/elsewhere")).await);
        refused(goes_on(format!("{next}&includeReasoning=false")).await);
        refused(goes_on(format!("{next}x")).await);
        let (payload, mac) = next.rsplit_once('.').unwrap();
        refused(goes_on(format!("{payload}A.{mac}")).await);
        refused(goes_on(payload.to_owned()).await);
        // Bound to what the round was asked with.
        let path = format!("{PATH}?anchor={}&includeReasoning=false&directory=/tmp", served.id(0));
        let next = served.host.get(&path).await.json()["continuation"].as_str().unwrap().to_owned();
        let same = format!("{next}&includeReasoning=false&directory=/tmp");
        assert_eq!(goes_on(same).await.status, 200);
        refused(goes_on(format!("{next}&directory=/tmp")).await);
        refused(goes_on(format!("{next}&includeReasoning=false")).await);
    }
}

#[tokio::test]
async fn it_is_served_like_a_page() {
    for served in Served::both(40, |_| {}).await {
        let logs = Logs::start();
        let path = format!("{PATH}?anchor={}", served.id(30));
        let page = served.host.get(&path).await;
        let tag = page.header("etag").unwrap();
        let head = served.host.request("HEAD", &path).send().await.unwrap();
        assert_eq!(head.status, 200);
        for name in ["etag", "content-type", "content-length"] {
            assert_eq!(head.header(name), page.header(name), "{name}");
        }
        let again = served.host.request("GET", &path).header("if-none-match", tag).send().await;
        let again = again.unwrap();
        assert_eq!((again.status, again.header("etag")), (304, Some(tag)));
        let forced = served.host.request("GET", &path).header("if-none-match", tag);
        let forced = forced.header("cache-control", "no-cache").send().await.unwrap();
        assert_eq!((forced.status, &forced.body), (200, &page.body));
        for encoding in ["gzip", "br"] {
            let packed = served.host.request("GET", &path).header("accept-encoding", encoding);
            let packed = packed.send().await.unwrap();
            assert_eq!(packed.header("content-encoding"), Some(encoding));
            assert_eq!((&packed.body, packed.header("etag")), (&page.body, Some(tag)));
            assert!(packed.sent_bytes < page.sent_bytes / 2);
        }
        let anchor = served.id(30);
        let odd = format!("/API/OpenChamber/Sessions/ses_1/MESSAGES/Reconcile/?anchor={anchor}");
        assert_eq!(served.host.get(&odd).await.body, page.body);
        let other = served.host.request("POST", &path).send().await.unwrap();
        assert_eq!(other.status, 404, "another method is another resource");
        let lines = logs.requests();
        for part in [r#"route="reconcile""#, r#"session="ses_1""#, "has_anchor=true", "status=200"]
        {
            assert!(lines[0].contains(part), "{part} in {}", lines[0]);
        }
        assert!(!logs.text().contains(&served.id(30)), "an anchor is not logged");
    }
}

#[tokio::test]
async fn what_is_added_during_a_round_is_for_the_next_one() {
    for mut served in Served::both(20, ten_records).await {
        let (anchor, len) = (served.id(20), served.len());
        let mut pages = vec![served.host.reconcile(served.session, "anchor", &anchor).await];
        while let Some(next) = pages.last().unwrap()["continuation"].as_str().map(str::to_owned) {
            served.grow(1).await;
            pages.push(served.host.reconcile(served.session, "continuation", &next).await);
        }
        assert_eq!(all_ids(&pages), served.ids(20..len));
        let last = pages.last().unwrap();
        assert_eq!(last["capturedHeadMessageID"], served.id(len - 1));
        assert_eq!(last["latestHeadMessageID"], served.id(served.len() - 1));
        let head = served.id(len - 1);
        let pages = served.host.round(served.session, &head).await;
        assert_eq!(all_ids(&pages), served.ids(len - 1..served.len()));
    }
}

#[tokio::test]
async fn a_log_that_grows_under_many_readers_is_never_shown_torn() {
    let mut served = Served::in_store(5, ten_records).await;
    for _ in 0..15 {
        let before = served.len();
        let (host, session) = (&served.host, served.session);
        let (first, anchor) = (served.id(0), served.id(before - 1));
        let (round, other, pages) = tokio::join!(
            host.round(session, &first),
            host.round(session, &anchor),
            host.pages(session, 2)
        );
        assert_eq!(all_ids(&round), served.ids(0..before));
        assert_eq!(all_ids(&other), served.ids(before - 1..before));
        let scrolled: Vec<_> = pages.iter().rev().flat_map(ids).collect();
        assert_eq!(scrolled, served.ids(0..before));
        served.grow(3).await;
    }
}

#[tokio::test]
async fn a_failed_look_at_the_newest_row_does_not_fail_the_page() {
    let all = rows(4);
    let upstream = ScriptedUpstream::start(move |request| {
        request.path.starts_with("/session/").then(|| match request.query.as_str() {
            "limit=1" => answer(500, &[], "{}"),
            _ => list(&all, request),
        })
    })
    .await;
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    let host = support::host::RunningHost::start(options).await;
    let page = host.reconcile("ses_1", "anchor", "msg_0003_user").await;
    assert_eq!(page["latestHeadMessageID"], "msg_0011_asst");
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_round_along() {
    let upstream = ScriptedUpstream::start(|request| {
        request.path.starts_with("/session/").then_some(Act::Stall)
    })
    .await;
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    let logs = Logs::start();
    let host = support::host::RunningHost::start(options).await;
    let leaving = host.request("GET", &format!("{PATH}?anchor=a"));
    assert!(leaving.timeout(std::time::Duration::from_millis(100)).send().await.is_err());
    upstream.wait_for_hangups(1).await;
    wait_until("it is logged", || logs.requests().iter().any(|l| l.contains("status=499"))).await;
}
