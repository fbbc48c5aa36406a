use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderValue};

use super::{Peer, Proxies, is_from_elsewhere};

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_static(value));
    }
    headers
}

fn peer(socket: &str, pairs: &[(&'static str, &'static str)]) -> (String, bool) {
    let networks = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().unwrap());
    let proxies = Proxies::new(networks.to_vec());
    let Peer { address, secure } = proxies.peer(socket.parse().unwrap(), false, &headers(pairs));
    (address.to_string(), secure)
}

fn plain(address: &str) -> (String, bool) {
    (address.to_owned(), false)
}

#[test]
fn the_client_is_the_right_most_hop_that_is_no_trusted_proxy() {
    for (hops, client) in [
        ("203.0.113.7", "203.0.113.7"),
        ("1.1.1.1, 203.0.113.7", "203.0.113.7"),
        ("1.1.1.1,203.0.113.7, 10.9.9.9", "203.0.113.7"),
        ("10.1.1.1, 10.9.9.9", "10.1.1.1"),
        ("203.0.113.7:4711", "203.0.113.7"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("203.0.113.7, unknown", "10.0.0.1"),
        ("203.0.113.7, unknown, 10.2.2.2", "10.2.2.2"),
        ("", "10.0.0.1"),
    ] {
        assert_eq!(peer("10.0.0.1", &[("x-forwarded-for", hops)]), plain(client), "{hops}");
    }
    let twice = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "203.0.113.7, 10.3.3.3")];
    assert_eq!(peer("fd00::1", &twice), plain("203.0.113.7"));
    assert_eq!(peer("::ffff:10.0.0.1", &twice), plain("203.0.113.7"));
}

#[test]
fn who_is_no_trusted_proxy_speaks_for_itself() {
    let lies = [("x-forwarded-for", "127.0.0.1"), ("x-forwarded-proto", "https")];
    assert_eq!(peer("203.0.113.7", &lies), plain("203.0.113.7"));
    assert_eq!(peer("127.0.0.1", &lies), plain("127.0.0.1"));
}

#[test]
fn the_scheme_is_the_nearest_proxys_word() {
    let secure = |value| peer("10.0.0.1", &[("x-forwarded-proto", value)]).1;
    assert!(secure("https") && secure("HTTPS") && secure("http, https"));
    assert!(!secure("http") && !secure("https, http") && !secure(""));
    let proxies = Proxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
    let over_tls = |pairs| proxies.peer([10, 0, 0, 1].into(), true, &headers(pairs)).secure;
    assert!(over_tls(&[]) && !over_tls(&[("x-forwarded-proto", "http")]));
    let direct = Proxies::new(Vec::new()).peer([127, 0, 0, 1].into(), true, &HeaderMap::new());
    assert!(direct.secure);
}

#[test]
fn an_ipv6_client_is_counted_by_its_network() {
    let network = |address: &str| {
        Peer { address: address.parse().unwrap(), secure: false }.network().to_string()
    };
    assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    assert_eq!(network("::ffff:203.0.113.7"), "203.0.113.7");
    assert_eq!(network("203.0.113.7"), "203.0.113.7");
    let loopback: IpAddr = "::1".parse().unwrap();
    assert_ne!(network("::1"), loopback.to_string());
}

#[test]
fn what_a_proxy_hands_on_from_elsewhere_is_told_from_what_is_local() {
    for hops in ["127.0.0.1", "::1", "127.0.0.1:80, [::1]:80"] {
        assert!(!is_from_elsewhere(&headers(&[("x-forwarded-for", hops)])), "{hops}");
    }
    for hops in ["203.0.113.7", "127.0.0.1, 10.0.0.1", "unknown", ""] {
        assert!(is_from_elsewhere(&headers(&[("x-forwarded-for", hops)])), "{hops}");
    }
    assert!(is_from_elsewhere(&headers(&[("forwarded", "for=127.0.0.1")])));
    assert!(!is_from_elsewhere(&HeaderMap::new()));
}
