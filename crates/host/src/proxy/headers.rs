//! Which headers go on, in either direction.
//!
//! What is about one connection stays on that connection. What is about who the client is stays
//! with us: we have checked it, and the upstream knows us alone. What is about who we are to a
//! browser is ours to say.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use super::Directories;
use crate::http::percent;

/// Names the directory a request is about.
const DIRECTORY: HeaderName = HeaderName::from_static("x-opencode-directory");

/// Says how the directory is spelled.
const DIRECTORY_ENCODING: HeaderName = HeaderName::from_static("x-opencode-directory-encoding");

/// About one connection only. `content-length` is written anew from what the body knows.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// About the client and about us, which is none of the upstream's business. No cookie is: the
/// upstream can set none through us.
const CLIENTS: [HeaderName; 14] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::HOST,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::ORIGIN,
    header::REFERER,
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-method-override"),
    DIRECTORY_ENCODING,
];

/// What starts like this is about the way a request took.
const CLIENTS_PREFIXES: [&str; 2] = ["x-forwarded-", "sec-fetch-"];

/// What a browser would take for ours.
const SERVERS: [HeaderName; 6] = [
    header::SET_COOKIE,
    HeaderName::from_static("set-cookie2"),
    header::WWW_AUTHENTICATE,
    header::STRICT_TRANSPORT_SECURITY,
    header::ALT_SVC,
    HeaderName::from_static("clear-site-data"),
];

/// Which pages may read an answer is ours to say.
const SERVERS_PREFIX: &str = "access-control-";

/// Where addresses stand in an answer.
const ADDRESSES: [HeaderName; 3] = [header::LOCATION, header::CONTENT_LOCATION, header::LINK];

/// What of a request's headers the upstream gets.
pub(crate) async fn to_upstream(headers: &HeaderMap, directories: &Directories) -> HeaderMap {
    let mut forwarded = headers.clone();
    remove_hop_by_hop(&mut forwarded);
    remove(&mut forwarded, &CLIENTS, &CLIENTS_PREFIXES);
    // Several lines of it would be taken for one text.
    let directory = headers.get(DIRECTORY).and_then(|directory| directory.to_str().ok());
    if let Some(directory) = directory {
        let decoded = percent::decode_path(directory);
        let real = directories.real(decoded.as_deref().unwrap_or(directory)).await;
        let real = real.and_then(|real| HeaderValue::from_str(&percent::encode(&real)).ok());
        if let Some(real) = real {
            forwarded.insert(DIRECTORY, real);
        }
    }
    forwarded
}

/// What of an answer's headers the client gets. `base` is the upstream's authority and the path
/// that all of its own are below.
pub(crate) fn to_client(mut headers: HeaderMap, base: (&str, &str)) -> HeaderMap {
    remove_hop_by_hop(&mut headers);
    remove(&mut headers, &SERVERS, &[SERVERS_PREFIX]);
    for name in ADDRESSES {
        let values: Vec<_> = headers.get_all(&name).iter().cloned().collect();
        for (at, value) in values.into_iter().enumerate() {
            let moved = moved(&name, &value, base).unwrap_or(value);
            if at == 0 {
                headers.insert(name.clone(), moved);
            } else {
                headers.append(name.clone(), moved);
            }
        }
    }
    if is_event_stream(&headers) {
        // A reverse proxy before us is not to hold back what has happened.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    }
    headers
}

/// Whether the body is a stream of events.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    media_type(headers) == "text/event-stream"
}

/// Whether the body says that it is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let media_type = media_type(headers);
    media_type == "application/json" || media_type.ends_with("+json")
}

/// The protocol that a request wants its connection to become, when it is one that is handed on.
///
/// That is WebSocket alone. A connection that becomes HTTP/2 would carry requests past every
/// check.
pub(crate) fn wanted_upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let wants = tokens(headers, &header::CONNECTION).any(|token| token == "upgrade");
    let mut protocols = headers.get_all(header::UPGRADE).iter();
    match (protocols.next(), protocols.next()) {
        (Some(protocol), None)
            if wants && protocol.as_bytes().eq_ignore_ascii_case(b"websocket") =>
        {
            Some(protocol.clone())
        }
        _ => None,
    }
}

fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let bare = value.unwrap_or_default().split(';').next().unwrap_or_default();
    bare.trim().to_ascii_lowercase()
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<_> = tokens(headers, &header::CONNECTION)
        .filter_map(|token| HeaderName::try_from(token).ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

fn remove(headers: &mut HeaderMap, names: &[HeaderName], prefixes: &[&str]) {
    let found: Vec<_> = headers
        .keys()
        .filter(|name| prefixes.iter().any(|prefix| name.as_str().starts_with(prefix)))
        .cloned()
        .collect();
    for name in names.iter().chain(&found) {
        headers.remove(name);
    }
}

/// The comma-separated words of every header of this name, in lower case.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = String> + use<'a> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|word| word.trim().to_ascii_lowercase())
}

/// The header with addresses of the upstream as addresses of ours; `None` when it holds none.
///
/// Ours are told without a host: a client finds them where it found this answer.
fn moved(name: &HeaderName, value: &HeaderValue, base: (&str, &str)) -> Option<HeaderValue> {
    let text = value.to_str().ok()?;
    let moved = if *name == header::LINK {
        let mut moved = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('<') {
            let (address, after) = after.split_once('>')?;
            let address = of_ours(address, base).unwrap_or_else(|| address.to_owned());
            moved = moved + before + "<" + &address + ">";
            rest = after;
        }
        moved + rest
    } else {
        of_ours(text, base)?
    };
    HeaderValue::from_str(&moved).ok()
}

/// The address of ours for an address of the upstream; `None` for one of somebody else, and for
/// one that is relative to where it was found.
fn of_ours(address: &str, (authority, base): (&str, &str)) -> Option<String> {
    let is_absolute = address.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let below_scheme = if is_absolute { address.get(7..) } else { address.strip_prefix("//") };
    let path = match below_scheme {
        Some(below) => {
            let end = below.find(['/', '?', '#']).unwrap_or(below.len());
            let (host, path) = below.split_at_checked(end)?;
            if !host.eq_ignore_ascii_case(authority) {
                return None;
            }
            path
        }
        None if address.starts_with('/') => address,
        None => return None,
    };
    let below_base = path.strip_prefix(base)?;
    let is_below = below_base.is_empty() || below_base.starts_with(['/', '?', '#']);
    is_below.then(|| format!("/api{below_base}"))
}

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;
