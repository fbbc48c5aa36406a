//! Who may ask, while no password is set.
//!
//! The host listens on loopback only, so every caller is a program on this machine. What is left
//! to keep out is web pages of other sites that the user's browser has open:
//!
//! - A page can make its own name resolve to 127.0.0.1 (DNS rebinding); the browser then takes us
//!   for that site. Its requests carry the site's name in `Host`, so a name that is not a
//!   loopback name is refused.
//! - A page can send requests across origins. Those carry `Origin`, so an origin that is neither
//!   ours nor allowed is refused, whatever the method.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header, uri::Authority};

/// The origins of the two apps that talk to a host: always allowed.
const APP_ORIGINS: [&str; 2] = ["openchamber-ui://app", "capacitor://localhost"];

/// Decides which requests are let in.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    allowed: Vec<String>,
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
    /// `Host` is not a name of this machine's loopback.
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

    /// Decides on a request.
    pub(crate) fn admit(&self, uri: &Uri, headers: &HeaderMap) -> Result<Caller, Refusal> {
        let host = host(uri, headers).ok_or(Refusal::Host)?;
        if !is_loopback_name(&host) {
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
        if spelled == normalized(&format!("http://{host}")) {
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
