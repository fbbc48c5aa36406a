//! What a client was given to go on with stays good: while the session grows, when the row that it
//! names is deleted, and over a restart of the host.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use serde_json::Value;
use support::{
    both::{Served, TURN},
    contract::ids,
};
use turnkeep_host::{Budgets, HostOptions, KeyRing};

/// More turns than two hundred records.
const MANY: usize = 70;

/// Two keys as a key file has them.
const OLD: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const NEW: &str = "//////////////////////////////////////////8=";

fn keys(lines: &[&str]) -> impl Fn(&mut HostOptions) {
    let keys = KeyRing::parse(&lines.join("\n")).unwrap();
    move |options| {
        options.reconcile = Budgets { records: 10, ..Budgets::default() };
        options.continuation_keys = Some(keys.clone());
    }
}

fn cursor(page: &Value) -> String {
    page["cursor"].as_str().unwrap().to_owned()
}

fn continuation(page: &Value) -> String {
    page["continuation"].as_str().unwrap().to_owned()
}

/// What is left of a round, old to new.
async fn rest(served: &Served, from: &str) -> Vec<String> {
    let mut pages = vec![served.host.reconcile(served.session, "continuation", from).await];
    while let Some(next) = pages.last().unwrap()["continuation"].as_str() {
        let page = served.host.reconcile(served.session, "continuation", next).await;
        pages.push(page);
    }
    let last = pages.last().unwrap();
    assert_eq!((&last["resetRequired"], &last["anchorFound"]), (&false.into(), &true.into()));
    pages.iter().rev().flat_map(ids).collect()
}

#[tokio::test]
async fn a_cursor_outlives_two_hundred_new_rows() {
    for mut served in Served::both(12, |_| {}).await {
        let newest = served.host.page(served.session, 2, None).await;
        assert_eq!(ids(&newest), served.ids(10 * TURN..12 * TURN));
        served.grow(MANY).await;
        let older = served.host.page(served.session, 3, Some(&cursor(&newest))).await;
        assert_eq!(ids(&older), served.ids(7 * TURN..10 * TURN));
        served.grow(MANY).await;
        let oldest = served.host.page(served.session, 10, Some(&cursor(&older))).await;
        assert_eq!(ids(&oldest), served.ids(0..7 * TURN));
    }
}

#[tokio::test]
async fn a_cursor_outlives_its_boundary() {
    let mut served = Served::behind_upstream(12, |_| {}).await;
    let newest = served.host.page(served.session, 2, None).await;
    let boundary = ids(&newest)[0].clone();
    served.delete(&boundary);
    served.grow(MANY).await;
    let older = served.host.page(served.session, 3, Some(&cursor(&newest))).await;
    assert_eq!(ids(&older), served.ids(7 * TURN..10 * TURN));
}

#[tokio::test]
async fn a_cursor_is_good_at_any_host() {
    for mut served in Served::both(12, |_| {}).await {
        let newest = served.host.page(served.session, 2, None).await;
        served.grow(MANY).await;
        served.restart(|_| {}).await;
        let older = served.host.page(served.session, 3, Some(&cursor(&newest))).await;
        assert_eq!(ids(&older), served.ids(7 * TURN..10 * TURN));
    }
}

#[tokio::test]
async fn a_continuation_outlives_two_hundred_new_rows() {
    for mut served in Served::both(20, keys(&[OLD])).await {
        let len = served.len();
        let first = served.host.reconcile(served.session, "anchor", &served.id(3)).await;
        assert_eq!(ids(&first), served.ids(len - 10..len));
        served.grow(MANY).await;
        assert_eq!(rest(&served, &continuation(&first)).await, served.ids(3..len - 10));
    }
}

#[tokio::test]
async fn a_continuation_outlives_the_row_it_goes_on_below() {
    let mut served = Served::behind_upstream(20, keys(&[OLD])).await;
    let len = served.len();
    let first = served.host.reconcile(served.session, "anchor", &served.id(3)).await;
    served.delete(&ids(&first)[0]);
    served.grow(MANY).await;
    assert_eq!(rest(&served, &continuation(&first)).await, served.ids(3..len - 10));
}

#[tokio::test]
async fn a_continuation_outlives_a_restart_with_a_key_file() {
    for mut served in Served::both(20, keys(&[OLD])).await {
        let len = served.len();
        let first = served.host.reconcile(served.session, "anchor", &served.id(3)).await;
        let old = continuation(&first);
        served.grow(MANY).await;
        served.restart(keys(&[OLD])).await;
        assert_eq!(rest(&served, &old).await, served.ids(3..len - 10));
        // A new key in front of the old one breaks no round under way …
        served.restart(keys(&[NEW, OLD])).await;
        assert_eq!(rest(&served, &old).await, served.ids(3..len - 10));
        let second = served.host.reconcile(served.session, "continuation", &old).await;
        // … and once the old one is gone what the new one signed goes on.
        served.restart(keys(&[NEW])).await;
        assert_eq!(
            rest(&served, &continuation(&second)).await,
            served.ids(3..len - 20),
            "{} rows are left",
            len - 23
        );
        let path = format!(
            "/api/openchamber/sessions/{}/messages/reconcile?continuation={old}",
            served.session
        );
        let told = served.host.get(&path).await;
        assert_eq!((told.status, told.body.as_str()), (400, r#"{"error":"invalid continuation"}"#));
    }
}

#[tokio::test]
async fn a_continuation_ends_with_its_host_by_default() {
    let ten = |options: &mut HostOptions| {
        options.reconcile = Budgets { records: 10, ..Budgets::default() };
    };
    for mut served in Served::both(20, ten).await {
        let first = served.host.reconcile(served.session, "anchor", &served.id(3)).await;
        let old = continuation(&first);
        let path = format!(
            "/api/openchamber/sessions/{}/messages/reconcile?continuation={old}",
            served.session
        );
        assert_eq!(served.host.get(&path).await.status, 200);
        served.restart(ten).await;
        assert_eq!(served.host.get(&path).await.status, 400);
    }
}

#[tokio::test]
async fn a_continuation_is_for_hosts_of_one_runtime() {
    for mut served in Served::both(20, keys(&[OLD])).await {
        let first = served.host.reconcile(served.session, "anchor", &served.id(3)).await;
        let path = format!(
            "/api/openchamber/sessions/{}/messages/reconcile?continuation={}",
            served.session,
            continuation(&first)
        );
        served.restart(|options| options.runtime = "vscode".to_owned()).await;
        assert_eq!(served.host.get(&path).await.status, 400);
        served.restart(|options| options.runtime = "web".to_owned()).await;
        assert_eq!(served.host.get(&path).await.status, 200);
    }
}
