//! `/api/openchamber/transcript-cache/…`: what clients keep here of settled messages.
//!
//! | | `session` | `message` | `generation` | `all` | `evict` |
//! |---|---|---|---|---|---|
//! | `GET` | its messages | one message | | | |
//! | `PUT` | | keeps one | | | |
//! | `DELETE` | its messages | one message | all of a runtime | everything | |
//! | `POST` | | | | | removes the oldest |
//!
//! Any other method or name is none of this and goes where other paths under `/api` go.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use axum::{
    body::{Body, HttpBody as _},
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header},
};
use http_body_util::BodyExt as _;
use tokio::{sync::OwnedSemaphorePermit, time::timeout};
use turnkeep_log::json::{Json, Kind};

use super::{Asked, conditional, log::RequestLog, proxy};
use crate::{
    blocking::off_the_workers,
    failure::Failure,
    host::Host,
    transcript_cache::{
        Evicted, MAX_BODY_BYTES, Outcome, Reasoning, TranscriptCache,
        request::{
            Budget, Generation, Invalid, Scope, message_of_json, message_of_query, put_of_body,
        },
        write_scope,
    },
};

/// The name of a credential that is good for previews of a project's own pages only. Scripts of
/// such a page must not get at transcripts with it.
const PREVIEW_TOKEN: &str = "oc_preview_token";

/// How long a client may take to send a body. It takes up room meanwhile.
const BODY_DEADLINE: Duration = Duration::from_secs(120);

/// What is asked.
#[derive(Clone, Copy)]
enum Operation {
    ReadSession,
    ReadMessage,
    PutMessage,
    RemoveMessage,
    ClearSession,
    ClearGeneration,
    ClearAll,
    Evict,
}

impl Operation {
    fn of(method: &Method, name: &str) -> Option<Self> {
        Some(match (method, name) {
            (&Method::GET | &Method::HEAD, "session") => Self::ReadSession,
            (&Method::GET | &Method::HEAD, "message") => Self::ReadMessage,
            (&Method::PUT, "message") => Self::PutMessage,
            (&Method::DELETE, "message") => Self::RemoveMessage,
            (&Method::DELETE, "session") => Self::ClearSession,
            (&Method::DELETE, "generation") => Self::ClearGeneration,
            (&Method::DELETE, "all") => Self::ClearAll,
            (&Method::POST, "evict") => Self::Evict,
            _ => return None,
        })
    }
}

/// Answers what is asked of the cache.
pub(super) async fn answer(
    host: &Arc<Host>,
    name: &str,
    asked: &Asked,
    request: Request,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let Some(operation) = Operation::of(&asked.method, name) else {
        return proxy::forward(host, asked, request, log).await;
    };
    if has_preview_token(asked) {
        return Err(Failure::of_kind("preview_credential"));
    }
    let Some(cache) = host.transcript_cache() else {
        // A client that is still sending would not see the answer.
        discard(request.into_body()).await;
        return Err(Failure::of_kind("cache_off"));
    };
    let exchange = Exchange { cache, asked, log };
    match operation {
        Operation::ReadSession => exchange.read_session().await,
        Operation::ReadMessage => exchange.read_message().await,
        Operation::PutMessage => exchange.put_message(request).await,
        Operation::RemoveMessage => exchange.remove_message(request).await,
        Operation::ClearSession => exchange.clear_session(request).await,
        Operation::ClearGeneration => exchange.clear_generation(request).await,
        Operation::ClearAll => exchange.clear_all().await,
        Operation::Evict => exchange.evict(request).await,
    }
}

/// One request and what is needed to answer it.
struct Exchange<'a> {
    cache: &'a TranscriptCache,
    asked: &'a Asked,
    log: &'a mut RequestLog,
}

