//! What a host is told before it starts.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use ipnet::IpNet;
use thiserror::Error;
use turnkeep_store::{SessionStore, cold::BlankGates};
use turnkeep_turns::{
    query::{DEFAULT_WIDTH, configured_scan_limit},
    reconcile::{Budgets, KeyRing, KeyRingError},
};

use crate::{
    auth::{PasswordError, TokenFileError},
    events::EventTiming,
    proxy::ProxyOptions,
    serve::TlsError,
    transcript_cache::path::is_blank,
    upstream::UpstreamOptions,
};

/// The runtime when nothing names another one.
const DEFAULT_RUNTIME: &str = "web";

/// What a [`Host`](crate::Host) is told before it starts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HostOptions {
    /// The session logs to serve.
    pub store: Option<Arc<dyn SessionStore>>,
    /// The OpenCode server to stand in front of.
    pub upstream: Option<UpstreamOptions>,
    /// The address to listen on. One that other machines can reach takes a password or a token, see
    /// [`AuthOptions`]. Port 0 takes any free port.
    pub listen: SocketAddr,
    /// Browser origins that may call besides our own and the two apps', such as
    /// `https://reader.example`.
    pub allow_origins: Vec<String>,
    /// How many rows to ask a source for at a time when a request does not say, 10 to 200. It
    /// never changes what a page holds.
    pub scan_limit: usize,
    /// How much a page of a reconciling round may hold, and a round may take.
    pub reconcile: Budgets,
    /// The keys that continuations of rounds are signed with. `None` takes a random one, with which
    /// they end when the process does.
    pub continuation_keys: Option<KeyRing>,
    /// The name of the runtime: a continuation is good for hosts of the same name only.
    pub runtime: String,
    /// How many bytes of the upstream's bodies may be in memory at a time, over all requests. A
    /// body waits until there is room for it, and a single message larger than this is not read.
    pub upstream_body_bytes: usize,
    /// How long one request for a turn page may take, or for anything else of a transcript.
    pub page_deadline: Duration,
    /// Whether bodies are compressed for clients that take it.
    pub compress: bool,
    /// How many bytes of events to keep folded, so that they need not be read again.
    pub fold_cache_bytes: u64,
    /// Who may use the host.
    pub auth: AuthOptions,
    /// The certificate and key to serve HTTPS with; plain HTTP without.
    pub tls: Option<TlsOptions>,
    /// How much of the host one client may hold, and for how long.
    pub limits: ConnectionLimits,
    /// How many bytes of events are kept for clients that come back.
    pub replay_buffer_bytes: usize,
    /// How many bytes of events may wait for one client before it is dropped as too slow.
    pub client_queue_bytes: usize,
    /// The database of the transcript cache, a `.sqlite` file; `None` turns the cache off. It is
    /// opened when the host starts to serve; when that cannot be, the cache is off, with a warning.
    /// `None` set after [`HostOptions::with_environment`] turns off what the environment asks for.
    pub transcript_cache: Option<PathBuf>,
    /// The directory of the images that logs refer to.
    pub attachments: Option<PathBuf>,
    /// Which stored sessions are small enough to be read for the session list, which says then
    /// whether they are blank and when a person last wrote in them.
    pub listing_probe: BlankGates,
    /// How long things take on the event streams.
    pub event_timing: EventTiming,
    /// How long requests that are handed on to the upstream may take.
    pub proxy: ProxyOptions,
}

/// Who may use a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthOptions {
    /// A file whose first line is the password, or its argon2id hash.
    pub password_file: Option<PathBuf>,
    /// The file that API tokens are kept in.
    pub token_file: Option<PathBuf>,
    /// Whether only requests with a token or a password's cookie are let in although there is no
    /// password: a token file was named on purpose.
    pub tokens_required: bool,
    /// The networks of reverse proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
}

/// What HTTPS is served with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// A PEM file: the certificate, then those that vouch for it.
    pub certificate: PathBuf,
    /// A PEM file: its private key.
    pub key: PathBuf,
}

