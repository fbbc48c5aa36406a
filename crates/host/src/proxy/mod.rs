//! Requests that are handed on to the OpenCode server.
//!
//! The host takes OpenCode's place: a client with `http://HOST:7420/api` as its base address gets
//! there what it gets from the server itself. Bodies stream both ways, however large they are, and
//! neither side is read faster than the other takes it.
//!
//! | | |
//! |---|---|
//! | `target` | from the path and query that came to those the server is asked for |
//! | `directory` | directories by their real paths, as the server knows them |
//! | `headers` | which headers go on in either direction |
//! | `body` | bodies that are handed on, and given up when nothing comes any more |
//! | `tunnel` | connections that become something else than HTTP |
//! | `list` | the official list of messages, of stored sessions as well |
//! | `reasoning` | leaving reasoning out of such a list |
//!
//! Sending is the business of the upstream's `forward`.

pub(crate) mod body;
mod directory;
pub(crate) mod headers;
pub(crate) mod list;
mod options;
pub(crate) mod reasoning;
mod target;
pub(crate) mod tunnel;

pub(crate) use directory::Directories;
pub use options::ProxyOptions;
pub(crate) use target::Target;

/// What requests on their way to the upstream share.
#[derive(Debug)]
pub(crate) struct Proxy {
    options: ProxyOptions,
    directories: Directories,
}

impl Proxy {
    /// Hands requests on within these limits.
    pub(crate) fn new(options: ProxyOptions) -> Self {
        Self { options, directories: Directories::default() }
    }

    pub(crate) fn options(&self) -> &ProxyOptions {
        &self.options
    }

    pub(crate) fn directories(&self) -> &Directories {
        &self.directories
    }
}
