//! Which web pages may ask, with a password and without.
//!
//! A program asks for the person who started it. A page asks for whoever wrote it, out of the
//! browser of somebody who may be let in, and these are kept out:
//!
//! - A page can make its own name resolve to 127.0.0.1 (DNS rebinding); the browser then takes us
//!   for that site. Its requests carry the site's name in `Host`. An open host, which lets in
//!   whoever is on this machine, refuses every name that is not a loopback name. One that asks for
//!   a password has any name: the browser has no cookie of ours for the page's.
//! - A page can send requests across origins. Those carry `Origin`, so an origin that is neither
//!   ours nor allowed is refused, whatever the method.
//! - What a page only embeds, images and scripts, carries no `Origin`, and browsers say in
//!   `Sec-Fetch-Site` where it is embedded.
//!
//! An open host also refuses what a reverse proxy hands on from another machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header, uri::Authority};

use crate::serve::{Peer, is_from_elsewhere};

/// The origins of the two apps that talk to a host: always allowed.
const APP_ORIGINS: [&str; 2] = ["openchamber-ui://app", "capacitor://localhost"];

/// Decides which requests are let in.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    allowed: Vec<String>,
}

/// Whether a host lets in whoever is on its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// Without a password or a token.
    Open,
    /// With one only.
    Locked,
}

/// On whose behalf a request was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A program, or a page of our own.
    Local,
    /// A page of an allowed origin, which the response must name for the browser to show it.
    Allowed(HeaderValue),
}

/// Why a request was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// `Host` is not a name of this machine's loopback, or the request came through a proxy from
    /// elsewhere.
    Host,
    /// `Origin` is neither ours nor allowed.
    Origin,
}

impl Refusal {
    /// The stable word for it.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Host => "forbidden_host",
            Self::Origin => "forbidden_origin",
        }
    }
}

impl Guard {
    /// Lets in the two apps and these origins.
    pub(crate) fn new(allow_origins: &[String]) -> Self {
        let apps = APP_ORIGINS.iter().map(|origin| (*origin).to_owned());
        let allowed = apps.chain(allow_origins.iter().map(|origin| normalized(origin)));
        Self { allowed: allowed.collect() }
    }

    /// Decides on a request, which came from `peer`.
    pub(crate) fn admit(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        peer: Peer,
        door: Door,
    ) -> Result<Caller, Refusal> {
        let host = host(uri, headers).ok_or(Refusal::Host)?;
        if door == Door::Open && (!is_loopback_name(&host) || is_from_elsewhere(headers)) {
            return Err(Refusal::Host);
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let (origin, None) = (origins.next(), origins.next()) else {
            return Err(Refusal::Origin);
        };
        let Some(origin) = origin else {
            return Ok(Caller::Local);
        };
        let spelled = normalized(origin.to_str().map_err(|_| Refusal::Origin)?);
        let scheme = if peer.secure { "https" } else { "http" };
        if spelled == normalized(&format!("{scheme}://{host}")) {
            Ok(Caller::Local)
        } else if self.allowed.contains(&spelled) {
            Ok(Caller::Allowed(origin.clone()))
        } else {
            Err(Refusal::Origin)
        }
    }
}

impl Caller {
    /// Adds what lets the caller's browser hand the response to the page.
    pub(crate) fn write_headers(&self, headers: &mut HeaderMap) {
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        let Self::Allowed(origin) = self else { return };
        let fixed: [(HeaderName, &'static str); 2] = [
            (header::ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"),
            (
                header::ACCESS_CONTROL_EXPOSE_HEADERS,
                "x-next-cursor, x-openchamber-file-exists, x-turnkeep-event-id",
            ),
        ];
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        for (name, value) in fixed {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
}

/// What browsers say about the page that a request comes from.
fn fetch_site(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get("sec-fetch-site").map(HeaderValue::as_bytes)
}

/// Whether a page of another origin embeds what is asked for. Such a page names itself only in
/// requests whose answer it may see.
pub(crate) fn is_embedded_elsewhere(headers: &HeaderMap) -> bool {
    !headers.contains_key(header::ORIGIN)
        && matches!(fetch_site(headers), Some(b"cross-site" | b"same-site"))
}

/// Whether a request that a browser has put a cookie on may be of a page that is not ours.
///
/// `SameSite=Strict` keeps the cookie off the requests of other sites; another port of the same
/// machine is the same site. What changes something therefore shows where it comes from, by an
/// origin, which was looked at by then, or by `Sec-Fetch-Site`. So does a WebSocket, whose opening
/// is a GET.
pub(crate) fn is_unexplained(method: &Method, headers: &HeaderMap) -> bool {
    let is_safe = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    let explains = headers.contains_key(header::ORIGIN)
        || fetch_site(headers) == Some(b"same-origin".as_slice());
    (!is_safe || headers.contains_key(header::UPGRADE)) && !explains
}

/// The authority a request was sent to: that of the URL where it has one, else the one `Host`.
fn host(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    if let Some(authority) = uri.authority() {
        return Some(authority.clone());
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => Authority::try_from(host.as_bytes()).ok(),
        _ => None,
    }
}

/// Whether a request was sent to a name of the loopback, which a browser shares with every other
/// server of its machine.
pub(crate) fn names_loopback(uri: &Uri, headers: &HeaderMap) -> bool {
    host(uri, headers).is_some_and(|host| is_loopback_name(&host))
}

fn is_loopback_name(authority: &Authority) -> bool {
    if authority.as_str().contains('@') {
        return false;
    }
    let host = authority.host();
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    if host == "localhost" || host.ends_with(".localhost") {
        return true;
    }
    if let Some(v6) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return v6.parse::<Ipv6Addr>().is_ok_and(|address| is_loopback(IpAddr::V6(address)));
    }
    host.parse::<Ipv4Addr>().is_ok_and(|address| is_loopback(IpAddr::V4(address)))
}

/// Whether an address can only be reached from this machine.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Origins are compared without regard to case, a trailing slash, or the default port.
fn normalized(origin: &str) -> String {
    let lower = origin.trim_end_matches('/').to_ascii_lowercase();
    let default_port = match lower.split_once("://") {
        Some(("http", _)) => ":80",
        Some(("https", _)) => ":443",
        _ => "",
    };
    lower.strip_suffix(default_port).unwrap_or(&lower).to_owned()
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
