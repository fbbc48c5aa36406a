//! The official list of messages, of a stored session.

use turnkeep_log::Text;
use turnkeep_turns::cursor::decode_seq;

use super::reasoning::without_reasoning;
use crate::{
    failure::Failure,
    http::percent,
    source::{LogSession, RecordPage},
};

/// What part of a session is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListQuery<'a> {
    /// How many records at most; all of them when it is absent, empty or zero.
    pub(crate) limit: Option<&'a str>,
    /// The cursor that came with a newer part.
    pub(crate) before: Option<&'a str>,
    /// Whether reasoning parts are wanted.
    pub(crate) reasoning: bool,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct List {
    /// The JSON text, in pieces.
    pub(crate) body: Vec<String>,
    /// Where the next older part starts.
    pub(crate) next: Option<String>,
}

/// Lists records as OpenCode lists messages: the newest of them, oldest first.
pub(crate) async fn of_stored(session: &LogSession, query: ListQuery<'_>) -> Result<List, Failure> {
    let limit = match query.limit.unwrap_or_default() {
        "" => 0,
        limit => {
            limit.parse().map_err(|_| Failure::bad_request("limit must be a natural number"))?
        }
    };
    let before = match query.before.unwrap_or_default() {
        "" => None,
        _ if limit == 0 => return Err(Failure::bad_request("before needs a limit")),
        before => Some(decode_seq(before).ok_or_else(|| Failure::of_kind("bad_cursor"))?),
    };
    let limit = if limit == 0 { usize::MAX } else { limit };
    let RecordPage { records, next } = session.records(before, limit).await;
    let bytes = records.iter().map(|record| record.len()).sum();
    let reasoning = query.reasoning;
    let body = crate::blocking::off_the_workers(bytes, move || written(&records, reasoning)).await;
    Ok(List { body, next })
}

fn written(records: &[Text], reasoning: bool) -> Vec<String> {
    let mut body = Vec::with_capacity(records.len() + 1);
    for (at, record) in records.iter().enumerate() {
        let mut piece = String::with_capacity(record.len() + 1);
        piece.push(if at == 0 { '[' } else { ',' });
        match without_reasoning(record).filter(|_| !reasoning) {
            Some(kept) => piece.push_str(&kept),
            None => piece.push_str(record),
        }
        body.push(piece);
    }
    body.push(if records.is_empty() { "[]" } else { "]" }.to_owned());
    body
}

/// The address of the next older part, as a `Link` names it.
pub(crate) fn link(session: &str, query: ListQuery<'_>, next: &str) -> String {
    let limit = percent::encode(query.limit.unwrap_or_default());
    let reasoning = if query.reasoning { "" } else { "&includeReasoning=false" };
    // An id may hold a slash, which has another meaning in a path.
    let session = percent::encode(session).replace('/', "%2F");
    let next = percent::encode(next);
    format!("</api/session/{session}/message?limit={limit}&before={next}{reasoning}>; rel=\"next\"")
}
