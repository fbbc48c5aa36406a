use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};

use super::{Caller, Door, Guard, Refusal, is_embedded_elsewhere, is_loopback, is_unexplained};
use crate::serve::Peer;

const LOCAL: Peer =
    Peer { address: std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), secure: false };

fn admit(host: &str, origin: Option<&str>) -> Result<Caller, Refusal> {
    admit_at(Door::Open, LOCAL, host, origin)
}

fn admit_at(door: Door, peer: Peer, host: &str, origin: Option<&str>) -> Result<Caller, Refusal> {
    let guard = Guard::new(&["https://reader.example/".to_owned()]);
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
    if let Some(origin) = origin {
        headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
    }
    guard.admit(&Uri::from_static("/"), &headers, peer, door)
}

fn admit_headers(uri: &'static str, headers: &HeaderMap) -> Result<Caller, Refusal> {
    Guard::new(&[]).admit(&Uri::from_static(uri), headers, LOCAL, Door::Open)
}

#[test]
fn names_of_this_machine_are_let_in() {
    for host in [
        "localhost",
        "LOCALHOST:7420",
        "localhost.:7420",
        "reader.localhost:7420",
        "127.0.0.1",
        "127.0.0.1:7420",
        "127.8.9.1:80",
        "[::1]:7420",
        "[::ffff:127.0.0.1]",
    ] {
        assert_eq!(admit(host, None), Ok(Caller::Local), "{host}");
    }
}

#[test]
fn names_of_other_machines_are_refused() {
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "evil.example:7420",
        "192.168.1.2:7420",
        "0.0.0.0",
        "[::2]",
        "[::ffff:10.0.0.1]",
        "notlocalhost",
        "",
    ] {
        assert_eq!(admit(host, None), Err(Refusal::Host), "{host}");
    }
}

#[test]
fn a_request_names_exactly_one_host() {
    assert_eq!(admit_headers("/", &HeaderMap::new()), Err(Refusal::Host));

    let mut twice = HeaderMap::new();
    twice.append(header::HOST, HeaderValue::from_static("localhost"));
    twice.append(header::HOST, HeaderValue::from_static("evil.example"));
    assert_eq!(admit_headers("/", &twice), Err(Refusal::Host));

    let mut local = HeaderMap::new();
    local.insert(header::HOST, HeaderValue::from_static("localhost"));
    assert_eq!(admit_headers("http://evil.example/health", &local), Err(Refusal::Host));
}

#[test]
fn our_own_pages_and_programs_are_local() {
    let ours = admit("127.0.0.1:7420", Some("http://127.0.0.1:7420"));
    assert_eq!(ours, Ok(Caller::Local));
    assert_eq!(admit("localhost", Some("http://localhost")), Ok(Caller::Local));
    assert_eq!(admit("localhost:80", Some("http://localhost")), Ok(Caller::Local));
}

#[test]
fn allowed_origins_are_named_and_others_refused() {
    for origin in [
        "openchamber-ui://app",
        "capacitor://localhost",
        "https://reader.example",
        "https://reader.example:443",
    ] {
        let caller = admit("localhost:7420", Some(origin));
        assert_eq!(caller, Ok(Caller::Allowed(HeaderValue::from_str(origin).unwrap())), "{origin}");
    }
    for origin in [
        "null",
        "",
        "http://localhost:3000",
        "https://localhost:7420",
        "http://127.0.0.1:7420",
        "http://reader.example",
        "https://reader.example.evil",
        "capacitor://evil",
    ] {
        let caller = admit("localhost:7420", Some(origin));
        assert_eq!(caller, Err(Refusal::Origin), "{origin}");
    }
}

#[test]
fn two_origins_are_one_too_many() {
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, HeaderValue::from_static("localhost"));
    headers.append(header::ORIGIN, HeaderValue::from_static("http://localhost"));
    headers.append(header::ORIGIN, HeaderValue::from_static("http://evil.example"));
    assert_eq!(admit_headers("/", &headers), Err(Refusal::Origin));
}

