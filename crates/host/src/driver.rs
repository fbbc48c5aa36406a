//! From a request to the answer.
//!
//! [`Sources`] finds where a session lives; [`turn_page`] and [`reconcile`] run a scan against it,
//! [`message`] and [`changes`] ask it for one message. The scan says what it wants and decides what an answer means; here are
//! the network, the clock and nothing else. Dropping the future drops the request that is under
//! way.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::time::{Instant, timeout_at};
use turnkeep_log::{
    SessionId,
    json::{Json, Kind},
};
use turnkeep_store::SessionStat;
use turnkeep_turns::{
    Answer, ChangesError, MessageError, PageRequest, Parts, Projection, Purpose, ReconcileError,
    ReconcilePage, ReconcileScan, SourceKind, TurnPage, TurnPageError, TurnQuery, TurnScan,
    changes,
    events::LiveText,
    message::{MessageScan, exact},
    query::{DEFAULT_TURNS, DEFAULT_WIDTH},
    reconcile::{ReconcileConfig, ReconcileRequest, ReconcileStart},
};

use crate::{
    blocking::off_the_workers,
    events::{EventId, Hub, Moment, Origin},
    failure::Failure,
    metrics::Metrics,
    source::{Fetched, LogError, LogSource, OpenCodeSource, Source, Whole},
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

/// A request for what one message changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangesRequest {
    /// The message's id.
    pub(crate) message: String,
    /// The one file whose diff is wanted; `None` for the list of all files.
    pub(crate) file: Option<String>,
    /// The project directory, as in [`TurnPageRequest::directory`].
    pub(crate) directory: Option<String>,
}

/// Where sessions come from.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    pub(crate) log: Option<Arc<LogSource>>,
    pub(crate) opencode: Option<Arc<OpenCodeSource>>,
    pub(crate) metrics: Arc<Metrics>,
}

/// Where one session lives.
#[derive(Debug)]
pub(crate) enum Place {
    /// In the store.
    Store(Arc<LogSource>, Box<SessionStat>),
    /// Behind the upstream, if anywhere.
    Upstream(Arc<OpenCodeSource>),
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
        match &self.opencode {
            Some(opencode) if self.may_be_upstreams(id) => {
                Ok(Place::Upstream(Arc::clone(opencode)))
            }
            _ => Err(TurnPageError::SessionNotFound.into()),
        }
    }

    /// The server behind the host.
    pub(crate) fn upstream(&self) -> Option<&Upstream> {
        self.opencode.as_ref().map(|opencode| opencode.upstream())
    }

    /// Whether an id may be a session of the upstream.
    pub(crate) fn may_be_upstreams(&self, id: &str) -> bool {
        self.opencode.is_some() && id.starts_with("ses")
    }

    /// The session as a source of rows.
    async fn source(
        &self,
        id: &str,
        directory: Option<&str>,
        known: Known,
    ) -> Result<Found, Failure> {
        Ok(match self.place(id).await? {
            Place::Store(log, stat) => {
                let session = log.session(&stat).await;
                let session = session.map_err(|error| stored_trouble(&error, id))?;
                Found { source: Box::new(session), moment: known.store }
            }
            Place::Upstream(opencode) => {
                let state = known.upstream.as_ref().map(Moment::state);
                let session = opencode.session(id.to_owned(), directory, state).await;
                Found { source: Box::new(session), moment: known.upstream }
            }
        })
    }
}

/// What is known of a session from its events, before anything else is asked.
#[derive(Debug)]
struct Known {
    upstream: Option<Moment>,
    store: Option<Moment>,
}

impl Known {
    fn of(hub: &Hub, session: &str) -> Self {
        let moment = |origin| hub.moment(origin, session);
        Self { upstream: moment(Origin::Upstream), store: moment(Origin::Store) }
    }
}

/// A session, and what is known of it from its events.
#[derive(Debug)]
struct Found {
    source: Box<dyn Source>,
    moment: Option<Moment>,
}

impl Found {
    fn live(&self) -> LiveText {
        self.moment.as_ref().map(|moment| moment.live.clone()).unwrap_or_default()
    }

    fn since(&self) -> Option<EventId> {
        self.moment.as_ref().map(|moment| moment.id)
    }
}

/// An answer, and the event to go on from: whoever has both and every later event is exact.
#[derive(Clone, Debug)]
pub(crate) struct Dated<T> {
    pub(crate) body: T,
    /// `None` when the session's events are not followed.
    pub(crate) since: Option<EventId>,
}

