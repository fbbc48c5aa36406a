//! `turnkeep ls`: one line a session.

use std::num::NonZeroUsize;

use jiff::{Timestamp, tz::TimeZone};
use serde_json::json;
use turnkeep_host::kinds::state_of_unreadable;
use turnkeep_log::{Blank, Event};
use turnkeep_store::{
    Access, Cancel, EventRange, ListQuery, SessionEntry, SessionStat, SessionState, SessionStore,
};
use turnkeep_turns::fold::Fold;

use crate::{
    args::LsArgs, context::Context, failure::Failure, output::Output, store, transcript::printable,
};

/// How many bytes of logs are read, newest first, for the titles and numbers of events that the
/// store does not know without. Of the sessions beyond that the list says only what it does know.
const READ_BYTES: u64 = 64 << 20;

/// How many characters of a title or a reason are shown.
const TITLE_CHARS: usize = 60;

/// Lists the sessions, newest first.
pub(crate) async fn run(args: LsArgs, context: &Context) -> Result<(), Failure> {
    let states = args.state.iter().map(|state| state_named(state));
    let states = states.collect::<Result<Vec<_>, _>>()?;
    let store = store::open(&context.settings)?;
    // Only the events tell some damaged sessions from good ones, so the state is looked at here.
    let limit = args.limit.map(NonZeroUsize::get);
    let query = ListQuery {
        cwd: args.cwd.as_deref().map(store::session_cwd).transpose()?,
        limit: limit.filter(|_| states.is_empty()),
        ..ListQuery::default()
    };
    let list = store.list(&query, &Cancel::never()).await?;
    let mut out = Output::stdout();
    if out.is_terminal() && !context.json && !list.entries.is_empty() {
        out.line(&row("ID", "UPDATED", "EVENTS", "SIZE", "STATE", "TITLE"))?;
    }
    let mut unread = READ_BYTES;
    let mut told = false;
    let mut left = limit.unwrap_or(usize::MAX);
    for entry in &list.entries {
        if left == 0 {
            break;
        }
        let hints = hints(store.as_ref(), entry, &mut unread).await;
        let (state, _) = state_of(entry, &hints);
        if states.is_empty() || states.contains(&state) {
            let line =
                if context.json { json_line(entry, &hints) } else { text_line(entry, &hints) };
            out.line(&line)?;
            left -= 1;
            told = true;
        }
    }
    out.flush()?;
    if !told {
        say_none(store.as_ref(), context).await?;
    }
    Ok(())
}

/// Says whether there is nothing, or nothing of what was asked for.
async fn say_none(store: &dyn SessionStore, context: &Context) -> Result<(), Failure> {
    let any = ListQuery { limit: Some(1), ..ListQuery::default() };
    let none = store.list(&any, &Cancel::never()).await?.entries.is_empty();
    let place = store::described(&context.settings);
    if none {
        eprintln!("no sessions in {place}");
    } else {
        eprintln!("no sessions match, of those in {place}");
    }
    Ok(())
}

fn state_named(name: &str) -> Result<SessionState, Failure> {
    let states =
        [SessionState::Ok, SessionState::Damaged, SessionState::Newer, SessionState::Foreign];
    states.into_iter().find(|state| state.as_str() == name).ok_or_else(|| {
        Failure::usage(format!("a state is ok, damaged, newer or foreign, not `{name}`"))
    })
}

/// What only the events of a session tell.
#[derive(Debug, Default)]
struct Hints {
    events: Option<u64>,
    title: Option<String>,
    /// The time of the last event.
    last_event_at: Option<i64>,
    /// Whether nothing was said yet, and when a person last wrote; not blank when that is not known.
    blank: bool,
    last_prompt_at: Option<i64>,
    /// Why the events cannot be read, although the header can.
    problem: Option<(SessionState, String)>,
}

async fn hints(store: &dyn SessionStore, entry: &SessionEntry, unread: &mut u64) -> Hints {
    let Some(stat) = entry.stat.as_ref().filter(|_| entry.state == SessionState::Ok) else {
        return Hints::default();
    };
    let known = Hints::known(stat);
    // Without a title, what was first said is shown, and only reading tells.
    if known.title.is_some() {
        return known;
    }
    let Some(rest) = unread.checked_sub(stat.size_bytes.unwrap_or_default()) else {
        return known;
    };
    *unread = rest;
    let handle = match store.open(&entry.id, Access::Read, &Cancel::never()).await {
        Ok(handle) => handle,
        Err(error) => return Hints::unreadable(error.kind(), &error),
    };
    let events = match handle.read(EventRange::ALL, &Cancel::never()).await {
        Ok(events) => events,
        Err(error) => return Hints::unreadable(error.kind(), &error),
    };
    let mut fold = Fold::new(&entry.id);
    for event in &events {
        fold.push(event);
    }
    let blank = Blank::of(&events);
    Hints {
        events: Some(events.len() as u64),
        title: fold.headline().map(str::to_owned),
        last_event_at: events.last().map(Event::time),
        blank: blank.blank,
        last_prompt_at: blank.last_prompt_at,
        problem: None,
    }
}

