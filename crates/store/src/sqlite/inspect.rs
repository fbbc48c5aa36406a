//! Telling what is wrong with a log in a database, and reading out what is not.
//!
//! Rows are only ever inserted in order, so that there are no torn tails and no forks here: what is
//! wrong is the database file, or what someone else did to its rows.

use rusqlite::{Connection, ErrorCode, params};
use turnkeep_log::{
    Event, RecordScan, Seq, SessionHeader, SessionId, Text, Vocabulary, gate,
    records::{Problem, decode},
};

use super::{
    database::Database,
    fault::Fault,
    sessions::{self, Session, count},
};
use crate::{
    error::{NotFound, NothingToSave, SalvageError},
    jsonl::frames::{DecodeError, Decoder, FrameScan, scan_frame},
    recover::{Feed, SalvageStart},
    seam::Cancel,
    shell::{check, failure::LogFailure},
    verify::{Finding, FindingKind, Findings, Progress, Severity, Verification, finding_of},
};

/// Which session, of which database, for whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) database: &'a Database,
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) max_frame_bytes: u64,
    pub(super) id: &'a SessionId,
    pub(super) progress: &'a Progress,
    pub(super) cancel: &'a Cancel,
}

/// Lets SQLite check the whole file, and that each row belongs to something.
pub(super) fn verify_storage(database: &Database) -> Result<Verification, Fault> {
    let mut verification = Verification::default();
    let Some(link) = database.lend()? else { return Ok(verification) };
    let mut problems = Vec::new();
    for pragma in ["integrity_check", "foreign_key_check"] {
        match problems_of(&link, pragma) {
            Ok(found) => problems.extend(found),
            Err(error) if is_damage(&error) => problems.push(error.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
    verification.findings = problems
        .into_iter()
        .map(|problem| Finding::new(FindingKind::BadDatabase, Severity::Damaged, problem))
        .collect();
    Ok(verification)
}

fn problems_of(connection: &Connection, pragma: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("PRAGMA {pragma}"))?;
    let mut rows = statement.query([])?;
    let mut problems = Vec::new();
    while let Some(row) = rows.next()? {
        let first: String = row.get(0)?;
        match pragma {
            "integrity_check" if first == "ok" => {}
            "integrity_check" => problems.push(first),
            _ => problems.push(format!("a row of `{first}` belongs to no session")),
        }
    }
    Ok(problems)
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// One row of a log.
struct Frame {
    /// Which it is, counted from 0.
    number: u64,
    seq: u64,
    events: u64,
    text: Result<Text, DecodeError>,
}

impl Request<'_> {
    /// Verifies a session; `None` when there is none.
    pub(super) fn verify(&self) -> Result<Option<Verification>, LogFailure> {
        let cannot_read = |fault: Fault| fault.of(self.id, "read the database");
        let Some(link) = self.database.lend().map_err(cannot_read)? else { return Ok(None) };
        let snapshot = link.snapshot().map_err(|error| cannot_read(error.into()))?;
        let session = match sessions::find(&snapshot, self.id) {
            Ok(Some(session)) => session,
            Ok(None) => return Ok(None),
            Err(error) if is_damage(&error) => {
                let mut verification = Verification::of(self.id);
                verification.refused = Some("corrupt");
                verification.findings.push(damaged(&error));
                return Ok(Some(verification));
            }
            Err(error) => return Err(cannot_read(error.into())),
        };
        self.inspect(&snapshot, &session).map(Some)
    }

    fn inspect(
        &self,
        snapshot: &Connection,
        session: &Session,
    ) -> Result<Verification, LogFailure> {
        let mut rows = Rows::new(self.id, self.vocabulary);
        if let Err(error) = SessionHeader::parse(&session.header, Some(self.id)) {
            let (kind, severity) = match error.kind() {
                "format_unsupported" => (FindingKind::Newer, Severity::Unsupported),
                _ => (FindingKind::BadHeader, Severity::Damaged),
            };
            rows.findings.add(Finding::new(kind, severity, error.to_string()));
            rows.refuse(error.kind());
        }
        let walked = self.each_frame(snapshot, session, &mut |frame| {
            self.progress.tell(frame.seq, session.events);
            rows.take(&frame, self.max_frame_bytes);
            true
        });
        match walked {
            Ok(()) => {}
            Err(Walk::Sqlite(error)) if is_damage(&error) => {
                rows.findings.add(damaged(&error));
                rows.refuse("corrupt");
            }
            Err(failure) => return Err(self.failed(failure)),
        }
        let events = rows.scan.next_seq().0;
        let refused = rows.refused.or(rows.gate);
        let (findings, omitted, found) = rows.findings.finish();
        Ok(Verification { events, found, refused, findings, omitted, ..Verification::of(self.id) })
    }

    /// Reads out the events that follow each other, as far as readers take them.
    pub(super) fn save(&self, feed: &mut Feed) -> Result<(), SalvageError> {
        let cannot_read = |fault: Fault| fault.of(self.id, "read the database");
        let not_found = || NotFound { id: self.id.clone() };
        let link = self.database.lend().map_err(cannot_read)?.ok_or_else(not_found)?;
        let snapshot = link.snapshot().map_err(|error| cannot_read(error.into()))?;
        let session = sessions::find(&snapshot, self.id)
            .map_err(|error| cannot_read(error.into()))?
            .ok_or_else(not_found)?;
        let header = SessionHeader::parse(&session.header, Some(self.id));
        if let Err(error) = &header
            && error.kind() == "format_unsupported"
        {
            let log = crate::shell::failure::StoredLog { id: self.id, path: None };
            return Err(log.header(error).into());
        }
        let verification = self.inspect(&snapshot, &session)?;

        let (mut next, mut first_time, mut stopped) = (0, None, None);
        self.chain(&snapshot, &session, &mut |events| {
            for event in events {
                if let Err(error) = gate::check_event(self.id, &event, self.vocabulary) {
                    let what = finding_of(&error, &event).message;
                    stopped = Some(format!("readers refuse event {}: {what}", event.seq()));
                    return false;
                }
                first_time.get_or_insert(event.time());
                next = event.seq().0 + 1;
            }
            true
        })?;
        if next == 0 && verification.refused.is_some() {
            let reason = stopped.unwrap_or_else(|| "its first event is gone".to_owned());
            return Err(NothingToSave { id: self.id.clone(), reason }.into());
        }
        let left = verification.found > next;
        feed.begin(SalvageStart {
            header: header.ok(),
            events: next,
            salvaged: next.saturating_sub(verification.events),
            stopped: stopped
                .or_else(|| left.then(|| format!("event {next} is gone, and a log has no holes"))),
            first_time,
            verification,
        });
        self.chain(&snapshot, &session, &mut |mut events| {
            events.retain(|event| event.seq().0 < next);
            !events.is_empty() && feed.put(events)
        })
    }

    /// Gives out the events that follow each other from the first on, until no more are wanted.
    fn chain(
        &self,
        snapshot: &Connection,
        session: &Session,
        take: &mut dyn FnMut(Vec<Event>) -> bool,
    ) -> Result<(), SalvageError> {
        let mut next = 0;
        let walked = self.each_frame(snapshot, session, &mut |frame| {
            let Ok(text) = frame.text else { return true };
            let mut events = Vec::new();
            for event in events_of(&text) {
                if event.seq().0 == next {
                    next += 1;
                    events.push(event);
                }
            }
            events.is_empty() || take(events)
        });
        match walked {
            // What can be read before the damage is what can be saved.
            Err(Walk::Sqlite(error)) if is_damage(&error) => Ok(()),
            Err(failure) => Err(self.failed(failure).into()),
            Ok(()) => Ok(()),
        }
    }

    fn each_frame(
        &self,
        snapshot: &Connection,
        session: &Session,
        take: &mut dyn FnMut(Frame) -> bool,
    ) -> Result<(), Walk> {
        let mut decoder =
            Decoder::new(self.max_frame_bytes).map_err(|error| Walk::Fault(error.into()))?;
        let mut statement = snapshot.prepare_cached(
            "SELECT seq, events, frame FROM frames WHERE session = ?1 ORDER BY seq",
        )?;
        let mut rows = statement.query(params![session.key])?;
        let mut number = 0;
        while let Some(row) = rows.next()? {
            check(self.cancel, "verify").map_err(|cancelled| Walk::Log(cancelled.into()))?;
            let bytes = row.get_ref(2)?;
            let text = match bytes.as_blob() {
                Ok(bytes) => match scan_frame(bytes) {
                    FrameScan::Complete(frame) if frame.len == bytes.len() => {
                        decoder.decode(bytes, frame)
                    }
                    _ => Err(DecodeError::Invalid("it is not exactly one frame")),
                },
                Err(_) => Err(DecodeError::Invalid("it is no blob")),
            };
            if !take(Frame { number, seq: count(row, 0)?, events: count(row, 1)?, text }) {
                return Ok(());
            }
            number += 1;
        }
        Ok(())
    }

    fn failed(&self, failure: Walk) -> LogFailure {
        match failure {
            Walk::Sqlite(error) => Fault::from(error).of(self.id, "read the database"),
            Walk::Fault(fault) => fault.of(self.id, "read the database"),
            Walk::Log(failure) => failure,
        }
    }
}

/// Why rows could not be read to the end.
enum Walk {
    Sqlite(rusqlite::Error),
    Fault(Fault),
    Log(LogFailure),
}

impl From<rusqlite::Error> for Walk {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// The rows of a log, one after the other.
struct Rows<'a> {
    id: &'a SessionId,
    vocabulary: &'a Vocabulary,
    scan: RecordScan,
    /// The seq that would come next, after a reader has stopped.
    next: u64,
    stopped: bool,
    /// The finding about the row before, if it may have held events.
    hole: Option<usize>,
    findings: Findings,
    refused: Option<&'static str>,
    gate: Option<&'static str>,
}

impl<'a> Rows<'a> {
    fn new(id: &'a SessionId, vocabulary: &'a Vocabulary) -> Self {
        Self {
            id,
            vocabulary,
            scan: RecordScan::new(Seq(0)),
            next: 0,
            stopped: false,
            hole: None,
            findings: Findings::default(),
            refused: None,
            gate: None,
        }
    }

    fn refuse(&mut self, kind: &'static str) {
        self.refused.get_or_insert(kind);
    }

    fn stop(&mut self, frame: &Frame, kind: FindingKind, severity: Severity, message: String) {
        let finding = Finding::new(kind, severity, message).in_frame(Some(frame.number));
        self.hole = self.findings.add(finding.about(Seq(frame.seq)));
        self.refuse(match severity {
            Severity::Unsupported => "format_unsupported",
            Severity::Unreadable => "io",
            _ => "corrupt",
        });
        self.stopped = true;
    }

    fn take(&mut self, frame: &Frame, max_frame_bytes: u64) {
        let seq = frame.seq;
        let text = match &frame.text {
            Ok(text) => text,
            Err(DecodeError::Invalid(problem)) => {
                let message = format!("the frame of event {seq} failed validation ({problem})");
                return self.stop(frame, FindingKind::BadFrame, Severity::Damaged, message);
            }
            Err(DecodeError::TooLarge) => {
                let message = format!(
                    "the frame of event {seq} unpacks to more than {max_frame_bytes} bytes"
                );
                return self.stop(frame, FindingKind::TooLarge, Severity::Unsupported, message);
            }
            Err(DecodeError::NoMemory) => {
                let message = format!("there is no memory to unpack the frame of event {seq}");
                return self.stop(frame, FindingKind::Unreadable, Severity::Unreadable, message);
            }
        };
        if self.stopped {
            return self.take_alone(frame, text);
        }
        self.scan.feed(text);
        let events = self.scan.take_events();
        for event in &events {
            self.check(frame, event);
        }
        let next = self.scan.next_seq().0;
        self.next = next;
        match self.scan.problem().cloned() {
            Some(problem @ Problem::TooLong { .. }) => {
                self.findings.read(events.len() as u64);
                let message = problem.to_string();
                self.stop(frame, FindingKind::TooLarge, Severity::Unsupported, message);
            }
            Some(problem) => {
                let kind = match problem {
                    Problem::SeqGap { .. } => FindingKind::SeqGap,
                    _ => FindingKind::BadRecord,
                };
                let lost = match problem {
                    Problem::SeqGap { expected, got, .. } if got > expected => {
                        Some(expected.0..got.0)
                    }
                    _ => None,
                };
                self.findings.read(events.len() as u64);
                self.stop(frame, kind, Severity::Damaged, problem.to_string());
                if let Some(finding) = self.hole.and_then(|hole| self.findings.get_mut(hole)) {
                    finding.lost = lost;
                }
                self.hole = None;
                let rest = events_of(text).len().saturating_sub(events.len());
                self.findings.read(rest as u64);
                self.next = events_of(text).last().map_or(next, |event| event.seq().0 + 1);
            }
            None => {
                self.findings.read(events.len() as u64);
                let end = seq.saturating_add(frame.events);
                if next != end {
                    let message = format!(
                        "a frame says that it ends before event {end}, and ends before event {next}"
                    );
                    self.stop(frame, FindingKind::BadFrame, Severity::Damaged, message);
                }
            }
        }
    }

    /// Takes a row after one that a reader stops at.
    fn take_alone(&mut self, frame: &Frame, text: &Text) {
        let events = events_of(text);
        let Some((first, last)) = events.first().zip(events.last()) else { return };
        let (first, last) = (first.seq().0, last.seq().0);
        if first != self.next {
            let gone = (first > self.next).then_some(self.next..first);
            let hole = self.hole.take();
            if let Some(hole) = hole.and_then(|hole| self.findings.get_mut(hole)) {
                hole.lost = gone;
            } else {
                let (line, expected) = (1, Seq(self.next));
                let problem = Problem::SeqGap { line, expected, got: Seq(first) };
                let finding =
                    Finding::new(FindingKind::SeqGap, Severity::Damaged, problem.to_string());
                let mut finding = finding.in_frame(Some(frame.number)).about(Seq(first));
                finding.lost = gone;
                self.findings.add(finding);
            }
        }
        self.hole = None;
        self.next = last + 1;
        self.findings.read(events.len() as u64);
    }

    fn check(&mut self, frame: &Frame, event: &Event) {
        if let Err(error) = gate::check_event(self.id, event, self.vocabulary) {
            let finding = finding_of(&error, event).in_frame(Some(frame.number));
            if self.gate.is_none() || finding.severity == Severity::Unsupported {
                self.gate = Some(error.kind());
            }
            self.findings.add(finding);
        }
    }
}

fn events_of(text: &Text) -> Vec<Event> {
    let mut start = 0;
    let mut events = Vec::new();
    for feed in memchr::memchr_iter(b'\n', text.as_bytes()) {
        events.extend(decode(&text.slice(start..feed)).into_iter().flatten());
        start = feed + 1;
    }
    events
}

fn damaged(error: &rusqlite::Error) -> Finding {
    let message = format!("the database is damaged: {error}");
    Finding::new(FindingKind::BadDatabase, Severity::Damaged, message)
}
