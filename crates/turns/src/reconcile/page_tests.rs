use super::*;

fn page() -> ReconcilePage {
    ReconcilePage {
        records: vec![
            r#"{"info":{"id":"a"}}"#.to_owned(),
            r#"{"info":{"id":"\u00e9"}}"#.to_owned(),
        ],
        anchor_found: true,
        captured_head: Some("msg_a".to_owned()),
        latest_head: Some("msg_\"b".to_owned()),
        continuation: None,
        reset_required: false,
        scanned_records: 100,
    }
}

#[test]
fn the_nine_members_stand_in_their_order() {
    assert_eq!(
        page().to_json(),
        r#"{"records":[{"info":{"id":"a"}},{"info":{"id":"\u00e9"}}],"anchorFound":true,"capturedHeadMessageID":"msg_a","latestHeadMessageID":"msg_\"b","continuation":null,"complete":true,"resetRequired":false,"scannedRecords":100,"responseBytes":43}"#
    );
}

#[test]
fn a_page_with_a_continuation_is_not_complete() {
    let page = ReconcilePage {
        records: vec!["{}".to_owned()],
        anchor_found: false,
        continuation: Some("ocr2.x.y".to_owned()),
        ..page()
    };
    assert_eq!(
        page.to_json(),
        r#"{"records":[{}],"anchorFound":false,"capturedHeadMessageID":"msg_a","latestHeadMessageID":"msg_\"b","continuation":"ocr2.x.y","complete":false,"resetRequired":false,"scannedRecords":100,"responseBytes":2}"#
    );
}

#[test]
fn an_empty_session_has_no_heads() {
    let page = ReconcilePage {
        records: Vec::new(),
        anchor_found: false,
        captured_head: None,
        latest_head: None,
        reset_required: true,
        scanned_records: 0,
        ..page()
    };
    assert_eq!(
        page.to_json(),
        r#"{"records":[],"anchorFound":false,"capturedHeadMessageID":null,"latestHeadMessageID":null,"continuation":null,"complete":true,"resetRequired":true,"scannedRecords":0,"responseBytes":0}"#
    );
}
