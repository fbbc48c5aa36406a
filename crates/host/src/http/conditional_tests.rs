use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use bytes::Bytes;

use super::{JSON, entity_tag, ok};

/// What Express 5 tags `{}` with.
const TAG_OF_EMPTY_OBJECT: &str = "W/\"2-vyGp6PvFo4RvsFtPoIWeCReyIC8\"";

fn status(headers: &[(header::HeaderName, &str)]) -> StatusCode {
    let mut request = HeaderMap::new();
    for (name, value) in headers {
        request.append(name, HeaderValue::from_str(value).unwrap());
    }
    ok(&request, JSON, Bytes::from_static(b"{}")).status()
}

#[test]
fn the_tag_is_the_one_express_makes() {
    assert_eq!(entity_tag(["{", "}"]), TAG_OF_EMPTY_OBJECT);
    let response = ok(&HeaderMap::new(), JSON, Bytes::from_static(b"{}"));
    assert_eq!(response.headers()[header::ETAG], TAG_OF_EMPTY_OBJECT);
    assert_eq!(response.headers()[header::CONTENT_TYPE], JSON);
}

#[test]
fn a_held_copy_is_not_sent_again() {
    let strong = TAG_OF_EMPTY_OBJECT.trim_start_matches("W/");
    let list = format!("\"other\", {TAG_OF_EMPTY_OBJECT}");
    for held in [TAG_OF_EMPTY_OBJECT, strong, "*", &list] {
        assert_eq!(status(&[(header::IF_NONE_MATCH, held)]), StatusCode::NOT_MODIFIED, "{held}");
    }
}

#[test]
fn a_new_copy_is_sent_when_asked_for_or_when_the_held_one_is_old() {
    assert_eq!(status(&[(header::IF_NONE_MATCH, "W/\"2-old\"")]), StatusCode::OK);
    let forced = [
        (header::IF_NONE_MATCH, TAG_OF_EMPTY_OBJECT),
        (header::CACHE_CONTROL, "max-age=0, No-Cache"),
    ];
    assert_eq!(status(&forced), StatusCode::OK);
    assert_eq!(status(&[]), StatusCode::OK);
}
