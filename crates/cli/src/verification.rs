//! What was found in a log, for people and for programs, and what to do about it.

use std::fmt::Write as _;

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};
use turnkeep_log::SessionId;
use turnkeep_store::verify::{Finding, FindingKind, LogBranch, Verification};

use crate::{commands::ls::human_size, output::program, transcript::printable};

/// The lines that tell a person: one for the session, then what was found.
pub(crate) fn lines(found: &Verification) -> Vec<String> {
    let mut lines = vec![headline(found)];
    for finding in &found.findings {
        lines.extend(finding_lines(found, finding));
        lines.push(format!("    next: {}", next_step(found, finding)));
    }
    lines.extend(omitted(found));
    lines
}

/// What was found, for a person who has done something about it.
pub(crate) fn findings_lines(found: &Verification) -> Vec<String> {
    let lines = found.findings.iter().flat_map(|finding| finding_lines(found, finding));
    lines.chain(omitted(found)).collect()
}

fn omitted(found: &Verification) -> Option<String> {
    (found.omitted > 0).then(|| format!("  and {} more", found.omitted))
}

fn headline(found: &Verification) -> String {
    let name = found.id.as_ref().map_or("the store", |id| id.as_str());
    let name = printable(name).replace('\n', "␊");
    let mut line = format!("{name:<36}  {:<11}", found.verdict());
    if found.pending {
        line.push_str("  nothing stored yet");
    } else if found.id.is_some() {
        let _ = write!(line, "  {}", events(found.events));
        if found.found > found.events {
            let _ = write!(line, " in order, {} in all", found.found);
        }
        if let Some(size) = found.size_bytes {
            let _ = write!(line, ", {}", human_size(size));
        }
    }
    if found.writer_active && !found.pending {
        line.push_str(", being written");
    }
    line.trim_end().to_owned()
}

fn finding_lines(found: &Verification, finding: &Finding) -> Vec<String> {
    let mut first = format!("  {}", finding.kind.as_str());
    let place = place(finding);
    if !place.is_empty() {
        let _ = write!(first, " at {place}");
    }
    let _ = write!(first, ": {}", printable(&finding.message).replace('\n', " "));
    if finding.count > 1 {
        let _ = write!(first, " ({} in a row or of the same kind)", finding.count);
    }
    let mut lines = vec![first];
    if let Some(path) = &finding.path {
        lines.push(format!("    in {}", printable(&path.display().to_string())));
    }
    if let Some(lost) = &finding.lost {
        lines.push(match lost.end.saturating_sub(lost.start) {
            1 => format!("    lost: event {}", lost.start),
            _ => format!("    lost: events {} to {}", lost.start, lost.end.saturating_sub(1)),
        });
    }
    if found.id.is_some() {
        let (before, after) = (events(finding.before), events(finding.after));
        lines.push(format!("    readable: {before} before it, {after} behind it"));
    }
    if finding.kind == FindingKind::Fork {
        lines.extend(found.branches.iter().enumerate().map(|(at, branch)| told(at, branch)));
    }
    lines
}

fn place(finding: &Finding) -> String {
    let mut parts = Vec::new();
    if let Some(offset) = finding.offset {
        parts.push(match finding.length {
            Some(length) if length > 0 => format!("byte {offset} ({length} bytes)"),
            _ => format!("byte {offset}"),
        });
    }
    if let Some(frame) = finding.frame {
        parts.push(format!("frame {frame}"));
    }
    if let Some(line) = finding.line {
        parts.push(format!("line {line}"));
    }
    if let Some(seq) = finding.seq {
        parts.push(format!("event {seq}"));
    }
    parts.join(", ")
}

fn told(at: usize, branch: &LogBranch) -> String {
    let last = branch.end.0.saturating_sub(1);
    let mut line = format!("    branch {}: events {} to {last}", at + 1, branch.first);
    if let Some(offset) = branch.offset {
        let _ = write!(line, ", from byte {offset}");
    }
    if let (Some(first), Some(last)) = (branch.first_time, branch.last_time) {
        let _ = write!(line, ", {} to {}", time(first), time(last));
    }
    if let Some(differs) = branch.differs_at {
        let _ = write!(line, ", different from event {differs} on");
    }
    line
}

