//! How an upstream is, for people who set one up.

use std::sync::Arc;

use turnkeep_log::json::{Json, JsonStr};

use super::{
    Ask, MAX_PROBE_BYTES, Unsent, Upstream, UpstreamOptions,
    readiness::PROBE_DEADLINE,
    reply::{self, Trouble},
};
use crate::{metrics::Metrics, options::HostError};

/// How an upstream is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamHealth {
    /// It answers, and takes our login.
    Ready {
        /// Its version, when it says so.
        version: Option<String>,
    },
    /// It answers, and does not take our login.
    LoginRefused,
    /// Nobody listens, or the server says that it does not serve now.
    Unavailable,
    /// It takes the request and does not answer within a second.
    Silent,
    /// What it answers is not what OpenCode does.
    NotOpenCode,
}

/// Asks an OpenCode server for `/global/health`, once.
///
/// # Errors
///
/// `io` when no HTTP client can be set up.
pub async fn check_upstream(options: UpstreamOptions) -> Result<UpstreamHealth, HostError> {
    // Nobody asks how often this was done.
    let calls = Arc::clone(&Metrics::default().upstream);
    let upstream = Upstream::new(options, MAX_PROBE_BYTES, calls)?;
    let ask = Ask { url: upstream.options.url(&["global", "health"]), json: None };
    let asking = async {
        let response = match upstream.request(&ask).await {
            Ok(response) => response,
            Err(Unsent::Refused) => return UpstreamHealth::Unavailable,
            Err(Unsent::Broken) => return UpstreamHealth::NotOpenCode,
        };
        match reply::read(response, MAX_PROBE_BYTES, &upstream.rooms).await {
            Ok(reply) => health(&reply.body),
            Err(Trouble::LoginRefused) => UpstreamHealth::LoginRefused,
            Err(Trouble::Unavailable) => UpstreamHealth::Unavailable,
            Err(_) => UpstreamHealth::NotOpenCode,
        }
    };
    let answered = tokio::time::timeout(PROBE_DEADLINE, asking).await;
    Ok(answered.unwrap_or(UpstreamHealth::Silent))
}

/// What a body of `/global/health` says.
fn health(body: &str) -> UpstreamHealth {
    let body = Json::parse(body).ok();
    let Some(body) = body.filter(|body| body.get("healthy").is_some()) else {
        return UpstreamHealth::NotOpenCode;
    };
    let version = body.get("version").and_then(Json::as_str).map(JsonStr::decode_lossy);
    UpstreamHealth::Ready { version: version.map(Into::into) }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
