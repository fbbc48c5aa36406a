//! The sessions, by their state, and the trash.

use jiff::Timestamp;
use turnkeep_store::{Cancel, ListQuery, SessionEntry, SessionState, SessionStore};

use super::report::Finding;
use crate::{
    commands::ls::human_size,
    output::{argument, counted, named},
};

/// How many sessions of a state are named.
const NAMED: usize = 5;

/// How far ahead of the clock a log may be, in milliseconds.
const AHEAD: i64 = 60_000;

/// Counts the sessions, and says what to do about those that are not well.
pub(super) async fn look(store: &dyn SessionStore) -> Vec<Finding> {
    let list = match store.list(&ListQuery::default(), &Cancel::never()).await {
        Ok(list) => list,
        Err(error) => {
            let advice = "see what the system says of the store's place";
            return vec![Finding::todo("sessions", error.to_string(), advice)];
        }
    };
    let in_state = |state| -> Vec<&SessionEntry> {
        list.entries.iter().filter(|entry| entry.state == state).collect()
    };
    let (well, damaged) = (in_state(SessionState::Ok), in_state(SessionState::Damaged));
    let (newer, foreign) = (in_state(SessionState::Newer), in_state(SessionState::Foreign));
    let mut findings = vec![Finding::ok(
        "sessions",
        format!(
            "{}: {} ok, {} damaged, {} newer, {} foreign, by their first lines; \
             `turnkeep verify --all` reads the rest",
            counted(list.entries.len() as u64, "session", "sessions"),
            well.len(),
            damaged.len(),
            newer.len(),
            foreign.len()
        ),
    )];
    findings.extend(named_some(&damaged, |entry, reason| {
        let id = argument(&entry.id);
        let advice = format!(
            "`turnkeep verify {id}` says what is lost, `turnkeep recover {id} --into NEWID` saves \
             the rest, `turnkeep rm {id}` gives it up"
        );
        Finding::todo("damaged", reason, advice)
    }));
    findings.extend(named_some(&newer, |_, reason| {
        Finding::note(
            "newer",
            reason,
            "open it with the program that wrote it, or a later turnkeep",
        )
    }));
    findings.extend(named_some(&foreign, |entry, reason| {
        let advice = format!(
            "read it with the program that wrote it; `turnkeep rm {}` gives it up",
            argument(&entry.id)
        );
        Finding::note("foreign", reason, advice)
    }));
    findings.extend(ahead(&well));
    findings.push(trash(store).await);
    findings
}

fn named_some(
    entries: &[&SessionEntry],
    finding: impl Fn(&SessionEntry, String) -> Finding,
) -> Vec<Finding> {
    let some = entries.iter().take(NAMED).map(|entry| {
        let reason = entry.reason.as_deref().unwrap_or("it cannot be read");
        // Most reasons begin with the session.
        let told = match reason.strip_prefix("session ") {
            Some(rest) if rest.starts_with(&named(&entry.id)) => rest.to_owned(),
            _ => format!("{}: {reason}", named(&entry.id)),
        };
        finding(entry, told)
    });
    let mut findings: Vec<_> = some.collect();
    if let (Some(more), Some(last)) = (entries.len().checked_sub(NAMED), findings.last_mut())
        && more > 0
    {
        last.message = format!("{} (and {more} more; `turnkeep ls` has them all)", last.message);
    }
    findings
}

fn ahead(entries: &[&SessionEntry]) -> Option<Finding> {
    let latest = Timestamp::now().as_millisecond() + AHEAD;
    let ahead = |entry: &&&SessionEntry| {
        let stat = entry.stat.as_ref();
        stat.and_then(|stat| stat.modified_at).is_some_and(|modified| modified > latest)
    };
    let count = entries.iter().filter(ahead).count();
    (count > 0).then(|| {
        let message = format!("{} changed later than now", counted(count as u64, "log", "logs"));
        Finding::note(
            "clock",
            message,
            "the clock was ahead once, or is behind; they are listed first",
        )
    })
}

async fn trash(store: &dyn SessionStore) -> Finding {
    match store.trash(&Cancel::never()).await {
        Ok(trashed) if trashed.is_empty() => Finding::ok("trash", "the trash is empty"),
        Ok(trashed) => {
            let bytes: u64 = trashed.iter().map(|trashed| trashed.size_bytes).sum();
            Finding::ok(
                "trash",
                format!(
                    "{} ({}); `turnkeep trash` lists what is there",
                    counted(trashed.len() as u64, "deleted session", "deleted sessions"),
                    human_size(bytes)
                ),
            )
        }
        Err(error) => {
            let advice = "sessions can neither be deleted nor restored before that is mended";
            Finding::todo("trash", error.to_string(), advice)
        }
    }
}
