use super::UpstreamOptions;

#[test]
fn segments_are_escaped_each_by_itself() {
    let options = UpstreamOptions::new("http://127.0.0.1:4096/base/").unwrap();
    let url = options.url(&["session", "ses_a/b c?é%", "message"]);
    assert_eq!(
        url.as_str(),
        "http://127.0.0.1:4096/base/session/ses_a%2Fb%20c%3F%C3%A9%25/message"
    );
    let root = UpstreamOptions::new("http://localhost").unwrap();
    assert_eq!(root.url(&["global", "health"]).as_str(), "http://localhost/global/health");
}

#[test]
fn addresses_that_cannot_be_meant_are_refused() {
    for address in ["", "127.0.0.1:4096", "ftp://h", "https://h", "http://h/?a=1", "http://h/#a"] {
        assert!(UpstreamOptions::new(address).is_err(), "{address}");
    }
    let error = UpstreamOptions::new("http://me:secret@h:1").unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn a_password_is_never_shown() {
    let options = UpstreamOptions::new("http://h").unwrap().with_password(Some("secret".into()));
    assert_eq!(options.login(), Some(("opencode", "secret")));
    assert!(!format!("{options:?}").contains("secret"));
    let named = options.with_username(Some("me".into()));
    assert_eq!(named.login(), Some(("me", "secret")));
    assert_eq!(named.with_password(Some(String::new())).login(), None);
}
