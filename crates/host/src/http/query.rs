//! Query strings, read the way the clients' other host reads them.
//!
//! That is Node's `querystring`: pairs are split at `&` and at the first `=`, `+` and `%20` are
//! spaces, a bad escape stands for itself, bytes that are not UTF-8 become U+FFFD, and a key that
//! repeats has several values. There is no nesting, and nothing in a query is an error here.

use super::percent;

/// The pairs of one query string, decoded, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Past this many pairs the rest is not looked at, as in Node.
    const MAX_PAIRS: usize = 1000;

    /// Reads the part of a URL after the `?`.
    pub(crate) fn parse(raw: Option<&str>) -> Self {
        let pairs = raw
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty())
            .take(Self::MAX_PAIRS)
            .map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                (percent::decode_form(key), percent::decode_form(value))
            })
            .collect();
        Self { pairs }
    }

    /// Every value of this key, in order; none when it is absent.
    pub(crate) fn all(&self, key: &str) -> Vec<&str> {
        let values = self.pairs.iter().filter(|(name, _)| name == key);
        values.map(|(_, value)| value.as_str()).collect()
    }

    /// The value of a key that must not repeat and must not be empty to count.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.all(key).as_slice() {
            [one] if !one.is_empty() => Some(one),
            _ => None,
        }
    }

    /// The value of a key where the first one counts.
    pub(crate) fn first(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The project directory that the request names, if any.
    pub(crate) fn directory(&self) -> Option<String> {
        self.text("directory").map(str::to_owned)
    }

    /// Whether reasoning parts are wanted: only exactly `false` leaves them out.
    pub(crate) fn include_reasoning(&self) -> bool {
        self.first("includeReasoning") != Some("false")
    }
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
