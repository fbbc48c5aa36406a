use super::TurnPage;

#[test]
fn the_body_has_the_keys_in_their_order() {
    let page = TurnPage {
        records: vec![r#"{"info":{"id":"u1"}}"#.to_owned(), r#"{"info":{"id":"a1"}}"#.to_owned()],
        turn_count: 1,
        cursor: Some("oc1.abc".to_owned()),
        complete: false,
    };
    assert_eq!(
        page.to_json(),
        r#"{"records":[{"info":{"id":"u1"}},{"info":{"id":"a1"}}],"turnCount":1,"cursor":"oc1.abc","complete":false,"partsProjection":"slim-v1"}"#
    );
    let empty = TurnPage { records: Vec::new(), turn_count: 0, cursor: None, complete: true };
    assert_eq!(
        empty.to_json(),
        r#"{"records":[],"turnCount":0,"cursor":null,"complete":true,"partsProjection":"slim-v1"}"#
    );
}
