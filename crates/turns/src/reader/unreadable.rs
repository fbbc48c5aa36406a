//! What is shown in place of a message that its source cannot encode.

use std::collections::HashMap;

use turnkeep_log::{
    Text,
    json::{Json, JsonText, write_str},
};

use crate::{cursor::Position, error::TurnPageError, page::SourceRow};

/// What is known of the row next to the unreadable one, on its newer side.
#[derive(Clone, Debug, Default)]
pub(super) struct Neighbour {
    pub(super) position: Option<Position>,
    /// When it was made, also where that is not what it is ordered by.
    pub(super) created: Option<u64>,
    pub(super) parent: Option<String>,
}

impl Neighbour {
    /// What a source cursor tells of the row it names.
    pub(super) fn at(before: Option<&str>) -> Self {
        let position = before.and_then(Position::decode);
        Self { created: position.as_ref().map(|row| row.time), position, parent: None }
    }
}

/// The unreadable message as the session's event history tells of it.
///
/// It is the newest of the messages that were there and not removed again, older than the
/// neighbour and not among those read.
pub(super) fn find(
    history: &Text,
    session: &str,
    neighbour: &Neighbour,
    is_known: impl Fn(&str) -> bool,
) -> Option<Position> {
    let events = JsonText::parse(history).ok()?;
    let mut messages: HashMap<String, u64> = HashMap::new();
    for event in events.json().elements()? {
        let (Some(name), Some(data)) = (event.get("type"), event.get("data")) else { continue };
        if text_of(data.get("sessionID")).as_deref() != Some(session) {
            continue;
        }
        let name = text_of(Some(name)).unwrap_or_default();
        match name.trim_end_matches(|char: char| char.is_ascii_digit()).trim_end_matches('.') {
            "message.updated" => {
                let Some(info) = data.get("info") else { continue };
                let created = info.path(&["time", "created"]).and_then(Json::as_natural);
                if let (Some(id), Some(created)) = (text_of(info.get("id")), created) {
                    messages.insert(id, created);
                }
            }
            "message.removed" => {
                if let Some(id) = text_of(data.get("messageID")) {
                    messages.remove(&id);
                }
            }
            _ => {}
        }
    }
    messages
        .into_iter()
        .map(|(id, time)| Position { time, id })
        .filter(|message| neighbour.position.as_ref().is_none_or(|bound| message < bound))
        .filter(|message| !is_known(&message.id))
        .max()
}

/// The row that stands in for the unreadable message: of a person's making, without parts, with an
/// error that says what happened.
///
/// # Errors
///
/// None that can come up: the text is JSON.
pub(super) fn stub(
    session: &str,
    found: Option<Position>,
    neighbour: &Neighbour,
) -> Result<SourceRow, TurnPageError> {
    let created = neighbour.created.or(found.as_ref().map(|found| found.time)).unwrap_or(0);
    let id = found
        .map(|found| found.id)
        .or_else(|| neighbour.parent.clone())
        .unwrap_or_else(|| placeholder(session));
    let mut json = String::from(r#"{"info":{"id":"#);
    write_str(&mut json, &id);
    json.push_str(r#","sessionID":"#);
    write_str(&mut json, session);
    json.push_str(r#","role":"user","time":{"created":"#);
    json.push_str(&created.to_string());
    json.push_str(r#"},"error":{"name":"TurnkeepUnreadable"}},"parts":[]}"#);
    let json = JsonText::parse(&Text::from(json)).map_err(|_| TurnPageError::Internal)?;
    SourceRow::new(json, None)
}

/// The id of an unreadable message of which nothing is known.
pub(crate) fn placeholder(session: &str) -> String {
    format!("unreadable:{session}")
}

fn text_of(value: Option<Json<'_>>) -> Option<String> {
    let text = value?.as_str()?.decode_lossy();
    (!text.is_empty()).then(|| text.into_owned())
}
