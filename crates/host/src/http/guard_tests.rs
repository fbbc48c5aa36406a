use axum::http::{HeaderMap, HeaderValue, Uri, header};

use super::{Caller, Guard, Refusal, is_loopback};

fn admit(host: &str, origin: Option<&str>) -> Result<Caller, Refusal> {
    let guard = Guard::new(&["https://reader.example/".to_owned()]);
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
    if let Some(origin) = origin {
        headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
    }
    guard.admit(&Uri::from_static("/"), &headers)
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
    let guard = Guard::new(&[]);
    let uri = Uri::from_static("/");
    assert_eq!(guard.admit(&uri, &HeaderMap::new()), Err(Refusal::Host));

    let mut twice = HeaderMap::new();
    twice.append(header::HOST, HeaderValue::from_static("localhost"));
    twice.append(header::HOST, HeaderValue::from_static("evil.example"));
    assert_eq!(guard.admit(&uri, &twice), Err(Refusal::Host));

    let mut local = HeaderMap::new();
    local.insert(header::HOST, HeaderValue::from_static("localhost"));
    let absolute = Uri::from_static("http://evil.example/health");
    assert_eq!(guard.admit(&absolute, &local), Err(Refusal::Host));
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
    let caller = Guard::new(&[]).admit(&Uri::from_static("/"), &headers);
    assert_eq!(caller, Err(Refusal::Origin));
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
