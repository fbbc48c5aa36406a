//! The upstream's event stream.

use reqwest::{Response, StatusCode, header};
use turnkeep_log::json::Json;

use super::{Ask, Unsent, Upstream, readiness::NotReady, reply::media_type};

/// The server says little about where it is.
const MAX_PATH_BYTES: usize = 64 << 10;

/// Why there is no event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamTrouble {
    /// Nobody listens, the connection broke, or the server says that it does not serve now.
    Refused,
    /// It answered with something else than a stream.
    Status(u16),
}

impl Upstream {
    /// Asks for the events of all directories, once the upstream takes requests. What comes instead
    /// of a stream is not read.
    ///
    /// There is no deadline here: whoever asks stops waiting.
    pub(crate) async fn events(&self, last: Option<&str>) -> Result<Response, StreamTrouble> {
        let ready = self.readiness.wait(|| self.probe()).await;
        ready.map_err(|NotReady| StreamTrouble::Refused)?;
        let ask = Ask { url: self.options.url(&["global", "event"]), json: None };
        let mut request = self.build(&ask).header(header::ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = match Self::dispatch(request).await {
            Ok(response) => response,
            Err(Unsent::Refused | Unsent::Broken) => {
                self.readiness.lose();
                return Err(StreamTrouble::Refused);
            }
        };
        let status = response.status();
        if status.is_server_error() {
            self.readiness.lose();
        }
        if status == StatusCode::OK && media_type(response.headers()) == "text/event-stream" {
            return Ok(response);
        }
        Err(StreamTrouble::Status(status.as_u16()))
    }

    /// The directory that the server was started in, for requests that name none.
    pub(crate) async fn own_directory(&self) -> Option<String> {
        let reply = self.get(&["path"], &[], MAX_PATH_BYTES).await.ok()?;
        let body = Json::parse(&reply.body).ok()?;
        let directory = body.get("directory").and_then(Json::as_str)?.decode_lossy();
        (!directory.is_empty()).then(|| directory.into_owned())
    }

    /// Notes that the server may have gone away.
    pub(crate) fn lose_readiness(&self) {
        self.readiness.lose();
    }
}
