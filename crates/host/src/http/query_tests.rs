use super::Query;

fn pairs(raw: &str) -> Vec<(String, String)> {
    Query::parse(Some(raw)).pairs
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

#[test]
fn decodes_pluses_escapes_and_bad_escapes() {
    assert_eq!(pairs("a=1+2&b=%20x&c=%2B"), [pair("a", "1 2"), pair("b", " x"), pair("c", "+")]);
    assert_eq!(pairs("a=%zz&b=50%&c=%4"), [pair("a", "%zz"), pair("b", "50%"), pair("c", "%4")]);
    assert_eq!(pairs("a=%C3%A9&b=%FF"), [pair("a", "é"), pair("b", "\u{fffd}")]);
    assert_eq!(pairs("a%5Bb%5D=1&a=b=c"), [pair("a[b]", "1"), pair("a", "b=c")]);
}

#[test]
fn skips_empty_pairs_and_keeps_empty_values() {
    assert_eq!(pairs("&a=&&b&"), [pair("a", ""), pair("b", "")]);
    assert_eq!(Query::parse(None), Query::default());
}

#[test]
fn tells_repeated_keys_from_single_ones() {
    let query = Query::parse(Some("directory=/a&directory=/b&before=&one=1&r=false&r=true"));
    assert_eq!(query.all("directory"), ["/a", "/b"]);
    assert_eq!(query.text("directory"), None);
    assert_eq!(query.text("before"), None);
    assert_eq!(query.text("one"), Some("1"));
    assert_eq!(query.text("absent"), None);
    assert_eq!(query.first("r"), Some("false"));
}

#[test]
fn looks_at_a_bounded_number_of_pairs() {
    let raw = format!("{}late=1", "a=1&".repeat(1000));
    assert_eq!(Query::parse(Some(&raw)).text("late"), None);
}
