//! The cookie of a login.

use axum::http::{HeaderMap, HeaderValue, header};

use super::secret::Secret;
use crate::serve::Peer;

/// Its name over plain HTTP.
const NAME: &str = "turnkeep";

/// Its name over HTTPS. Browsers take this prefix only from the host itself, over HTTPS and for all
/// paths, so that no neighbour can plant one.
const SECURE_NAME: &str = "__Host-turnkeep";

fn name(peer: Peer) -> &'static str {
    if peer.secure { SECURE_NAME } else { NAME }
}

/// A new cookie, which ends with the browser.
pub(crate) fn set(id: &Secret, peer: Peer) -> Option<HeaderValue> {
    let mut value = spelled(id.reveal(), peer)?;
    value.set_sensitive(true);
    Some(value)
}

/// A cookie that ends the one there is.
pub(crate) fn cleared(peer: Peer) -> Option<HeaderValue> {
    let mut text = spelled("", peer)?.to_str().ok()?.to_owned();
    text.push_str("; Max-Age=0");
    HeaderValue::try_from(text).ok()
}

fn spelled(value: &str, peer: Peer) -> Option<HeaderValue> {
    let secure = if peer.secure { "; Secure" } else { "" };
    let text = format!("{}={value}; Path=/; HttpOnly; SameSite=Strict{secure}", name(peer));
    HeaderValue::try_from(text).ok()
}

/// What our cookie holds, in a request that has one. A second one of its name makes it none: one of
/// the two was planted.
pub(crate) fn get(headers: &HeaderMap, peer: Peer) -> Option<Secret> {
    let wanted = name(peer);
    let mut found = pairs(headers).filter(|(name, _)| *name == wanted).map(|(_, value)| value);
    let value = found.next()?;
    found.next().is_none().then(|| Secret::new(value.to_owned()))
}

fn pairs(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|value| value.split(';'));
    pairs.filter_map(|pair| pair.split_once('=')).map(|(name, value)| (name.trim(), value.trim()))
}

#[cfg(test)]
#[path = "cookie_tests.rs"]
mod tests;
