//! Where the OpenCode server is, and how to log in to it.

use std::fmt;

use reqwest::Url;
use thiserror::Error;

/// The user name that OpenCode expects beside a password unless it is told another one.
const DEFAULT_USERNAME: &str = "opencode";

/// Where an OpenCode server is, and how to log in to it.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamOptions {
    base: Url,
    username: String,
    password: Option<String>,
}

/// An address that no upstream can have.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the upstream address {address:?} {problem}; it looks like http://127.0.0.1:4096")]
pub struct UpstreamAddressError {
    /// The address given, without what may be a password in it.
    pub address: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl UpstreamOptions {
    /// An OpenCode server at this URL, without a password.
    ///
    /// # Errors
    ///
    /// It is no `http` URL with a host, or it carries a user name, a query or a fragment.
    pub fn new(address: &str) -> Result<Self, UpstreamAddressError> {
        let bad = |problem| UpstreamAddressError {
            address: address.rsplit('@').next().unwrap_or_default().to_owned(),
            problem,
        };
        let base = Url::parse(address).map_err(|_| bad("is no URL"))?;
        if base.scheme() != "http" {
            return Err(bad("is no http address"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(bad("carries a login, which belongs in a file or the environment"));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(bad("goes on after the path"));
        }
        Ok(Self { base, username: DEFAULT_USERNAME.to_owned(), password: None })
    }

    /// Logs in with this password (`OPENCODE_SERVER_PASSWORD` of the server).
    #[must_use]
    pub fn with_password(mut self, password: Option<String>) -> Self {
        self.password = password.filter(|password| !password.is_empty());
        self
    }

    /// Logs in under this name (`OPENCODE_SERVER_USERNAME` of the server) rather than `opencode`.
    #[must_use]
    pub fn with_username(mut self, username: Option<String>) -> Self {
        if let Some(username) = username.filter(|username| !username.is_empty()) {
            self.username = username;
        }
        self
    }

    /// The user name and the password, where there is a password.
    pub(super) fn login(&self) -> Option<(&str, &str)> {
        self.password.as_deref().map(|password| (self.username.as_str(), password))
    }

    /// Host and port, and the path that all others are below, without a slash at its end.
    pub(super) fn place(&self) -> (&str, &str) {
        (self.base.authority(), self.base.path().trim_end_matches('/'))
    }

    /// The URL of a resource: the base and these segments, each escaped as one segment.
    pub(super) fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }
}

impl fmt::Debug for UpstreamOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamOptions")
            .field("base", &self.base.as_str())
            .field("username", &self.username)
            .field("password", &self.password.as_ref().map(|_| "…"))
            .finish()
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