impl Hints {
    /// What the store knows without reading the session.
    fn known(stat: &SessionStat) -> Self {
        let hints = stat.hints.as_ref();
        Self {
            events: stat.event_count.or(hints.map(|hints| hints.event_count)),
            title: hints.and_then(|hints| hints.title.clone()),
            last_event_at: hints.and_then(|hints| hints.last_event_at),
            blank: false,
            last_prompt_at: hints.and_then(|hints| hints.last_prompt_at),
            problem: None,
        }
    }

    fn unreadable(kind: &str, error: &dyn std::fmt::Display) -> Self {
        // For other reasons it is out of reach, or gone since it was listed.
        let problem = state_of_unreadable(kind).map(|state| (state, error.to_string()));
        Self { problem, ..Self::default() }
    }
}

/// The state to show, and why it is another one than `ok`.
fn state_of<'a>(entry: &'a SessionEntry, hints: &'a Hints) -> (SessionState, Option<&'a String>) {
    match &hints.problem {
        Some((state, reason)) => (*state, Some(reason)),
        None => (entry.state, entry.reason.as_ref()),
    }
}

fn text_line(entry: &SessionEntry, hints: &Hints) -> String {
    let stat = entry.stat.as_ref();
    let updated = updated_at(entry, hints).0.map_or("-".to_owned(), local_time);
    let events = hints.events.map_or("-".to_owned(), |count| count.to_string());
    let size = stat.and_then(|stat| stat.size_bytes).map_or("-".to_owned(), human_size);
    let (state, reason) = state_of(entry, hints);
    let said = hints.title.as_ref().or(reason).map_or("", |said| said.lines().next().unwrap_or(""));
    let (id, said) = (printable(entry.id.as_str()), printable(&shortened(said)));
    row(&id.replace('\n', "␊"), &updated, &events, &size, state.as_str(), &said)
}

fn row(id: &str, updated: &str, events: &str, size: &str, state: &str, title: &str) -> String {
    let row = format!("{id:<36}  {updated:<16}  {events:>7}  {size:>9}  {state:<7}  {title}");
    row.trim_end().to_owned()
}

/// As much of a title or a reason as a line has room for; `--json` has all of it.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default().trim_end()),
        None => text.to_owned(),
    }
}

/// When the session last changed, and whether that is only the file's time, which copying a store
/// changes.
fn updated_at(entry: &SessionEntry, hints: &Hints) -> (Option<i64>, bool) {
    if hints.last_event_at.is_some() {
        return (hints.last_event_at, false);
    }
    let modified = entry.stat.as_ref().and_then(|stat| stat.modified_at);
    (modified, modified.is_some())
}

fn json_line(entry: &SessionEntry, hints: &Hints) -> String {
    let stat = entry.stat.as_ref();
    let (state, reason) = state_of(entry, hints);
    let (updated_at, estimated) = updated_at(entry, hints);
    let mut line = json!({
        "id": entry.id.as_str(),
        "source": "store",
        "title": hints.title,
        "cwd": stat.and_then(|stat| stat.header.cwd.as_deref()),
        "createdAt": stat.map(|stat| stat.header.created_at),
        "updatedAt": updated_at,
        "updatedAtEstimated": estimated,
        "lastPromptAt": hints.last_prompt_at,
        "blank": hints.blank,
        "eventCount": hints.events,
        "sizeBytes": stat.and_then(|stat| stat.size_bytes),
        "state": state.as_str(),
    });
    if let (Some(reason), Some(members)) = (reason, line.as_object_mut()) {
        members.insert("reason".to_owned(), reason.clone().into());
    }
    line.to_string()
}

/// A time for people, in their zone, to the minute.
pub(crate) fn local_time(milliseconds: i64) -> String {
    Timestamp::from_millisecond(milliseconds).map_or("-".to_owned(), |time| {
        time.to_zoned_datetime(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
    })
}

/// A size in the unit that leaves one to three digits before the point.
pub(crate) fn human_size(bytes: u64) -> String {
    let mut unit = 0;
    let mut scaled = bytes;
    let mut tenths = 0;
    while scaled >= 1000 && unit < 4 {
        tenths = scaled % 1000 / 100;
        scaled /= 1000;
        unit += 1;
    }
    let name = ["B", "kB", "MB", "GB", "TB"].get(unit).copied().unwrap_or("TB");
    if unit == 0 { format!("{scaled} {name}") } else { format!("{scaled}.{tenths} {name}") }
}

#[cfg(test)]
mod tests {
    use super::human_size;

    #[test]
    fn sizes_are_readable() {
        let sizes = [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (13_779, "13.7 kB")];
        for (bytes, readable) in sizes {
            assert_eq!(human_size(bytes), readable);
        }
        assert_eq!(human_size(u64::MAX), "18446744.0 TB");
    }
}
