//! The upstream's sessions.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use turnkeep_log::json::{Json, JsonText};

use super::{Reply, Trouble, Upstream};

/// A list of sessions is not larger than this.
const MAX_LIST_BYTES: usize = 64 << 20;

/// The older list has no pages, so all of it is read, up to here.
const MAX_OLD_LIST: usize = 10_000;

/// What is known of one session of the upstream. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamSession {
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) directory: Option<String>,
    pub(crate) parent_id: Option<String>,
    pub(crate) created_at: Option<i64>,
    pub(crate) updated_at: i64,
    /// Whether a step was ever run in it: that leaves a mark, in sessions of the served form only.
    stepped: bool,
    /// Whether it holds no message at all, as far as was asked.
    pub(crate) blank: bool,
    /// Whether its messages are in the form that is not served, as far as was asked.
    pub(crate) foreign: bool,
}

/// Some sessions, newest first.
#[derive(Debug)]
pub(crate) struct SessionPage {
    pub(crate) sessions: Vec<UpstreamSession>,
    /// Whether there may be older ones.
    pub(crate) more: bool,
}

impl Upstream {
    /// The newest `limit` sessions last changed before `older_than`.
    ///
    /// The list over all projects is asked first. A server without it answers with its web app; it
    /// is asked for the list of its own project then, which has no pages.
    pub(crate) async fn sessions(
        &self,
        limit: usize,
        older_than: Option<i64>,
    ) -> Result<SessionPage, Trouble> {
        let limit_text = limit.to_string();
        let older_than_text = older_than.map(|time| time.to_string());
        let mut query = vec![("limit", limit_text.as_str())];
        query.extend(older_than_text.as_deref().map(|time| ("cursor", time)));
        match self.get(&["experimental", "session"], &query, MAX_LIST_BYTES).await {
            Ok(reply) => {
                let (sessions, sent) = read_list(&reply)?;
                Ok(SessionPage { more: sent >= limit, sessions })
            }
            Err(Trouble::Unexpected | Trouble::NotFound) => {
                let all = MAX_OLD_LIST.to_string();
                let reply = self.get(&["session"], &[("limit", &all)], MAX_LIST_BYTES).await?;
                let (mut sessions, _) = read_list(&reply)?;
                sessions.retain(|session| older_than.is_none_or(|time| session.updated_at < time));
                Ok(SessionPage { more: false, sessions })
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// One session.
    pub(crate) async fn session(&self, id: &str) -> Result<UpstreamSession, Trouble> {
        let reply = self.get(&["session", id], &[], MAX_LIST_BYTES).await?;
        let json = Json::parse(&reply.body).map_err(|_| Trouble::Unexpected)?;
        UpstreamSession::read(json).ok_or(Trouble::Unexpected)
    }

    /// Finds out whether the session is blank or foreign, unless it is plain that it is neither.
    ///
    /// OpenCode keeps two stores of messages, one for each generation of its routes, and both
    /// lists of sessions show every session. Where ours is empty the other one is looked at. What
    /// was found counts until the session changes.
    pub(crate) async fn tell(&self, session: &mut UpstreamSession) -> Result<(), Trouble> {
        if session.stepped {
            return Ok(());
        }
        let found = if let Some(known) = self.told.get(session) {
            known
        } else {
            let found = self.messages_of(&session.id).await?;
            self.told.keep(session, found);
            found
        };
        session.blank = found == Messages::None;
        session.foreign = found == Messages::Foreign;
        Ok(())
    }

    async fn messages_of(&self, id: &str) -> Result<Messages, Trouble> {
        let one = [("limit", "1")];
        let ours = self.get(&["session", id, "message"], &one, MAX_LIST_BYTES).await?;
        if !is_empty_array(Json::parse(&ours.body).ok()) {
            return Ok(Messages::Ours);
        }
        match self.get(&["api", "session", id, "message"], &one, MAX_LIST_BYTES).await {
            Ok(theirs) => {
                let data = Json::parse(&theirs.body).ok().and_then(|body| body.get("data"));
                let foreign = data.is_some() && !is_empty_array(data);
                Ok(if foreign { Messages::Foreign } else { Messages::None })
            }
            // A server without the other generation answers with its web app.
            Err(Trouble::Unexpected | Trouble::NotFound) => Ok(Messages::None),
            Err(trouble) => Err(trouble),
        }
    }
}

/// Where a session's messages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Messages {
    None,
    Ours,
    Foreign,
}

/// What was found out about sessions, by id, each as of its last change.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<HashMap<String, (i64, Messages)>>);

impl Told {
    /// Past this many sessions what is known is forgotten.
    const MAX: usize = 10_000;

    fn get(&self, session: &UpstreamSession) -> Option<Messages> {
        let (as_of, found) = *self.known().get(&session.id)?;
        (as_of == session.updated_at).then_some(found)
    }

    fn keep(&self, session: &UpstreamSession, found: Messages) {
        let mut known = self.known();
        if known.len() >= Self::MAX {
            known.clear();
        }
        known.insert(session.id.clone(), (session.updated_at, found));
    }

    /// Nothing can panic while this is locked; a poisoned lock would be as good as any.
    fn known(&self) -> MutexGuard<'_, HashMap<String, (i64, Messages)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UpstreamSession {
    fn read(json: Json<'_>) -> Option<Self> {
        let text = |key: &str| Some(json.get(key)?.as_str()?.decode_lossy().into_owned());
        let time = |key: &str| json.path(&["time", key]).and_then(Json::as_safe_integer);
        Some(Self {
            id: text("id").filter(|id| !id.is_empty())?,
            title: text("title").filter(|title| !title.is_empty()),
            directory: text("directory"),
            parent_id: text("parentID"),
            created_at: time("created"),
            updated_at: time("updated").or(time("created"))?,
            stepped: json.get("summary").is_some(),
            blank: false,
            foreign: false,
        })
    }
}

/// The sessions that can be made out, and how many were sent.
fn read_list(reply: &Reply) -> Result<(Vec<UpstreamSession>, usize), Trouble> {
    let json = JsonText::parse(&reply.body).map_err(|_| Trouble::Unexpected)?;
    let sent = json.json().elements().ok_or(Trouble::Unexpected)?;
    Ok((sent.clone().filter_map(UpstreamSession::read).collect(), sent.count()))
}

fn is_empty_array(json: Option<Json<'_>>) -> bool {
    json.and_then(Json::elements).is_some_and(|mut elements| elements.next().is_none())
}
