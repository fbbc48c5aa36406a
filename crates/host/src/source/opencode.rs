//! Sessions behind an OpenCode server.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use turnkeep_log::Text;
use turnkeep_turns::{
    Answer, MessageError, PageRequest, Purpose, SourceKind, SourcePage, TurnPageError,
    message::is_placeholder,
};

use super::{
    Fetched, Source, Whole,
    flights::{Flights, Moment},
};
use crate::{
    blocking::off_the_workers,
    events::EventId,
    upstream::{Reply, Trouble, Upstream},
};

/// A page larger than this is asked for again in smaller pieces.
const MAX_PAGE_BYTES: usize = 64 << 20;

/// One message, or one history, larger than this is not read.
const MAX_SINGLE_BYTES: usize = 512 << 20;

/// An OpenCode server, read as records.
#[derive(Debug)]
pub(crate) struct OpenCodeSource {
    upstream: Upstream,
    pages: Flights<Result<Fetched, TurnPageError>>,
    /// What is read whole: messages, and what they changed.
    wholes: Flights<Result<Reply, Trouble>>,
}

impl OpenCodeSource {
    /// Reads sessions of this server.
    pub(crate) fn new(upstream: Upstream) -> Self {
        Self { upstream, pages: Flights::default(), wholes: Flights::default() }
    }

    /// The server itself.
    pub(crate) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// The session of this id. `directory` goes along as the client named it, but for symbolic
    /// links: the server knows directories by their real paths.
    ///
    /// `state` names what the session's events say of it so far: a read is not shared by those who
    /// know of different events, since it may have begun before the later ones.
    pub(crate) async fn session(
        self: Arc<Self>,
        id: String,
        directory: Option<&str>,
        state: Option<EventId>,
    ) -> OpenCodeSession {
        let directory = match directory {
            Some(directory) => Some(real_path(directory).await),
            None => None,
        };
        let reader = Reader { source: self, id, directory };
        OpenCodeSession { reader, state, last_read: Mutex::default() }
    }
}

/// One session of the server, as one request sees it.
#[derive(Debug)]
pub(crate) struct OpenCodeSession {
    reader: Reader,
    state: Option<EventId>,
    /// When the last page that was read for the request had been read.
    last_read: Mutex<Moment>,
}

/// What reads it.
#[derive(Clone, Debug)]
struct Reader {
    source: Arc<OpenCodeSource>,
    id: String,
    directory: Option<String>,
}

impl Reader {
    /// Reads a page, and parses it.
    async fn read_page(self, request: PageRequest) -> Result<Fetched, TurnPageError> {
        self.source.upstream.calls().page(match request.purpose {
            Purpose::Scan => "scan",
            Purpose::Probe => "probe",
            Purpose::Narrow => "narrow",
            Purpose::Identify => "identify",
        });
        let read = match request.purpose {
            Purpose::Identify => self.history().await.map(|reply| (reply, None)),
            Purpose::Scan | Purpose::Probe | Purpose::Narrow => match self.messages(&request).await
            {
                Ok(reply) => {
                    let bytes = reply.body.len();
                    // The room goes along: the work ends although its reader may have left.
                    let parse = move || {
                        let page = SourcePage::from_opencode(&reply.body, reply.next.clone());
                        (reply, page)
                    };
                    match off_the_workers(bytes, parse).await {
                        (reply, Ok(page)) => Ok((reply, Some(page))),
                        (_, Err(TurnPageError::MissingId)) => return Err(TurnPageError::MissingId),
                        (_, Err(_)) => Err(Trouble::Unexpected),
                    }
                }
                Err(trouble) => Err(trouble),
            },
        };
        Ok(match read {
            Ok((Reply { body, room, .. }, page)) => {
                let bytes = body.len();
                let answer = page.map_or(Answer::History(body), Answer::Page);
                Fetched { answer, bytes, room: Some(room) }
            }
            Err(trouble) => {
                note(&self.id, trouble);
                Fetched::from(answer(trouble))
            }
        })
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
        self.source.upstream.get(&["session", &self.id, "message"], &query, max_bytes).await
    }

    /// Every event of the session. Events of sessions that are not named come as well.
    async fn history(&self) -> Result<Reply, Trouble> {
        let from_the_start = serde_json::json!({ &self.id: 0 }).to_string();
        self.source.upstream.query(&["sync", "history"], from_the_start, MAX_SINGLE_BYTES).await
    }
}

