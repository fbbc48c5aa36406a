//! What is published: an event, and where it comes from.

use turnkeep_log::{
    Text,
    json::{Json, JsonStr, Kind},
};

/// Where an event comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The server behind the host.
    Upstream,
    /// A stored session.
    Store,
}

/// An event to be published.
#[derive(Clone, Debug)]
pub struct Published {
    /// The directory of the session it is about; `None` for what concerns everyone.
    pub directory: Option<String>,
    /// The upstream's name for the project of that directory.
    pub project: Option<String>,
    /// The event itself: the JSON text of `{"type":…,"properties":…}`, `id` allowed, without a
    /// wrapper around it.
    pub payload: Text,
    /// Where it comes from.
    pub origin: Origin,
}

impl Published {
    /// Reads the data of a block of an OpenCode event stream: an event, or one in a wrapper that
    /// names its directory. `None` when it is no JSON object.
    pub(super) fn from_block(data: &Text) -> Option<Self> {
        let outer = Json::parse(data).ok().filter(|json| json.kind() == Kind::Object)?;
        let wrapped = outer
            .get("payload")
            .filter(|inner| inner.get("type").is_some_and(|kind| kind.kind() == Kind::String));
        let text = |keys: &[&str]| {
            let text = outer.path(keys).and_then(Json::as_str)?;
            (!text.is_empty()).then(|| text.decode_lossy().into_owned())
        };
        let directory = text(&["directory"]).or_else(|| {
            // The wrapper has the last word, whether it names a directory or not.
            let bare = wrapped.is_none();
            let named = || text(&["properties", "directory"]);
            bare.then(|| named().or_else(|| text(&["properties", "info", "directory"])))?
        });
        Some(Self {
            directory,
            project: text(&["project"]).filter(|_| wrapped.is_some()),
            payload: data.slice_of(wrapped.unwrap_or(outer).text()),
            origin: Origin::Upstream,
        })
    }
}

/// What the hub has to know of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Whether it repeats another event for those who replicate sessions. There is one for nearly
    /// every event, on the channel of all directories only.
    pub(super) is_sync: bool,
    /// Whether it speaks of the connection it came over, which is not that of our clients.
    pub(super) is_of_connection: bool,
    pub(super) concerns: Concerns,
}

/// Which session an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Concerns {
    /// None at all.
    #[default]
    NoSession,
    One(String),
    /// One that cannot be told.
    Unknown,
}

impl Facts {
    /// Looks into an event; `None` when it is no JSON object with a type.
    pub(super) fn of(payload: &str) -> Option<Self> {
        let event = Json::parse(payload).ok().filter(|json| json.kind() == Kind::Object)?;
        let kind = event.get("type").and_then(Json::as_str)?.decode_lossy();
        let is_sync = kind == "sync";
        let session = if is_sync {
            session_of(event, &[&["syncEvent", "aggregateID"]])
        } else {
            let body = ["properties", "data"]
                .into_iter()
                .find_map(|key| event.get(key).filter(|body| body.kind() == Kind::Object));
            let named: &[&[&str]] =
                &[&["sessionID"], &["info", "sessionID"], &["part", "sessionID"]];
            body.and_then(|body| {
                session_of(body, named).or_else(|| {
                    let about_session = kind.starts_with("session.");
                    about_session.then(|| session_of(body, &[&["info", "id"]]))?
                })
            })
        };
        let concerns = match session {
            Some(session) => Concerns::One(session),
            None if ["message.", "session.", "sync"].iter().any(|it| kind.starts_with(it)) => {
                Concerns::Unknown
            }
            None => Concerns::NoSession,
        };
        let is_of_connection = matches!(&*kind, "server.connected" | "server.heartbeat");
        Some(Self { is_sync, is_of_connection, concerns })
    }
}

fn session_of(json: Json<'_>, places: &[&[&str]]) -> Option<String> {
    let mut found = places.iter().filter_map(|keys| json.path(keys)).filter_map(Json::as_str);
    found.find(|id| !id.is_empty()).map(JsonStr::decode_lossy).map(Into::into)
}

#[cfg(test)]
#[path = "payload_tests.rs"]
mod tests;
