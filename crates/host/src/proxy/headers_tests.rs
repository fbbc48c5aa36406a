use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::{Directories, of_ours, to_client, to_upstream, wanted_upgrade};

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::try_from(*name).unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn lines(headers: &HeaderMap) -> Vec<(String, String)> {
    let line = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    headers.iter().map(line).collect()
}

fn owned(lines: &[(&str, &str)]) -> Vec<(String, String)> {
    lines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

const BASE: (&str, &str) = ("127.0.0.1:4096", "/base");

#[tokio::test]
async fn what_is_about_the_client_or_the_connection_does_not_reach_the_upstream() {
    let came = headers(&[
        ("host", "turnkeep.example"),
        ("authorization", "Bearer tk_secret"),
        ("cookie", "turnkeep=secret; other=1"),
        ("cookie", "more=2"),
        ("connection", "keep-alive, X-Secret-Hop, upgrade"),
        ("x-secret-hop", "1"),
        ("keep-alive", "timeout=5"),
        ("proxy-authorization", "Basic x"),
        ("proxy-connection", "keep-alive"),
        ("te", "trailers"),
        ("trailer", "x-sum"),
        ("transfer-encoding", "chunked"),
        ("content-length", "3"),
        ("upgrade", "h2c"),
        ("expect", "100-continue"),
        ("origin", "http://turnkeep.example"),
        ("referer", "http://turnkeep.example/"),
        ("sec-fetch-site", "same-origin"),
        ("forwarded", "for=10.0.0.1"),
        ("via", "1.1 proxy"),
        ("x-forwarded-for", "10.0.0.1"),
        ("x-forwarded-host", "turnkeep.example"),
        ("x-real-ip", "10.0.0.1"),
        ("x-http-method", "DELETE"),
        ("x-http-method-override", "DELETE"),
        ("x-method-override", "DELETE"),
        ("accept", "application/json"),
        ("accept-encoding", "gzip, br"),
        ("content-type", "application/json"),
        ("x-custom", "one"),
        ("x-custom", "two"),
        ("last-event-id", "7"),
    ]);
    let went = to_upstream(&came, &Directories::default()).await;
    let kept = [
        ("accept", "application/json"),
        ("accept-encoding", "gzip, br"),
        ("content-type", "application/json"),
        ("x-custom", "one"),
        ("x-custom", "two"),
        ("last-event-id", "7"),
    ];
    let mut went = lines(&went);
    went.sort();
    let mut kept = owned(&kept);
    kept.sort();
    assert_eq!(went, kept);
}

#[tokio::test]
async fn the_directory_of_a_header_is_decoded_and_sent_by_its_real_path() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let (real, link) = (base.join("réal one"), base.join("a link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let directories = Directories::default();
    let sent = async |directory: &str, encoding: &[(&str, &str)]| {
        let mut came = headers(encoding);
        came.insert("x-opencode-directory", HeaderValue::from_str(directory).unwrap());
        let went = to_upstream(&came, &directories).await;
        assert!(!went.contains_key("x-opencode-directory-encoding"));
        went["x-opencode-directory"].to_str().unwrap().to_owned()
    };
    let expected = format!("{}/r%C3%A9al%20one", base.display());
    let uri = [("x-opencode-directory-encoding", "uri")];
    let plain = link.to_str().unwrap();
    let escaped = plain.replace('/', "%2F").replace(' ', "%20");
    assert_eq!(sent(plain, &[]).await, expected);
    assert_eq!(sent(&escaped, &[]).await, expected);
    assert_eq!(sent(&escaped, &uri).await, expected);
    // What has no other path, or none at all, goes on as it came.
    for same in [&expected, "/no/such%20place", "%zz"] {
        assert_eq!(sent(same, &uri).await, *same);
    }
}

#[test]
fn what_a_browser_would_take_for_ours_does_not_reach_the_client() {
    let came = headers(&[
        ("content-type", "application/json"),
        ("set-cookie", "a=1"),
        ("www-authenticate", "Basic realm=\"Secure Area\""),
        ("access-control-allow-origin", "*"),
        ("access-control-expose-headers", "Link, X-Next-Cursor"),
        ("strict-transport-security", "max-age=1"),
        ("clear-site-data", "\"cookies\""),
        ("connection", "close, x-hop"),
        ("x-hop", "1"),
        ("keep-alive", "timeout=5"),
        ("transfer-encoding", "chunked"),
        ("x-next-cursor", "abc"),
        ("content-encoding", "gzip"),
        ("content-length", "12"),
        ("vary", "Origin"),
    ]);
    let expected = [
        ("content-type", "application/json"),
        ("x-next-cursor", "abc"),
        ("content-encoding", "gzip"),
        ("content-length", "12"),
        ("vary", "Origin"),
    ];
    let (mut went, mut expected) = (lines(&to_client(came, BASE)), owned(&expected));
    went.sort();
    expected.sort();
    assert_eq!(went, expected);
}

#[test]
fn addresses_of_the_upstream_become_ours_and_others_stay() {
    for (address, moved) in [
        (
            "http://127.0.0.1:4096/base/session/x?limit=1&before=y",
            Some("/api/session/x?limit=1&before=y"),
        ),
        ("HTTP://127.0.0.1:4096/base", Some("/api")),
        ("//127.0.0.1:4096/base/x", Some("/api/x")),
        ("/base/x#y", Some("/api/x#y")),
        ("/basement", None),
        ("/other", None),
        ("http://127.0.0.1:4096/other", None),
        ("http://127.0.0.1:40960/base/x", None),
        ("https://127.0.0.1:4096/base/x", None),
        ("http://elsewhere.example/base/x", None),
        ("x/y", None),
        ("", None),
    ] {
        assert_eq!(of_ours(address, BASE).as_deref(), moved, "{address}");
    }
    assert_eq!(of_ours("/", ("h", "")).as_deref(), Some("/api/"));
}

#[test]
fn links_and_redirects_lead_back_to_us() {
    let came = headers(&[
        ("location", "http://127.0.0.1:4096/base/there"),
        (
            "link",
            "<http://127.0.0.1:4096/base/s?b=1>; rel=\"next\", <http://elsewhere/>; rel=\"help\"",
        ),
        ("link", "</base/s?b=2>; rel=\"prev\""),
        ("link", "<broken"),
    ]);
    let went = to_client(came, BASE);
    assert_eq!(went["location"], "/api/there");
    let links: Vec<_> = went.get_all("link").iter().map(|link| link.to_str().unwrap()).collect();
    let expected = [
        "</api/s?b=1>; rel=\"next\", <http://elsewhere/>; rel=\"help\"",
        "</api/s?b=2>; rel=\"prev\"",
        "<broken",
    ];
    assert_eq!(links, expected);
}

#[test]
fn streams_of_events_are_held_back_by_nobody() {
    let went = to_client(headers(&[("content-type", "Text/Event-Stream; charset=utf-8")]), BASE);
    assert_eq!(
        (&went["x-accel-buffering"], &went["cache-control"]),
        (&"no".parse().unwrap(), &"no-cache".parse().unwrap())
    );
    let own = [("content-type", "text/event-stream"), ("cache-control", "no-cache, no-transform")];
    assert_eq!(to_client(headers(&own), BASE)["cache-control"], "no-cache, no-transform");
}

#[test]
fn only_websockets_are_let_through() {
    let wants = |lines: &[(&str, &str)]| wanted_upgrade(&headers(lines)).is_some();
    assert!(wants(&[("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket")]));
    assert!(!wants(&[("upgrade", "websocket")]));
    assert!(!wants(&[("connection", "upgrade"), ("upgrade", "h2c")]));
    assert!(!wants(&[("connection", "upgrade"), ("upgrade", "websocket, h2c")]));
    assert!(!wants(&[("connection", "upgrade"), ("upgrade", "websocket"), ("upgrade", "h2c")]));
    assert!(!wants(&[("connection", "upgrade")]));
}
