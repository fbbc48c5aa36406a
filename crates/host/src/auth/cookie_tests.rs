use std::net::{IpAddr, Ipv4Addr};

use axum::http::{HeaderMap, HeaderValue, header};

use super::{cleared, get, set};
use crate::{auth::Secret, serve::Peer};

const PLAIN: Peer = Peer { address: IpAddr::V4(Ipv4Addr::LOCALHOST), secure: false };
const SECURE: Peer = Peer { secure: true, ..PLAIN };

#[test]
fn a_cookie_is_out_of_reach_of_scripts_and_other_sites() {
    let id = Secret::new("abc".to_owned());
    let value = set(&id, PLAIN).unwrap();
    assert_eq!(value, "turnkeep=abc; Path=/; HttpOnly; SameSite=Strict");
    assert!(value.is_sensitive());
    let value = set(&id, SECURE).unwrap();
    assert_eq!(value, "__Host-turnkeep=abc; Path=/; HttpOnly; SameSite=Strict; Secure");
    let value = cleared(SECURE).unwrap();
    assert_eq!(value, "__Host-turnkeep=; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=0");
}

#[test]
fn only_the_one_cookie_of_our_name_counts() {
    let held = |cookies: &[&'static str], peer| {
        let mut headers = HeaderMap::new();
        for cookie in cookies {
            headers.append(header::COOKIE, HeaderValue::from_static(cookie));
        }
        get(&headers, peer).map(|secret| secret.reveal().to_owned())
    };
    let abc = Some("abc".to_owned());
    assert_eq!(held(&["turnkeep=abc"], PLAIN), abc);
    assert_eq!(held(&["a=b; turnkeep=abc;c=d"], PLAIN), abc);
    assert_eq!(held(&["a=b", " turnkeep = abc "], PLAIN), abc);
    assert_eq!(held(&["__Host-turnkeep=abc; turnkeep=other"], SECURE), abc);
    assert_eq!(held(&["turnkeep=abc"], SECURE), None, "one that was not set over HTTPS");
    assert_eq!(held(&["__Host-turnkeep=abc"], PLAIN), None);
    assert_eq!(held(&["turnkeep=abc; turnkeep=def"], PLAIN), None);
    assert_eq!(held(&["turnkeep=abc", "turnkeep=def"], PLAIN), None);
    assert_eq!(held(&["xturnkeep=abc; turnkeep"], PLAIN), None);
    assert_eq!(held(&[], PLAIN), None);
}
