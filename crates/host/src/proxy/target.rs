//! From the path and query that came to those the upstream is asked for.
//!
//! Both are handed on byte for byte as far as that is safe. The upstream and whatever stands before
//! it may decode a path before they take it apart, so a path is looked at decoded here: what could
//! then lead out of the upstream's own part of its server is refused, however it is escaped. Runs
//! of slashes become one, since a path that starts with two of them is an address of another host
//! to some parsers.

use std::borrow::Cow;

use crate::http::percent;

use super::Directories;

/// What the upstream is asked for, below its base address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    path: String,
    query: Option<String>,
}

/// A path that is not handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadTarget;

impl Target {
    /// Reads a path under `/api`, still escaped.
    pub(crate) fn below_api(path: &str) -> Result<Self, BadTarget> {
        let below_root = path.strip_prefix('/').unwrap_or(path);
        let below_api = below_root.split_once('/').map_or("", |(_, below)| below);
        let mut target = String::with_capacity(below_api.len() + 1);
        target.push('/');
        let mut last = Some("");
        for segment in below_api.split('/') {
            if segment.is_empty() {
                last = None;
                continue;
            }
            let decoded = percent::decode_path(segment).ok_or(BadTarget)?;
            let is_odd = |c: char| c.is_ascii_control() || c == '\\';
            if decoded.contains(is_odd)
                || decoded.split('/').any(|name| [".", ".."].contains(&name))
            {
                return Err(BadTarget);
            }
            if target.len() > 1 {
                target.push('/');
            }
            target.push_str(segment);
            last = Some(segment);
        }
        // A slash at the end is part of the name.
        if last.is_none() && target.len() > 1 {
            target.push('/');
        }
        Ok(Self { path: target, query: None })
    }

    /// Adds the query, still escaped, with directories by their real paths and without the keys
    /// that are not the upstream's business.
    pub(crate) async fn with_query(
        mut self,
        query: Option<&str>,
        directories: &Directories,
        without: Option<&str>,
    ) -> Self {
        let Some(query) = query else { return self };
        let mut pairs: Vec<Cow<'_, str>> = Vec::new();
        for pair in query.split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = percent::decode_form(key);
            if without == Some(name.as_str()) {
                continue;
            }
            let real = match name.as_str() {
                // Clients of both versions of the routes name it in both ways.
                "directory" | "location[directory]" => {
                    directories.real(&percent::decode_form(value)).await
                }
                _ => None,
            };
            pairs.push(match real {
                Some(real) => Cow::Owned(format!("{key}={}", percent::encode(&real))),
                None => Cow::Borrowed(pair),
            });
        }
        self.query = (!pairs.is_empty()).then(|| pairs.join("&"));
        self
    }

    /// Path and query as they follow the upstream's base address.
    pub(crate) fn to_text(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// The id of the session that the path is about, of either version of the upstream's routes.
    pub(crate) fn session(&self) -> Option<String> {
        let segments: Vec<_> = self.path.split('/').skip(1).collect();
        let id = match segments.as_slice() {
            ["session", id, ..] | ["api", "session", id, ..] => *id,
            _ => return None,
        };
        // These two stand where an id would, and are none.
        percent::decode_path(id).filter(|id| !["", "status", "active"].contains(&id.as_str()))
    }

    /// Whether the first segment of the path is this one. What is below names that OpenCode does not
    /// have is not handed on, so that a mistake in it is not answered with OpenCode's web page.
    pub(crate) fn is_below(&self, name: &str) -> bool {
        let mut segments = self.path.split('/').skip(1);
        segments.next().is_some_and(|first| first.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
