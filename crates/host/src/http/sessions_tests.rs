use turnkeep_store::SessionState;

use super::{DEFAULT_LIMIT, Query, read};
use crate::listing::{ListCursor, ListRequest};

fn request(raw: &str) -> Result<ListRequest, String> {
    read(&Query::parse(Some(raw))).map_err(|failure| failure.body().to_owned())
}

#[test]
fn everything_has_a_default() {
    let request = request("").unwrap();
    assert_eq!(request, ListRequest { limit: DEFAULT_LIMIT, ..ListRequest::default() });
}

#[test]
fn parameters_are_read() {
    let cursor = ListCursor::default();
    let raw =
        format!("limit=7&q=Fix+It&cwd=/w&state=ok,damaged&state=newer&cursor={}", cursor.encode());
    let states = vec![SessionState::Ok, SessionState::Damaged, SessionState::Newer];
    let text = Some("fix it".to_owned());
    let cwd = Some("/w".to_owned());
    assert_eq!(request(&raw), Ok(ListRequest { cursor, limit: 7, text, cwd, states }));
}

#[test]
fn mistakes_are_told() {
    let limit = r#"{"error":"limit must be an integer between 1 and 200"}"#;
    for raw in ["limit=0", "limit=201", "limit=x", "limit=", "limit=1&limit=2"] {
        assert_eq!(request(raw), Err(limit.to_owned()), "{raw}");
    }
    assert_eq!(request("cursor=x"), Err(r#"{"error":"invalid cursor"}"#.to_owned()));
    let state = r#"{"error":"state must be ok, damaged, newer or foreign"}"#;
    assert_eq!(request("state=odd"), Err(state.to_owned()));
}
