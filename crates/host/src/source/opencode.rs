//! Sessions behind an OpenCode server.

use std::sync::Arc;

use async_trait::async_trait;
use turnkeep_log::Text;
use turnkeep_turns::{
    Answer, MessageError, PageRequest, Purpose, SourceKind, SourcePage, TurnPageError,
};

use super::Source;
use crate::upstream::{Reply, Trouble, Upstream};

/// A page larger than this is asked for again in smaller pieces.
const MAX_PAGE_BYTES: usize = 64 << 20;

/// One message, or one history, larger than this is not read.
const MAX_SINGLE_BYTES: usize = 512 << 20;

/// One session of the upstream.
#[derive(Debug)]
pub(crate) struct OpenCodeSession {
    upstream: Arc<Upstream>,
    id: String,
    directory: Option<String>,
}

impl OpenCodeSession {
    /// The session of this id. `directory` goes along as the client named it, but for symbolic
    /// links: the server knows directories by their real paths.
    pub(crate) async fn new(upstream: Arc<Upstream>, id: String, directory: Option<&str>) -> Self {
        let directory = match directory {
            Some(directory) => Some(real_path(directory).await),
            None => None,
        };
        Self { upstream, id, directory }
    }

    async fn messages(&self, request: &PageRequest) -> Result<Reply, Trouble> {
        let limit = request.limit.to_string();
        let query: Vec<_> = [
            ("directory", self.directory.as_deref()),
            ("limit", Some(limit.as_str())),
            ("before", request.before.as_deref()),
        ]
        .into_iter()
        .filter_map(|(key, value)| value.map(|value| (key, value)))
        .collect();
        let max_bytes = if request.limit > 1 { MAX_PAGE_BYTES } else { MAX_SINGLE_BYTES };
        self.upstream.get(&["session", &self.id, "message"], &query, max_bytes).await
    }

    /// Every event of the session. Events of sessions that are not named come as well.
    async fn history(&self) -> Result<Reply, Trouble> {
        let from_the_start = serde_json::json!({ &self.id: 0 }).to_string();
        self.upstream.query(&["sync", "history"], from_the_start, MAX_SINGLE_BYTES).await
    }
}

#[async_trait]
impl Source for OpenCodeSession {
    fn kind(&self) -> SourceKind {
        SourceKind::OpenCode
    }

    async fn page(&self, request: &PageRequest) -> Result<Answer, TurnPageError> {
        let reply = match request.purpose {
            Purpose::Identify => self.history().await.map(|reply| Answer::History(reply.body)),
            Purpose::Scan | Purpose::Probe | Purpose::Narrow => {
                match self.messages(request).await {
                    Ok(reply) => match SourcePage::from_opencode(&reply.body, reply.next) {
                        Ok(page) => Ok(Answer::Page(page)),
                        Err(TurnPageError::MissingId) => return Err(TurnPageError::MissingId),
                        Err(_) => Err(Trouble::Unexpected),
                    },
                    Err(trouble) => Err(trouble),
                }
            }
        };
        Ok(reply.unwrap_or_else(|trouble| {
            tracing::warn!(session = ?self.id, trouble = trouble.label(), "upstream");
            answer(trouble)
        }))
    }

    async fn message(&self, id: &str) -> Result<Text, MessageError> {
        // No message has such an id, and no URL can have it as a segment.
        if id == "." || id == ".." {
            return Err(MessageError::NotFound);
        }
        let query: Vec<_> =
            self.directory.as_deref().map(|path| ("directory", path)).into_iter().collect();
        let segments = ["session", &self.id, "message", id];
        let reply = self.upstream.get(&segments, &query, MAX_SINGLE_BYTES).await;
        reply.map(|reply| reply.body).map_err(|trouble| {
            tracing::warn!(session = ?self.id, trouble = trouble.label(), "upstream");
            match trouble {
                Trouble::NotFound => MessageError::SessionNotFound,
                Trouble::MessageNotFound => MessageError::NotFound,
                Trouble::Unavailable => MessageError::Unavailable,
                _ => MessageError::Upstream,
            }
        })
    }
}

fn answer(trouble: Trouble) -> Answer {
    match trouble {
        Trouble::Unavailable => Answer::Unavailable,
        Trouble::NotFound => Answer::NotFound,
        Trouble::BadCursor => Answer::BadCursor,
        Trouble::Unencodable => Answer::Unencodable,
        Trouble::Oversized => Answer::Oversized,
        Trouble::Broken
        | Trouble::LoginRefused
        | Trouble::MessageNotFound
        | Trouble::Unexpected => Answer::Failed,
    }
}

/// The directory with its symbolic links resolved; as it is when that cannot be done.
async fn real_path(directory: &str) -> String {
    let real = tokio::fs::canonicalize(directory).await.ok();
    real.and_then(|path| path.into_os_string().into_string().ok())
        .unwrap_or_else(|| directory.to_owned())
}