/// Logs what is wrong with a stored session, by its kind: the text may name the file.
pub(crate) fn stored_trouble(error: &LogError, id: &str) -> Failure {
    tracing::warn!(session = ?id, kind = error.kind(), "stored session");
    Failure::of_stored_session(error.kind(), id)
}

/// Reads one turn page within `deadline`. `place` is told which kind of source answers.
pub(crate) async fn turn_page(
    sources: &Sources,
    hub: &Hub,
    id: &str,
    request: &TurnPageRequest,
    deadline: Duration,
    mut place: impl FnMut(&'static str) + Send,
) -> Result<Dated<TurnPage>, Failure> {
    let end = Instant::now() + deadline;
    let known = Known::of(hub, id);
    let found = find(sources, id, request.directory.as_deref(), known, end, &mut place).await?;
    let projection = Projection { parts: Parts::Slim, reasoning: request.include_reasoning };
    let kind = found.source.kind();
    let scan = TurnScan::new(id, &request.query, kind, projection)?.with_live(found.live());
    let (scan, rows) = drive(&*found.source, scan, end).await?;
    let body = scan.finish()?;
    let bytes = body.records.iter().map(String::len).sum();
    sources.metrics.pages.turn_page(crate::source::label(kind), rows, bytes);
    Ok(Dated { body, since: found.since() })
}

/// Reads one page of a reconciling round within `deadline`. `place` is told which kind of source
/// answers.
pub(crate) async fn reconcile(
    sources: &Sources,
    hub: &Hub,
    config: &ReconcileConfig,
    request: ReconcileRequest,
    deadline: Duration,
    mut place: impl FnMut(&'static str) + Send,
) -> Result<Dated<ReconcilePage>, Failure> {
    let end = Instant::now() + deadline;
    let (session, directory) = (request.session.clone(), request.directory.clone());
    let known = Known::of(hub, &session);
    let found = find(sources, &session, directory.as_deref(), known, end, &mut place).await?;
    let kind = found.source.kind();
    let is_first = matches!(request.start, ReconcileStart::Anchor(_));
    let scan = ReconcileScan::new(config, request, kind, now_ms())?.with_live(found.live());
    let (scan, _) = drive(&*found.source, scan, end).await?;
    let body = scan.finish(now_ms())?;
    let label = crate::source::label(kind);
    sources.metrics.pages.reconciled(label, is_first, body.reset_required);
    Ok(Dated { body, since: found.since() })
}

/// Reads one message whole within `deadline`: the JSON text of the body. `place` is told which kind
/// of source answers.
pub(crate) async fn message(
    sources: &Sources,
    hub: &Hub,
    session: &str,
    request: &MessageRequest,
    deadline: Duration,
    mut place: impl FnMut(&'static str) + Send,
) -> Result<Dated<String>, Failure> {
    let end = Instant::now() + deadline;
    let known = Known::of(hub, session);
    let found =
        find(sources, session, request.directory.as_deref(), known, end, &mut place).await?;
    let whole = one_message(&*found.source, session, &request.message, end).await?;
    let (bytes, reasoning, live) = (whole.text.len(), request.include_reasoning, found.live());
    let body = off_the_workers(bytes, move || {
        let Whole { text, room } = whole;
        let body = exact(&text, reasoning, &live);
        drop((text, room));
        body
    });
    Ok(Dated { body: body.await?, since: found.since() })
}

/// Reads what a message changed within `deadline`: the JSON text of the body, of all files or of
/// one. `place` is told which kind of source answers.
pub(crate) async fn changes(
    sources: &Sources,
    session: &str,
    request: &ChangesRequest,
    deadline: Duration,
    mut place: impl FnMut(&'static str) + Send,
) -> Result<String, Failure> {
    let end = Instant::now() + deadline;
    // What has changed is told as of now, whatever was known before.
    let known = Known { upstream: None, store: None };
    let Found { source, .. } =
        find(sources, session, request.directory.as_deref(), known, end, &mut place).await?;
    let (found, file) = match request.file.clone() {
        None => (one_message(&*source, session, &request.message, end).await?, None),
        Some(file) => {
            let found = timeout_at(end, source.diffs(&request.message)).await;
            (found.unwrap_or(Err(MessageError::TimedOut))?, Some(file))
        }
    };
    let body = off_the_workers(found.text.len(), move || {
        let Whole { text, room } = found;
        let body = changes_in(&text, file.as_deref());
        drop((text, room));
        body
    })
    .await;
    match body {
        Err(ChangesError::FileNotFound) if is_unknown(&*source, end).await => {
            Err(MessageError::SessionNotFound.into())
        }
        body => Ok(body?),
    }
}

/// The body: of the files that a message changed, made of the message; or of one file, made of the
/// diffs of the message.
fn changes_in(text: &str, file: Option<&str>) -> Result<String, ChangesError> {
    let json = Json::parse(text).map_err(|_| MessageError::Upstream)?;
    match file {
        Some(file) => changes::diff(json, file),
        None if json.kind() == Kind::Object => Ok(changes::files(json)),
        None => Err(MessageError::Upstream.into()),
    }
}

/// Reads one message whole, from a page if the source cannot send it by itself.
async fn one_message(
    source: &dyn Source,
    session: &str,
    id: &str,
    end: Instant,
) -> Result<Whole, MessageError> {
    let found = timeout_at(end, source.message(id)).await;
    match found.unwrap_or(Err(MessageError::TimedOut)) {
        Ok(Some(found)) => Ok(found),
        Ok(None) => {
            let scan = MessageScan::new(session, id, source.kind())?;
            let (scan, _) = drive(source, scan, end).await?;
            let text = scan.finish()?;
            Ok(Whole { text, room: None })
        }
        Err(MessageError::NotFound) if is_unknown(source, end).await => {
            Err(MessageError::SessionNotFound)
        }
        Err(error) => Err(error),
    }
}

/// Whether the source does not know the session at all. OpenCode says so only when it is asked for
/// rows: to it, an unknown session is one without the message, and one without changes.
async fn is_unknown(source: &dyn Source, end: Instant) -> bool {
    let newest = PageRequest { before: None, limit: 1, purpose: Purpose::Probe };
    source.kind() == SourceKind::OpenCode
        && matches!(
            timeout_at(end, source.page(&newest)).await,
            Ok(Ok(Fetched { answer: Answer::NotFound, .. }))
        )
}

/// Something that says what to ask a source for until it has seen enough.
trait Scan: Send + Sized + 'static {
    type Error: From<TurnPageError> + Send;

    fn want(&self) -> Option<&PageRequest>;

    fn feed(&mut self, answer: Answer) -> Result<(), Self::Error>;
}

impl Scan for TurnScan {
    type Error = TurnPageError;

    fn want(&self) -> Option<&PageRequest> {
        self.want()
    }

    fn feed(&mut self, answer: Answer) -> Result<(), TurnPageError> {
        self.feed(answer)
    }
}

impl Scan for ReconcileScan {
    type Error = ReconcileError;

    fn want(&self) -> Option<&PageRequest> {
        self.want()
    }

    fn feed(&mut self, answer: Answer) -> Result<(), ReconcileError> {
        self.feed(answer)
    }
}

impl Scan for MessageScan {
    type Error = MessageError;

    fn want(&self) -> Option<&PageRequest> {
        self.want()
    }

    fn feed(&mut self, answer: Answer) -> Result<(), MessageError> {
        self.feed(answer)
    }
}

/// Asks the source for what the scan wants until that is nothing, and says how many rows that took.
/// One page is held at a time.
async fn drive<S: Scan>(
    source: &dyn Source,
    mut scan: S,
    end: Instant,
) -> Result<(S, usize), S::Error> {
    let mut rows = 0;
    while let Some(wanted) = scan.want() {
        let fetched = timeout_at(end, source.page(wanted)).await;
        let fetched = fetched.unwrap_or_else(|_| Ok(Answer::TimedOut.into()))?;
        if let (Answer::Page(page), Purpose::Scan | Purpose::Narrow) =
            (&fetched.answer, wanted.purpose)
        {
            rows += page.records().len();
        }
        let fed;
        (scan, fed) = off_the_workers(fetched.bytes, move || {
            let Fetched { answer, room, .. } = fetched;
            let fed = scan.feed(answer);
            drop(room);
            (scan, fed)
        })
        .await;
        fed?;
    }
    Ok((scan, rows))
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

async fn find(
    sources: &Sources,
    id: &str,
    directory: Option<&str>,
    known: Known,
    end: Instant,
    place: &mut (impl FnMut(&'static str) + Send),
) -> Result<Found, Failure> {
    let found = timeout_at(end, sources.source(id, directory, known)).await;
    let found = found.unwrap_or_else(|_| Err(TurnPageError::TimedOut.into()))?;
    place(crate::source::label(found.source.kind()));
    Ok(found)
}