#[test]
fn only_allowed_origins_get_cors_headers() {
    let mut headers = HeaderMap::new();
    Caller::Local.write_headers(&mut headers);
    assert_eq!(headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN), None);
    assert_eq!(headers[header::VARY], "Origin");

    let mut headers = HeaderMap::new();
    Caller::Allowed(HeaderValue::from_static("capacitor://localhost")).write_headers(&mut headers);
    assert_eq!(headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], "capacitor://localhost");
    assert_eq!(headers[header::ACCESS_CONTROL_ALLOW_CREDENTIALS], "true");
}

#[test]
fn loopback_addresses_are_told_from_the_rest() {
    for address in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
        assert!(is_loopback(address.parse().unwrap()), "{address}");
    }
    for address in ["0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1"] {
        assert!(!is_loopback(address.parse().unwrap()), "{address}");
    }
}

#[test]
fn a_locked_host_has_any_name_and_only_its_own_origin() {
    let secure = Peer { secure: true, ..LOCAL };
    let locked = |peer, origin| admit_at(Door::Locked, peer, "keep.example:7420", origin);
    assert_eq!(locked(LOCAL, None), Ok(Caller::Local));
    assert_eq!(locked(LOCAL, Some("http://keep.example:7420")), Ok(Caller::Local));
    assert_eq!(locked(secure, Some("https://keep.example:7420")), Ok(Caller::Local));
    assert_eq!(locked(secure, Some("http://keep.example:7420")), Err(Refusal::Origin));
    assert_eq!(locked(LOCAL, Some("https://keep.example:7420")), Err(Refusal::Origin));
    assert_eq!(locked(LOCAL, Some("http://keep.example")), Err(Refusal::Origin));
    assert_eq!(locked(LOCAL, Some("http://localhost:7420")), Err(Refusal::Origin));
    assert_eq!(admit_at(Door::Locked, LOCAL, "", None), Err(Refusal::Host));
}

#[test]
fn an_open_host_takes_nothing_from_elsewhere_through_a_proxy() {
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, HeaderValue::from_static("localhost"));
    headers.insert("x-forwarded-for", HeaderValue::from_static("203.0.113.7"));
    assert_eq!(admit_headers("/", &headers), Err(Refusal::Host));
    headers.insert("x-forwarded-for", HeaderValue::from_static("127.0.0.1"));
    assert_eq!(admit_headers("/", &headers), Ok(Caller::Local));
}

fn fetched(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
        .collect()
}

#[test]
fn what_other_pages_embed_is_told_from_what_is_asked_for() {
    for site in ["cross-site", "same-site"] {
        assert!(is_embedded_elsewhere(&fetched(&[("sec-fetch-site", site)])), "{site}");
        let named = [("sec-fetch-site", site), ("origin", "capacitor://localhost")];
        assert!(!is_embedded_elsewhere(&fetched(&named)), "{site}");
    }
    for site in ["same-origin", "none"] {
        assert!(!is_embedded_elsewhere(&fetched(&[("sec-fetch-site", site)])), "{site}");
    }
    assert!(!is_embedded_elsewhere(&HeaderMap::new()), "a program");
}

#[test]
fn a_change_by_cookie_shows_where_it_comes_from() {
    let nothing = HeaderMap::new();
    let same = fetched(&[("sec-fetch-site", "same-origin")]);
    let named = fetched(&[("origin", "http://localhost")]);
    let none = fetched(&[("sec-fetch-site", "none")]);
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        assert!(is_unexplained(&method, &nothing) && is_unexplained(&method, &none), "{method}");
        assert!(!is_unexplained(&method, &same) && !is_unexplained(&method, &named), "{method}");
    }
    assert!(!is_unexplained(&Method::GET, &nothing) && !is_unexplained(&Method::HEAD, &nothing));
    assert!(is_unexplained(&Method::GET, &fetched(&[("upgrade", "websocket")])));
    let socket = [("upgrade", "websocket"), ("origin", "http://localhost")];
    assert!(!is_unexplained(&Method::GET, &fetched(&socket)));
}
