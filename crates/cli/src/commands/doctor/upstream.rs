//! The OpenCode server.

use turnkeep_host::{UpstreamHealth, check_upstream};

use super::report::Finding;
use crate::{commands::serve::upstream, config::Settings, failure::Failure};

/// Asks the upstream how it is, if there is one.
pub(super) async fn look(settings: &Settings) -> Finding {
    let Some(url) = settings.upstream.as_deref() else {
        return Finding::ok("upstream", "none is set; `serve` shows the store alone");
    };
    let health = match upstream(url, settings) {
        Ok(options) => check_upstream(options).await.map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    let (message, advice) = match health {
        Ok(UpstreamHealth::Ready { version: Some(version) }) => {
            return Finding::ok("upstream", format!("OpenCode {version} answers at {url}"));
        }
        Ok(UpstreamHealth::Ready { version: None }) => {
            return Finding::ok("upstream", format!("an OpenCode server answers at {url}"));
        }
        Ok(UpstreamHealth::LoginRefused) => (
            format!("the server at {url} refuses the login"),
            "set OPENCODE_SERVER_PASSWORD or upstream_password_file to its password, and \
             upstream_username if it has another one than opencode",
        ),
        Ok(UpstreamHealth::Unavailable) => (
            format!("nothing answers at {url}"),
            "start it with `opencode serve`, or set upstream to where it listens",
        ),
        Ok(UpstreamHealth::Silent) => (
            format!("the server at {url} takes requests and does not answer them"),
            "wait if it has just started; else start it again",
        ),
        Ok(UpstreamHealth::NotOpenCode) => (
            format!("what answers at {url} is no OpenCode server"),
            "set upstream to where OpenCode listens",
        ),
        Err(failure) => (failure.message().to_owned(), "correct the settings named upstream"),
    };
    Finding::todo("upstream", message, advice)
}