impl Exchange<'_> {
    async fn read_session(self) -> Result<Response<Body>, Failure> {
        let scope = Scope::of_query(|key| self.asked.query.text(key))?;
        self.log.session = Some(scope.session.clone());
        let reasoning = reasoning(self.asked);
        let records = self.cache.session(scope.clone()).await?;
        let bytes = records.iter().map(|record| record.info.len() + record.parts.len()).sum();
        let body = off_the_workers(bytes, move || {
            let mut body = String::with_capacity(bytes);
            body.push_str(r#"{"available":true,"scope":"#);
            write_scope(&scope, &mut body);
            body.push_str(r#","records":["#);
            let mut kept_bytes = 0_i64;
            for (index, record) in records.iter().enumerate() {
                if index > 0 {
                    body.push(',');
                }
                record.write(&scope, reasoning, &mut body);
                kept_bytes = kept_bytes.saturating_add(record.bytes);
            }
            let _ = write!(body, r#"],"byteSize":{kept_bytes}}}"#);
            body
        });
        Ok(conditional::in_pieces(&self.asked.headers, vec![body.await]).await)
    }

    async fn read_message(self) -> Result<Response<Body>, Failure> {
        let scope = Scope::of_query(|key| self.asked.query.text(key))?;
        self.log.session = Some(scope.session.clone());
        let id = message_of_query(self.asked.query.text("messageID"))?;
        self.log.message = Some(id.clone());
        let reasoning = reasoning(self.asked);
        let record = self.cache.message(scope.clone(), id).await?;
        let record = record.ok_or_else(|| Failure::of_kind("not_cached"))?;
        let body = off_the_workers(record.info.len() + record.parts.len(), move || {
            let mut body = String::from(r#"{"available":true,"record":"#);
            record.write(&scope, reasoning, &mut body);
            body.push('}');
            body
        });
        Ok(conditional::in_pieces(&self.asked.headers, vec![body.await]).await)
    }

    async fn put_message(self, request: Request) -> Result<Response<Body>, Failure> {
        let (scope, entry) = self.read(request, put_of_body).await?;
        self.log.session = Some(scope.session.clone());
        self.log.message = Some(entry.message.clone());
        let bytes = entry.info.len() + entry.parts.len();
        let outcome = self.cache.put(scope.clone(), entry).await?;
        let told = off_the_workers(bytes, move || {
            let (mut body, record) = match outcome {
                Outcome::Written(record) => (r#"{"status":"written""#.to_owned(), Some(record)),
                Outcome::Unchanged(record) => (skipped("unchanged"), Some(record)),
                Outcome::SlimDowngrade(record) => (skipped("slim-downgrade"), Some(record)),
                Outcome::NotSettled => (skipped("not-settled"), None),
            };
            if let Some(record) = record {
                body.push_str(r#","record":"#);
                record.write(&scope, Reasoning::Include, &mut body);
            }
            body.push('}');
            body
        });
        Ok(json(told.await))
    }

    async fn remove_message(self, request: Request) -> Result<Response<Body>, Failure> {
        let named =
            |body: Json<'_>| Ok((Scope::of_body(body)?, message_of_json(body.get("messageID"))?));
        let (scope, id) = self.read(request, named).await?;
        self.log.session = Some(scope.session.clone());
        self.log.message = Some(id.clone());
        self.cache.remove_message(scope, id).await?;
        Ok(no_content())
    }

    async fn clear_session(self, request: Request) -> Result<Response<Body>, Failure> {
        let scope = self.read(request, Scope::of_body).await?;
        self.log.session = Some(scope.session.clone());
        self.cache.clear_session(scope).await?;
        Ok(no_content())
    }

    async fn clear_generation(self, request: Request) -> Result<Response<Body>, Failure> {
        let generation = self.read(request, Generation::of_body).await?;
        self.cache.clear_generation(generation).await?;
        Ok(no_content())
    }

    async fn clear_all(self) -> Result<Response<Body>, Failure> {
        self.cache.clear_all().await?;
        Ok(no_content())
    }

    async fn evict(self, request: Request) -> Result<Response<Body>, Failure> {
        let budget = self.read(request, Budget::of_body).await?;
        let Evicted { rows, freed_bytes, remaining_bytes } = self.cache.evict(budget).await?;
        Ok(json(format!(
            r#"{{"evicted":{rows},"freedBytes":{freed_bytes},"remainingBytes":{remaining_bytes}}}"#
        )))
    }

    /// Reads the body of a request and what it asks for.
    async fn read<T: Send + 'static>(
        &self,
        request: Request,
        parse: impl FnOnce(Json<'_>) -> Result<T, Invalid> + Send + 'static,
    ) -> Result<T, Failure> {
        let (body, _room) = match timeout(BODY_DEADLINE, receive(self.cache, request)).await {
            Ok(received) => received?,
            Err(_too_slow) => return Err(Invalid::Payload.into()),
        };
        let parsed = off_the_workers(body.len(), move || {
            let body = String::from_utf8(body)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            let text = body.strip_prefix('\u{feff}').unwrap_or(&body);
            let text = if text.is_empty() { "{}" } else { text };
            let json = Json::parse(text).map_err(|_| Invalid::Payload)?;
            match json.kind() {
                Kind::Object | Kind::Array => parse(json),
                _ => Err(Invalid::Payload),
            }
        });
        Ok(parsed.await?)
    }
}

/// The bytes of a body, and the room they take up. A body that does not say to be JSON counts as
/// an empty one: a page of another site can send such a body without asking.
async fn receive(
    cache: &TranscriptCache,
    request: Request,
) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Invalid> {
    let (head, mut body) = request.into_parts();
    if !is_json(&head.headers) {
        discard(body).await;
        return Ok((Vec::new(), None));
    }
    let is_plain = head.headers.get(header::CONTENT_ENCODING).is_none_or(|it| it == "identity");
    let told = body.size_hint().upper().map_or(Ok(MAX_BODY_BYTES), usize::try_from);
    let most = told.ok().filter(|&bytes| is_plain && bytes <= MAX_BODY_BYTES);
    let most = most.ok_or(Invalid::Payload)?;
    let room = cache.room(most).await;
    let mut bytes = Vec::with_capacity(body.size_hint().upper().map_or(0, |_| most));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Invalid::Payload)?.into_data() else { continue };
        if bytes.len() + data.len() > MAX_BODY_BYTES {
            return Err(Invalid::Payload);
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, room))
}

/// Reads a body to its end, or as far as one may be long, and keeps nothing of it.
async fn discard(mut body: Body) {
    let all = async {
        let mut seen = 0;
        while seen <= MAX_BODY_BYTES
            && let Some(Ok(frame)) = body.frame().await
        {
            seen += frame.data_ref().map_or(0, bytes::Bytes::len);
        }
    };
    let _ = timeout(BODY_DEADLINE, all).await;
}

fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = media_type.and_then(|media_type| media_type.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

fn has_preview_token(asked: &Asked) -> bool {
    let in_query = asked.query.all(PREVIEW_TOKEN).iter().any(|token| !token.trim().is_empty());
    let cookies = asked.headers.get_all(header::COOKIE).iter();
    let in_cookies =
        cookies.flat_map(|value| value.as_bytes().split(|byte| *byte == b';')).any(|cookie| {
            let mut halves = cookie.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
            halves.next() == Some(PREVIEW_TOKEN.as_bytes())
                && halves.next().is_some_and(|token| !token.is_empty())
        });
    in_query || in_cookies
}

fn reasoning(asked: &Asked) -> Reasoning {
    if asked.query.include_reasoning() { Reasoning::Include } else { Reasoning::LeaveOut }
}

fn skipped(reason: &str) -> String {
    format!(r#"{{"status":"skipped","reason":"{reason}""#)
}

fn json(body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    let media_type = HeaderValue::from_static(conditional::JSON);
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}

fn no_content() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Self::of_kind(invalid.kind())
    }
}

/// What SQLite says may repeat a statement and its values, so only its code is logged.
impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error().map(|error| error.extended_code);
        tracing::warn!(code, "the transcript cache failed");
        Self::of_kind("cache_failed")
    }
}
