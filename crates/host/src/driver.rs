//! From a request for a turn page or a message to the answer.
//!
//! [`Sources`] finds where a session lives; [`turn_page`] runs the scan against it, and [`message`]
//! asks it for one message. The scan says what it wants and decides what an answer means; here are
//! the network, the clock and nothing else. Dropping the future drops the request that is under
//! way.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};
use turnkeep_log::SessionId;
use turnkeep_store::SessionStat;
use turnkeep_turns::{
    Answer, MessageError, Parts, Projection, TurnPage, TurnPageError, TurnQuery, TurnScan,
    message::exact,
    query::{DEFAULT_TURNS, DEFAULT_WIDTH},
};

use crate::{
    failure::Failure,
    source::{LogError, LogSource, OpenCodeSession, Source},
    upstream::Upstream,
};

/// A request for one turn page of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnPageRequest {
    /// How many turns, how many rows at a time, and where to go on.
    pub query: TurnQuery,
    /// The project directory, handed on to an upstream and of no meaning to the store.
    pub directory: Option<String>,
    /// Whether reasoning parts are wanted.
    pub include_reasoning: bool,
}

impl Default for TurnPageRequest {
    /// What a request without parameters asks for: the newest three turns, with reasoning.
    fn default() -> Self {
        let query = TurnQuery { turns: DEFAULT_TURNS, width: DEFAULT_WIDTH, before: None };
        Self { query, directory: None, include_reasoning: true }
    }
}

/// A request for one message of one session, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageRequest {
    /// The message's id.
    pub(crate) message: String,
    /// The project directory, as in [`TurnPageRequest::directory`].
    pub(crate) directory: Option<String>,
    /// Whether reasoning parts are wanted.
    pub(crate) include_reasoning: bool,
}

/// Where sessions come from.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    pub(crate) log: Option<Arc<LogSource>>,
    pub(crate) upstream: Option<Arc<Upstream>>,
}

/// Where one session lives.
#[derive(Debug)]
pub(crate) enum Place {
    /// In the store.
    Store(Arc<LogSource>, Box<SessionStat>),
    /// Behind the upstream, if anywhere.
    Upstream(Arc<Upstream>),
}

impl Sources {
    /// Where the session of this id lives.
    ///
    /// The store is asked first, which is a look at the disk, so that an upstream that is down
    /// hides no stored session. Other ids than `ses…` are never the upstream's: it answers them
    /// with an internal error.
    pub(crate) async fn place(&self, id: &str) -> Result<Place, Failure> {
        let session = SessionId::new(id).ok_or(TurnPageError::SessionNotFound)?;
        if let Some(log) = &self.log {
            let stat = match log.stat(&session).await {
                // A part of the store that cannot be read hides nothing of the upstream's.
                Err(error) if error.kind() == "io" && self.may_be_upstreams(id) => {
                    tracing::warn!(session = ?id, kind = "io", "the store; asking the upstream");
                    None
                }
                stat => stat.map_err(|error| stored_trouble(&error, id))?,
            };
            if let Some(stat) = stat {
                return Ok(Place::Store(Arc::clone(log), Box::new(stat)));
            }
            // The list shows a log without a whole header as damaged: it is no missing session.
            // An id that may be the upstream's is left to it.
            if !self.may_be_upstreams(id)
                && let Some(error) = log.hidden_trouble(&session).await
            {
                return Err(stored_trouble(&error, id));
            }
        }
        match &self.upstream {
            Some(upstream) if self.may_be_upstreams(id) => {
                Ok(Place::Upstream(Arc::clone(upstream)))
            }
            _ => Err(TurnPageError::SessionNotFound.into()),
        }
    }

    fn may_be_upstreams(&self, id: &str) -> bool {
        self.upstream.is_some() && id.starts_with("ses")
    }

    /// The session as a source of rows.
    async fn source(&self, id: &str, directory: Option<&str>) -> Result<Box<dyn Source>, Failure> {
        Ok(match self.place(id).await? {
            Place::Store(log, stat) => {
                let session = log.session(&stat).await;
                Box::new(session.map_err(|error| stored_trouble(&error, id))?)
            }
            Place::Upstream(upstream) => {
                Box::new(OpenCodeSession::new(upstream, id.to_owned(), directory).await)
            }
        })
    }
}

/// Logs what is wrong with a stored session, by its kind: the text may name the file.
pub(crate) fn stored_trouble(error: &LogError, id: &str) -> Failure {
    tracing::warn!(session = ?id, kind = error.kind(), "stored session");
    Failure::of_stored_session(error.kind(), id)
}

/// Reads one turn page within `deadline`. `place` is told which kind of source answers.
pub(crate) async fn turn_page(
    sources: &Sources,
    id: &str,
    request: &TurnPageRequest,
    deadline: Duration,
    mut place: impl FnMut(&'static str) + Send,
) -> Result<TurnPage, Failure> {
    let end = Instant::now() + deadline;
    let source = find(sources, id, request.directory.as_deref(), end, &mut place).await?;
    let projection = Projection { parts: Parts::Slim, reasoning: request.include_reasoning };
    let mut scan = TurnScan::new(id, &request.query, source.kind(), projection)?;
    while let Some(wanted) = scan.want() {
        let answer = timeout_at(end, source.page(wanted)).await;
        scan.feed(answer.unwrap_or(Ok(Answer::TimedOut))?)?;
    }
    Ok(scan.finish()?)
}

/// Reads one message whole within `deadline`: the JSON text of the body. `place` is told which kind
/// of source answers.
pub(crate) async fn message(
    sources: &Sources,
    session: &str,
    request: &MessageRequest,
    deadline: Duration,
    mut place: impl FnMut(&'static str) + Send,
) -> Result<String, Failure> {
    let end = Instant::now() + deadline;
    let source = find(sources, session, request.directory.as_deref(), end, &mut place).await?;
    let found = timeout_at(end, source.message(&request.message)).await;
    let text = found.unwrap_or(Err(MessageError::TimedOut))?;
    // An answer without a message in it is none.
    if text.is_empty() {
        return Err(MessageError::Upstream.into());
    }
    Ok(exact(&text, request.include_reasoning)?)
}

async fn find(
    sources: &Sources,
    id: &str,
    directory: Option<&str>,
    end: Instant,
    place: &mut (impl FnMut(&'static str) + Send),
) -> Result<Box<dyn Source>, Failure> {
    let found = timeout_at(end, sources.source(id, directory)).await;
    let source = found.unwrap_or_else(|_| Err(TurnPageError::TimedOut.into()))?;
    place(crate::source::label(source.kind()));
    Ok(source)
}