/// What to do about it.
fn next_step(found: &Verification, finding: &Finding) -> String {
    use FindingKind as Kind;
    let id = found.id.as_ref().map_or("ID", |id| id.as_str());
    let id = quoted(&printable(id));
    let program = program();
    let recover = format!("`{program} recover {id} --into NEWID`");
    let recover_as = |more: &str| format!("`{program} recover {id} --into NEWID {more}`");
    let nothing = match found.found {
        0 => format!("nothing in it can be saved; `{program} rm {id}` gives it up"),
        _ => format!(
            "the first event is gone, and nothing behind a hole is saved; `{program} rm {id}` \
             gives it up"
        ),
    };
    match finding.kind {
        Kind::TornTail | Kind::ZeroedTail | Kind::UncommittedTail if found.writer_active => {
            format!(
                "someone is writing, and this may be their append; `{program} verify {id}` again"
            )
        }
        Kind::TornTail | Kind::ZeroedTail | Kind::UncommittedTail
            if found.findings.iter().any(|finding| finding.kind == Kind::Fork) =>
        {
            "it may be the other writer's; the next append cuts it off".to_owned()
        }
        Kind::TornTail | Kind::ZeroedTail | Kind::UncommittedTail => format!(
            "an append that was interrupted leaves this, and then nothing that was acknowledged is \
             lost; a file that was cut or copied in part looks the same. The next append cuts it \
             off; {recover} saves what is in it first"
        ),
        Kind::Fork => format!("{}, or `--branch last`", recover_as("--branch first")),
        Kind::TruncatedHeader if found.found == 0 => nothing,
        Kind::BadHeader
        | Kind::BadDatabase
        | Kind::GarbageTail
        | Kind::Garbage
        | Kind::BadFrame
        | Kind::BadRecord
        | Kind::SeqGap
        | Kind::SeqDuplicate
        | Kind::WrongId
        | Kind::RetiredType
        | Kind::MalformedMessage
            if saves_nothing(found) =>
        {
            nothing
        }
        Kind::UnknownType if saves_nothing(found) => {
            "upgrade, or name the type in the `vocabulary` setting".to_owned()
        }
        Kind::TruncatedHeader | Kind::BadHeader => recover_as("--cwd DIR"),
        Kind::WrongPlace => format!("move its directory back to where it belongs, or {recover}"),
        Kind::Newer => "use the newer harness for it; nothing is to be repaired".to_owned(),
        Kind::Obsolete => "use the build that wrote it; nothing is to be repaired".to_owned(),
        Kind::OtherEncoding => {
            "move its directory into a root of its own, and name that with --store".to_owned()
        }
        Kind::TooLarge => "set max_frame_bytes higher, and verify it again".to_owned(),
        Kind::UnknownType => format!(
            "upgrade, or name the type in the `vocabulary` setting; {recover} saves what comes \
             before it"
        ),
        Kind::RetiredType | Kind::MalformedMessage => {
            format!("{recover} saves what comes before it")
        }
        Kind::DuplicateSession => "move one of the two directories out of the root".to_owned(),
        Kind::Unreadable => {
            "look at its permissions and at the disk, and verify it again".to_owned()
        }
        Kind::Unreachable => "rename or move what the message names".to_owned(),
        Kind::BadDatabase if found.id.is_none() => {
            format!(
                "copy the file first; `{program} recover ID --into NEWID` saves a session that can still \
             be read, and `sqlite3 FILE .recover` may get at rows of a file that cannot be opened"
            )
        }
        Kind::BadDatabase
        | Kind::GarbageTail
        | Kind::Garbage
        | Kind::BadFrame
        | Kind::BadRecord
        | Kind::SeqGap
        | Kind::SeqDuplicate
        | Kind::WrongId => recover,
    }
}

/// Whether a recovery would have nothing to keep: readers refuse the log, and of its events none can
/// be read, or the first one is gone, behind which nothing is kept.
fn saves_nothing(found: &Verification) -> bool {
    use FindingKind as Kind;
    let first_gone = |finding: &Finding| finding.lost.as_ref().is_some_and(|lost| lost.start == 0);
    // There may be whole records in these, which are not counted.
    let torn = |finding: &Finding| matches!(finding.kind, Kind::TornTail | Kind::UncommittedTail);
    found.id.is_some()
        && found.refused.is_some()
        && found.events == 0
        && match found.found {
            0 => !found.findings.iter().any(torn),
            _ => found.findings.iter().any(first_gone),
        }
}

/// An id as a shell takes it.
fn quoted(id: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
    if id.chars().all(plain) && !id.starts_with('-') {
        return id.to_owned();
    }
    format!("'{}'", id.replace('\'', "'\\''"))
}

fn events(count: u64) -> String {
    if count == 1 { "1 event".to_owned() } else { format!("{count} events") }
}

fn time(milliseconds: i64) -> String {
    Timestamp::from_millisecond(milliseconds).map_or("-".to_owned(), |time| {
        time.to_zoned_datetime(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
    })
}

/// The same for a program: one JSON object.
pub(crate) fn to_json(found: &Verification) -> Value {
    json!({
        "id": found.id.as_ref().map(SessionId::as_str),
        "verdict": found.verdict(),
        "events": found.events,
        "readable": found.found,
        "sizeBytes": found.size_bytes,
        "path": found.path,
        "refused": found.refused,
        "beingWritten": found.writer_active,
        "pending": found.pending,
        "findings": findings_json(found),
        "omitted": found.omitted,
        "branches": found.branches.iter().map(|branch| json!({
            "first": branch.first.0,
            "last": branch.end.0.saturating_sub(1),
            "offset": branch.offset,
            "firstTime": branch.first_time,
            "lastTime": branch.last_time,
            "differsAt": branch.differs_at.map(|seq| seq.0),
        })).collect::<Vec<_>>(),
    })
}

/// The findings as JSON.
pub(crate) fn findings_json(found: &Verification) -> Value {
    let finding = |finding: &Finding| {
        json!({
            "kind": finding.kind.as_str(),
            "severity": finding.severity.as_str(),
            "message": finding.message,
            "offset": finding.offset,
            "length": finding.length,
            "frame": finding.frame,
            "line": finding.line,
            "seq": finding.seq.map(|seq| seq.0),
            "count": finding.count,
            "lost": finding.lost.as_ref().map(|lost| json!({
                "first": lost.start,
                "last": lost.end.saturating_sub(1),
            })),
            "before": finding.before,
            "after": finding.after,
            "path": finding.path,
            "next": next_step(found, finding),
        })
    };
    found.findings.iter().map(finding).collect()
}
