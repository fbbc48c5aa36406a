//! The members of one event.

use super::RestoreProblem;
use crate::{
    event::Event,
    json::{Json, JsonStr},
};

const MEMBERS: [&str; 7] =
    ["type", "seq", "time", "data", "ignorable", "surfaceOp", "sourceEventSeqs"];

/// How an event joins the surface.
pub(super) struct Join {
    pub(super) place: Place,
    /// The seqs of its sources, sorted.
    pub(super) sources: Vec<u64>,
}

pub(super) enum Place {
    End,
    Of { start: u64, end: u64 },
}

/// Refuses members that no event has.
pub(super) fn check(event: &Event) -> Result<(), RestoreProblem> {
    for member in Json::checked(event.text()).members().into_iter().flatten() {
        if !MEMBERS.iter().any(|name| member.key == *name) {
            return Err(RestoreProblem::Member(member.key.decode_lossy().into_owned()));
        }
        if member.key == "ignorable" && !event.ignorable() {
            return Err(RestoreProblem::Rule("is marked `ignorable` with another value than true"));
        }
    }
    Ok(())
}

/// How the event joins the surface; `None` for one that the model does not see.
pub(super) fn join(event: &Event) -> Result<Option<Join>, &'static str> {
    let event_type = event.event_type();
    if !matches!(event_type, "user/message" | "assistant/message" | "tool/result") {
        if event.surface_op().is_some() {
            return Err("has a `surfaceOp`, but is of a type that no model sees");
        }
        if event.source_event_seqs().is_some() {
            return Err("has `sourceEventSeqs`, but is of a type that no model sees");
        }
        return Ok(None);
    }
    let op = event.surface_op().ok_or("has no `surfaceOp`, but is of a type that a model sees")?;
    let place =
        place(op).ok_or("has a `surfaceOp` that is neither \"append\" nor a replacement")?;
    let sources = match event.source_event_seqs() {
        Some(list) => sources(list, event)?,
        None => Vec::new(),
    };
    Ok(Some(Join { place, sources }))
}

fn place(op: Json<'_>) -> Option<Place> {
    if let Some(name) = op.as_str() {
        return (name == "append").then_some(Place::End);
    }
    let known = |key: JsonStr<'_>| ["op", "start", "end"].iter().any(|name| key == *name);
    if !op.members()?.all(|member| known(member.key)) || op.get("op")?.as_str()? != "replace" {
        return None;
    }
    Some(Place::Of { start: op.get("start")?.as_natural()?, end: op.get("end")?.as_natural()? })
}

fn sources(list: Json<'_>, event: &Event) -> Result<Vec<u64>, &'static str> {
    let seqs = list.elements().into_iter().flatten().map(Json::as_natural);
    let mut seqs: Vec<u64> =
        seqs.collect::<Option<_>>().ok_or("has `sourceEventSeqs` that are no seqs")?;
    if seqs.is_empty() && event.event_type() != "assistant/message" {
        return Err("has empty `sourceEventSeqs`");
    }
    seqs.sort_unstable();
    if seqs.last().is_some_and(|last| *last >= event.seq().0) {
        return Err("has `sourceEventSeqs` that do not come before it");
    }
    if !seqs.is_sorted_by(|one, next| one < next) {
        return Err("has `sourceEventSeqs` that name an event twice");
    }
    Ok(seqs)
}