impl OpenCodeSession {
    /// Reads one thing whole: what a message is, or what it changed.
    async fn whole(&self, segments: Vec<String>, message: Option<&str>) -> Result<Whole, Trouble> {
        let query: Vec<_> =
            [("directory", self.reader.directory.as_deref()), ("messageID", message)]
                .into_iter()
                .filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())))
                .collect();
        // Debug text is unambiguous, whatever the ids hold.
        let key = format!("{:?} {segments:?} {query:?}", self.state);
        let source = Arc::clone(&self.reader.source);
        let read = || async move {
            let segments: Vec<_> = segments.iter().map(String::as_str).collect();
            let query: Vec<_> =
                query.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            source.upstream.get(&segments, &query, MAX_SINGLE_BYTES).await
        };
        let (reply, _) = self.reader.source.wholes.join(key, Moment::default(), read).await;
        reply
            .map(|Reply { body, room, .. }| Whole { text: body, room: Some(room) })
            .inspect_err(|trouble| note(&self.reader.id, *trouble))
    }
}

#[async_trait]
impl Source for OpenCodeSession {
    fn kind(&self) -> SourceKind {
        SourceKind::OpenCode
    }

    async fn page(&self, request: &PageRequest) -> Result<Fetched, TurnPageError> {
        // Debug text is unambiguous, whatever the ids hold.
        let reader = &self.reader;
        let key = format!("{:?} {:?} {:?} {request:?}", self.state, reader.id, reader.directory);
        let floor = *self.last_read.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || self.reader.clone().read_page(request.clone());
        let (page, ended) = self.reader.source.pages.join(key, floor, read).await;
        *self.last_read.lock().unwrap_or_else(PoisonError::into_inner) = ended;
        page
    }

    async fn message(&self, id: &str) -> Result<Option<Whole>, MessageError> {
        if is_placeholder(&self.reader.id, id) {
            return Ok(None);
        }
        if !may_be_messages(id) {
            return Err(MessageError::NotFound);
        }
        let segments = ["session", &self.reader.id, "message", id].map(str::to_owned);
        match self.whole(segments.into(), None).await {
            Ok(message) => Ok(Some(message)),
            Err(Trouble::Unencodable) => Ok(None),
            Err(Trouble::NotFound) => Err(MessageError::SessionNotFound),
            Err(Trouble::MessageNotFound) => Err(MessageError::NotFound),
            Err(Trouble::Unavailable) => Err(MessageError::Unavailable),
            Err(_) => Err(MessageError::Upstream),
        }
    }

    async fn diffs(&self, message: &str) -> Result<Whole, MessageError> {
        if !may_be_messages(message) {
            return Ok(Whole { text: Text::from("[]"), room: None });
        }
        let segments = ["session", &self.reader.id, "diff"].map(str::to_owned);
        // That route has one body for everything that it does not know: an empty list.
        self.whole(segments.into(), Some(message)).await.map_err(|trouble| match trouble {
            Trouble::Unavailable => MessageError::Unavailable,
            _ => MessageError::Upstream,
        })
    }
}

/// Logs what went wrong. What a client asked for that is not there is no trouble of anyone's.
fn note(session: &str, trouble: Trouble) {
    let trouble_label = trouble.label();
    match trouble {
        Trouble::NotFound | Trouble::MessageNotFound | Trouble::BadCursor => {
            tracing::debug!(session = ?session, trouble = trouble_label, "upstream");
        }
        _ => tracing::warn!(session = ?session, trouble = trouble_label, "upstream"),
    }
}

/// Whether the server can have a message of this id. It answers others as if they were mistakes.
fn may_be_messages(id: &str) -> bool {
    id.starts_with("msg")
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

/// The directory with its symbolic links resolved; as it is when that cannot be done, and when it
/// is relative: the server starts from a directory of its own.
async fn real_path(directory: &str) -> String {
    if !directory.starts_with('/') {
        return directory.to_owned();
    }
    let real = tokio::fs::canonicalize(directory).await.ok();
    real.and_then(|path| path.into_os_string().into_string().ok())
        .unwrap_or_else(|| directory.to_owned())
}
