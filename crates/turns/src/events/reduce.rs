//! Events without patches.

use turnkeep_log::{Text, json::Json};

use super::envelope::{BODIES, Envelope, SYNC, rewrite_members};
use crate::summary;

/// Where an event carries diffs.
#[derive(Clone, Copy)]
enum Diffs {
    /// As the list `diff`.
    List,
    /// In the summary of `info`, else of the body itself.
    Summary,
}

/// The event with its diffs reduced, every other byte as it was; `None` when there is nothing to
/// reduce.
///
/// `payload` is the JSON text of an event. A message and a session carry their summary in
/// `message.updated`, `message.created`, `session.updated` and `session.created`, whatever the
/// version in the name; `session.diff` carries a list of diffs. They are looked for in `properties`
/// and in `data`, and in the event that a `sync` event holds. What [`summary`](crate::summary) says
/// of pages goes for events: a client must not be sent by one way what it is spared on the other.
///
/// ```
/// use turnkeep_log::Text;
/// use turnkeep_turns::events;
///
/// let event = Text::from(
///     r#"{"type":"session.diff","properties":{"diff":[{"file":"a","patch":"+x","additions":1}]}}"#,
/// );
/// let reduced = events::reduce(&event).expect("there is a patch in it");
/// assert_eq!(
///     &*reduced,
///     r#"{"type":"session.diff","properties":{"diff":[{"file":"a","additions":1}]}}"#
/// );
/// assert!(events::reduce(&reduced).is_none());
/// ```
#[must_use]
pub fn reduce(payload: &Text) -> Option<Text> {
    let (envelope, event) = Envelope::parse(payload)?;
    let synced = envelope.synced();
    let diffs = diffs_of(synced.as_ref().unwrap_or(&envelope))?;
    let mut out = String::new();
    let is_changed = if synced.is_some() {
        rewrite_members(event, [SYNC], &mut out, |event, out| reduce_event(diffs, event, out))
    } else {
        reduce_event(diffs, event, &mut out)
    };
    is_changed.then(|| Text::from(out))
}

fn diffs_of(envelope: &Envelope<'_>) -> Option<Diffs> {
    match &*envelope.base_name() {
        "session.diff" => Some(Diffs::List),
        "message.updated" | "message.created" | "session.updated" | "session.created" => {
            Some(Diffs::Summary)
        }
        _ => None,
    }
}

fn reduce_event(diffs: Diffs, event: Json<'_>, out: &mut String) -> bool {
    rewrite_members(event, BODIES, out, |body, out| match diffs {
        Diffs::List => rewrite_members(body, ["diff"], out, summary::reduce_list),
        Diffs::Summary => {
            rewrite_members(body, ["info"], out, summary::reduce) || summary::reduce(body, out)
        }
    })
}
