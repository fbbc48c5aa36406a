//! Verifying what is in memory, and saving it.

use turnkeep_log::{Event, SessionHeader, SessionId, Vocabulary, gate};

use super::disk::{Disk, Stored};
use crate::{
    error::{NothingToSave, SalvageError},
    recover::{Feed, SalvageStart},
    verify::{Finding, FindingKind, Findings, Severity, Verification, finding_of},
};

/// A session's header line and events, as they are.
pub(super) fn stored(disk: &Disk, id: &SessionId) -> Option<(String, Vec<Event>)> {
    disk.look(id, |Stored { header, events, .. }| (header.clone(), events.clone()))
}

/// Verifies a session. Events in memory are in order, or they would not be there; whether readers
/// take them is another matter.
pub(super) fn verify(
    id: &SessionId,
    header: &str,
    events: &[Event],
    vocabulary: &Vocabulary,
) -> Verification {
    let mut findings = Findings::default();
    let mut refused = None;
    if let Err(error) = SessionHeader::parse(header, Some(id)) {
        refused = Some(error.kind());
        let kind = FindingKind::BadHeader;
        findings.add(Finding::new(kind, Severity::Damaged, error.to_string()));
    }
    let mut gate = None;
    for event in events {
        if let Err(error) = gate::check_event(id, event, vocabulary) {
            let finding = finding_of(&error, event);
            if gate.is_none() || finding.severity == Severity::Unsupported {
                gate = Some(error.kind());
            }
            findings.add(finding);
        }
    }
    findings.read(events.len() as u64);
    let (findings, omitted, found) = findings.finish();
    let refused = refused.or(gate);
    Verification { events: found, found, refused, findings, omitted, ..Verification::of(id) }
}

/// Reads out what readers take of a session.
pub(super) fn save(
    id: &SessionId,
    header: &str,
    mut events: Vec<Event>,
    vocabulary: &Vocabulary,
    feed: &mut Feed,
) -> Result<(), SalvageError> {
    let verification = verify(id, header, &events, vocabulary);
    let refused = events.iter().find(|event| gate::check_event(id, event, vocabulary).is_err());
    let stopped = refused.map(|event| format!("readers refuse event {}", event.seq()));
    let kept = refused.map_or(events.len() as u64, |event| event.seq().0);
    if let (0, Some(reason)) = (kept, &stopped) {
        return Err(NothingToSave { id: id.clone(), reason: reason.clone() }.into());
    }
    events.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
    feed.begin(SalvageStart {
        header: SessionHeader::parse(header, None).ok(),
        events: kept,
        salvaged: 0,
        stopped,
        first_time: events.first().map(Event::time),
        verification,
    });
    feed.put(events);
    Ok(())
}
