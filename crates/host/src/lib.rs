//! The turnkeep HTTP service: transcripts turn by turn, of stored sessions and of those behind a
//! running OpenCode server.
//!
//! Clients of coding agents want the last few turns of a session at once, and older ones as their
//! reader scrolls up. A [`Host`] answers that from its store when it holds the session, else from
//! its upstream, through the same code. It also serves the reader: a page at `/` that lists the
//! sessions and shows their transcripts.
//!
//! | | |
//! |---|---|
//! | [`Host`] | answers requests, over HTTP or called as a library |
//! | [`HostOptions`], [`UpstreamOptions`], [`ProxyOptions`] | what it is told before it starts |
//! | [`AuthOptions`], [`TokenFile`], [`Scope`] | who is let in, and to what |
//! | [`ConnectionLimits`], [`TlsOptions`] | what a client can cost, and HTTPS |
//! | [`check_upstream`] | whether an OpenCode server answers, and takes our login |
//! | [`TurnPageRequest`], [`Failure`] | a turn page, and why there is none |
//! | [`export`] | a session as a ZIP archive |
//! | [`kinds`] | one table from every kind of failure to exit code, status and text |
//!
//! Inside, a request comes in by `serve` (connections, HTTPS, limits), and goes from `http` (which
//! pages may ask, with `auth` who may, what is asked, what every response carries) to
//! `driver` (where the session lives; the scan and its deadline), which asks a `source`: one
//! session as rows, in the store or behind the `upstream`. `listing` makes one list of both.
//!
//! | route | |
//! |---|---|
//! | `GET /api/openchamber/sessions/:id/messages` | a turn page: `turns`, `before`, `scanLimit`, `directory`, `includeReasoning` |
//! | `GET /api/openchamber/sessions/:id/messages/reconcile` | what happened since a message: `anchor` or `continuation`, `directory`, `includeReasoning` |
//! | `GET /api/openchamber/sessions/:id/changes` | what a message changed: `messageID`, `file`, `directory` |
//! | `GET /api/session/:id/message/:message` | one message whole: `directory`, `includeReasoning` |
//! | `GET /api/turnkeep/sessions` | the sessions, newest first: `cursor`, `limit`, `q`, `cwd`, `state` |
//! | `GET /api/turnkeep/sessions/:id` | one session, its title included |
//! | `POST /auth/login`, `POST /auth/logout`, `GET /auth/status` | a browser's login |
//! | `/api/openchamber/transcript-cache/*` | what clients keep here of settled messages |
//! | `GET /api/session.export` | a session as a ZIP archive: `sessionId`, `includeDescendants` |
//! | `GET /api/session/:id/message` | the official list of messages: `limit`, `before`, `directory`, `includeReasoning` |
//! | any other `/api/…` | what the OpenCode server has at that path without `/api` |
//! | `GET /health` | that the process answers |
//! | `GET /metrics` | what the host counts |
//! | `GET /` | the reader |
//!
//! ```
//! use std::sync::Arc;
//!
//! use turnkeep_host::{Host, HostOptions, TurnPageRequest};
//! use turnkeep_log::{EventDraft, Seq, SessionHeader, SessionId, json::JsonText};
//! use turnkeep_store::{
//!     Cancel, SessionStore,
//!     jsonl::{JsonlOptions, JsonlStore},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let root = tempfile::tempdir()?;
//! # let root = root.path();
//! // A stored session with one prompt in it.
//! let store = Arc::new(JsonlStore::open(JsonlOptions::new(root))?);
//! let header = SessionHeader::new(SessionId::new("s1").ok_or("an id is not empty")?, 1);
//! let writer = store.create(header, &Cancel::never()).await?;
//! let prompt = r#"{"role":"user","id":"m1","source":{"kind":"user"},
//!                  "content":[{"type":"text","text":"Tidy the notes"}]}"#;
//! let prompt = EventDraft::new("user/message", &JsonText::parse(&prompt.into())?)
//!     .surface_op(&JsonText::parse(&r#""append""#.into())?);
//! writer.append(vec![prompt.complete(Seq(0), 1_700_000_000_000)?], &Cancel::never()).await?;
//! writer.close().await?;
//!
//! let mut options = HostOptions::default();
//! options.store = Some(store);
//! options.listen = "127.0.0.1:0".parse()?;
//! let host = Arc::new(Host::new(options)?);
//!
//! // As a library …
//! let page = host.turn_page_json("s1", &TurnPageRequest::default()).await?;
//! assert!(page.contains("Tidy the notes") && page.contains(r#""complete":true"#));
//!
//! // … or over HTTP, until told to stop.
//! let listener = host.bind().await?;
//! println!("http://{}", listener.local_addr()?);
//! let stop = async { /* a signal, in a real program */ };
//! host.serve(listener, stop).await?;
//! # Ok(())
//! # }
//! ```

mod auth;
mod blocking;
mod driver;
mod events;
pub mod export;
mod failure;
mod host;
mod http;
pub mod kinds;
mod listing;
mod metrics;
mod openapi;
mod options;
mod proxy;
mod serve;
mod session_log;
mod source;
mod transcript_cache;
mod upstream;

pub use auth::{
    ApiToken, PasswordError, Scope, Secret, TokenFile, TokenFileError, TokenState, UnknownScope,
};
pub use driver::TurnPageRequest;
pub use events::{EventId, EventTiming, Hub, HubStats, Moment, Origin, Published};
pub use failure::Failure;
pub use host::Host;
pub use ipnet::IpNet;
pub use options::{AuthOptions, ConnectionLimits, HostError, HostOptions, TlsOptions};
pub use proxy::ProxyOptions;
pub use serve::TlsError;
pub use turnkeep_turns::reconcile::{Budgets, KeyRing, KeyRingError};
pub use upstream::{UpstreamAddressError, UpstreamHealth, UpstreamOptions, check_upstream};
