use axum::http::{HeaderMap, Method};

use super::Asking;
use crate::{
    events::frames,
    http::{Asked, query::Query, route::Channel},
};

fn read(query: &str, headers: &[(&'static str, &'static str)]) -> Asking {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, value.parse().unwrap());
    }
    let query = Query::parse(Some(query));
    Asking::read(Channel::Directory, &Asked { method: Method::GET, headers: map, query })
}

#[test]
fn the_directory_is_in_the_query_or_in_a_header() {
    let directory = |query: &str, headers: &[_]| read(query, headers).directory;
    let escaped = [("x-opencode-directory", "%2Fa%20b"), ("x-opencode-directory-encoding", "uri")];
    let plain = [("x-opencode-directory", "%2Fa%20b")];
    let broken = [("x-opencode-directory", "/100%"), ("x-opencode-directory-encoding", "uri")];
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(directory("directory=%20/a%20", &escaped), some("/a"));
    assert_eq!(directory("", &escaped), some("/a b"));
    assert_eq!(directory("directory=", &escaped), some("/a b"));
    assert_eq!(directory("directory=%20", &[]), None);
    assert_eq!(directory("", &plain), some("/a b"));
    assert_eq!(directory("", &broken), some("/100%"));
    assert_eq!(directory("", &[]), None);
}

#[test]
fn a_browser_that_comes_back_says_in_a_header_where_it_is() {
    let last = |query: &str, headers: &[_]| read(query, headers).last;
    let header = [("last-event-id", "a-2")];
    assert_eq!(last("lastEventId=a-1", &header).as_deref(), Some("a-2"));
    assert_eq!(last("lastEventId=a-1", &[]).as_deref(), Some("a-1"));
    assert_eq!(last("", &[]), None);
    assert_eq!(last("lastEventId=", &[("last-event-id", "")]), None);
}

#[test]
fn reasoning_is_left_out_when_it_is_said_so() {
    assert!(read("", &[]).reasoning && read("includeReasoning=0", &[]).reasoning);
    assert!(!read("includeReasoning=false", &[]).reasoning);
    assert_eq!(read("", &[]).channel(), frames::Channel::Directory);
}
