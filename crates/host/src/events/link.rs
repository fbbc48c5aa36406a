//! How the connection to the upstream's stream is.

/// How the connection to the upstream's stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) is_connected: bool,
    /// Whether it has been connected since the host began to serve.
    pub(crate) was_connected: bool,
    /// How the last try failed, when that is the last that is known.
    pub(crate) failure: Option<Unavailable>,
}

/// Why there is no stream of the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unavailable {
    /// Nobody listens, or the connection broke before an answer.
    Refused,
    /// It did not answer in time.
    Silent,
    /// It answered with this status.
    Status(u16),
    /// It does not take our login.
    Login(u16),
}

impl Unavailable {
    /// What it means, and what to do about it.
    pub(crate) fn told(self) -> &'static str {
        match self {
            Self::Refused => "OpenCode does not answer; trying again",
            Self::Silent => "OpenCode takes too long to answer; trying again",
            Self::Status(_) => "OpenCode answers with an error instead of its events; trying again",
            Self::Login(_) => {
                "OpenCode refuses our login: set OPENCODE_SERVER_PASSWORD or upstream_password_file"
            }
        }
    }

    /// A fixed name for logs.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Refused => "unavailable",
            Self::Silent => "timed_out",
            Self::Status(_) => "unexpected",
            Self::Login(_) => "login_refused",
        }
    }
}
