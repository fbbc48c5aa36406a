//! Rounds in the middle of an answer.

use serde_json::{Value, json};

use super::*;
use crate::{events::LiveParts, page::SourcePage, testing::record};

#[test]
fn a_page_has_the_text_of_what_was_being_written_and_counts_its_bytes() {
    let mut parts = LiveParts::new(1 << 20);
    let words = "word ".repeat(200);
    let open = json!({
        "id": "p1", "sessionID": SESSION, "messageID": "a1",
        "type": "text", "text": words, "time": {"start": 1},
    });
    let event = json!({"type": "message.part.updated", "properties": {"part": open}});
    parts.apply(&turnkeep_log::Text::from(event.to_string()));
    let live = parts.of_session(SESSION);

    let mut listed = open.clone();
    listed["text"] = json!("");
    let answer = json!({"info": {"id": "a1", "role": "assistant", "time": {"created": 2}}, "parts": [listed]});
    let body = turnkeep_log::Text::from(format!("[{},{answer}]", record("u1", Some(1))));
    let page = |live: LiveText| {
        let mut config = host();
        config.budgets.page_bytes = 1024;
        let start = request(anchor("u1"));
        let scan = ReconcileScan::new(&config, start, SourceKind::OpenCode, NOW).unwrap();
        let mut scan = scan.with_live(live);
        while scan.want().is_some() {
            scan.feed(Answer::Page(SourcePage::from_opencode(&body, None).unwrap())).unwrap();
        }
        scan.finish(NOW).unwrap()
    };

    let plain = page(LiveText::default());
    assert_eq!((plain.records.len(), plain.complete()), (2, true));
    assert_eq!(plain.records[1], answer.to_string());

    // With its text the answer fills the page.
    let full = page(live);
    assert_eq!((full.records.len(), full.complete()), (1, false));
    let record: Value = serde_json::from_str(&full.records[0]).unwrap();
    assert_eq!(record["parts"], json!([open]));
}