/// How much of a host one client may hold, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionLimits {
    /// How long a client may take for a TLS handshake, for the head of a request, and to say
    /// nothing between two requests: 10 s.
    pub head: Duration,
    /// How long nothing may come of a request's body while it is waited for: 30 s.
    pub body_idle: Duration,
    /// How long a client may take nothing of what is written to it: 30 s. A connection that nothing
    /// is to be written to may last for ever.
    pub write_idle: Duration,
    /// How long what is under way may take once the host stops: 10 s.
    pub drain: Duration,
    /// How many connections are served at a time; more wait to be accepted. As many as the process
    /// may have open files for, two each, 64 to 8192.
    pub connections: u32,
    /// How many of them one IPv4 address or one /64 network gets, a quarter; more are closed at
    /// once. Loopback and trusted reverse proxies are not counted.
    pub connections_of_one: u32,
    /// How often it is looked whether whoever a stream goes to would still be let in: 5 s.
    pub recheck: Duration,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            store: None,
            upstream: None,
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7420),
            allow_origins: Vec::new(),
            scan_limit: DEFAULT_WIDTH,
            reconcile: Budgets::default(),
            continuation_keys: None,
            runtime: DEFAULT_RUNTIME.to_owned(),
            upstream_body_bytes: 512 << 20,
            page_deadline: Duration::from_secs(45),
            compress: true,
            fold_cache_bytes: 256 << 20,
            auth: AuthOptions::default(),
            tls: None,
            limits: ConnectionLimits::default(),
            replay_buffer_bytes: 32 << 20,
            client_queue_bytes: 8 << 20,
            transcript_cache: None,
            attachments: None,
            listing_probe: BlankGates::default(),
            event_timing: EventTiming::default(),
            proxy: ProxyOptions::default(),
        }
    }
}

impl HostOptions {
    /// Takes over what the environment says, under the names that the clients' other host knows:
    /// `OPENCHAMBER_SESSION_TURN_SCAN_LIMIT`, unless it is no integer from 10 to 200, the
    /// `OPENCHAMBER_SESSION_RECONCILE_*` that are in their ranges (see [`Budgets::configured`]),
    /// `OPENCHAMBER_RUNTIME`, `OPENCHAMBER_SKIP_API_COMPRESSION`, which turns compression off as the
    /// runtime `desktop` does, and `OPENCHAMBER_TRANSCRIPT_CACHE_DB_PATH`, unless a path that is not
    /// blank has been set before.
    #[must_use]
    pub fn with_environment(mut self, variable: impl Fn(&str) -> Option<String>) -> Self {
        let scan_limit = variable("OPENCHAMBER_SESSION_TURN_SCAN_LIMIT");
        self.scan_limit = configured_scan_limit(scan_limit.as_deref());
        self.reconcile = Budgets::configured(&variable);
        let runtime = variable("OPENCHAMBER_RUNTIME").filter(|runtime| !runtime.is_empty());
        self.runtime = runtime.unwrap_or_else(|| DEFAULT_RUNTIME.to_owned());
        let desktop = self.runtime == "desktop";
        let skip = variable("OPENCHAMBER_SKIP_API_COMPRESSION").is_some_and(|skip| is_on(&skip));
        self.compress &= !desktop && !skip;
        let set = self.transcript_cache.take().filter(|path| !is_blank(path));
        let named = variable("OPENCHAMBER_TRANSCRIPT_CACHE_DB_PATH").map(PathBuf::from);
        self.transcript_cache = set.or_else(|| named.filter(|path| !is_blank(path)));
        self
    }
}

fn is_on(value: &str) -> bool {
    !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off")
}

/// Why a host does not start, or no longer runs.
#[derive(Debug, Error)]
pub enum HostError {
    /// Everyone in the network could read every session.
    #[error(
        "{address} can be reached from other machines, and nothing is asked of them; write a \
         password into a file (mode 0600) and name it with --password-file, or make a token with \
         `turnkeep token create NAME`; or listen on 127.0.0.1"
    )]
    Unprotected {
        /// The address asked for.
        address: SocketAddr,
    },
    /// There is no password in the file named.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// The token file is of no use.
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}; choose another port with --listen")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// HTTPS cannot be served.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The client for the upstream cannot be set up.
    #[error("the HTTP client for the upstream cannot be set up: {0}")]
    Client(#[from] reqwest::Error),
    /// There is nothing to make a key of.
    #[error("the system gives no random numbers: {0}; name a key with --continuation-key-file")]
    Random(#[source] getrandom::Error),
    /// The key that was made is of no use: a bug.
    #[error("a random key was refused: {0}; please report this")]
    Key(#[source] KeyRingError),
}

impl HostError {
    /// The stable word for what went wrong, as in [`kinds`](crate::kinds).
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unprotected { .. } | Self::Password(_) | Self::Tls(_) => "usage",
            Self::Tokens(error) => error.kind(),
            Self::Listen { .. } | Self::Client(_) | Self::Random(_) => "io",
            Self::Key(_) => "internal",
        }
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
