//! Telling what is wrong with a log, all of it.
//!
//! A reader stops at the first thing that is wrong. Here reading goes on behind it: at the next
//! frame that unpacks, or the next line. What a reader would say comes out of the same pass, since
//! both look at the same bytes with the same rules; a test compares the two on damaged logs of
//! every kind.
//!
//! Memory is bounded by the longest frame or line, however long the log is: of what was read only
//! the places and the seqs are kept.
//!
//! | module | what it does |
//! |---|---|
//! | `places` | everything of a session that is in a root |
//! | `inspection` | the state of reading one log; records, events and what is wrong with them |
//! | `frames`, `lines` | the two encodings: what readers accept, and going on behind what they do not |
//! | `resync` | the next good frame, lost sectors |
//! | `tracks` | which records continue which; forks |
//! | `replay` | reading chosen parts again, to compare branches and to save events |
//! | `save` | what can be saved |

mod frames;
mod inspection;
mod lines;
mod places;
mod replay;
mod resync;
mod save;
mod tracks;

use std::{io, thread, time::Duration};

use turnkeep_log::{Event, Seq, SessionId};

pub(crate) use self::save::{SaveRequest, save};
use self::{
    inspection::{Inspected, Inspection, Request, Stopped},
    replay::Replay,
    tracks::Stretch,
};
use super::{
    discover::is_in_place,
    failure::{LogFailure, Subject},
    fs::{File, OpenMode},
    layout::SessionDir,
    root::Root,
    writer::Registry,
};
use crate::{
    error::Cancelled,
    seam::Cancel,
    verify::{Finding, FindingKind, LogBranch, Progress, Severity, Verification},
};

/// How often a log is read that changes meanwhile.
const ATTEMPTS: usize = 3;

/// How long a writer is given to end its append.
const MOMENT: Duration = Duration::from_millis(50);

/// Verifies a session; `None` when there is nothing of it.
pub(crate) fn verify(
    root: &Root,
    registry: &Registry,
    id: &SessionId,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<Option<Verification>, LogFailure> {
    let Some(places) = places::find(root, id)? else { return Ok(None) };
    let mut verification = Verification { path: places.path(), ..Verification::of(id) };
    let mut elsewhere = Vec::new();
    let mut is_first = true;
    for (dir, encoding) in &places.logs {
        let request = Request { root, id, encoding: *encoding, progress, cancel };
        let path = dir.log(*encoding);
        let looked = look(&request, registry, dir)?;
        let mut found = match looked {
            Looked::Gone => continue,
            Looked::Unreadable(error) => {
                let message = format!("it cannot be read: {error}");
                let mut of = Verification { refused: Some("io"), ..Verification::default() };
                let kind = FindingKind::Unreadable;
                of.findings.push(Finding::new(kind, Severity::Unreadable, message));
                of
            }
            Looked::Found(inspected) => {
                let active = is_locked(root, dir) || inspected.1;
                let mut of = report(&request, dir, inspected.0)?;
                of.writer_active = active;
                of
            }
        };
        if places.logs.len() > 1 {
            for finding in &mut found.findings {
                finding.path.get_or_insert_with(|| path.clone());
            }
        }
        if std::mem::take(&mut is_first) {
            found.id = verification.id.take();
            found.path = verification.path.take();
            verification = found;
        } else {
            elsewhere.append(&mut found.findings);
        }
    }
    verification.findings.extend(elsewhere);
    verification.findings.splice(0..0, places.findings);
    verification.refused = places.refused.or(verification.refused);
    // Everything that was there is gone.
    let nothing = is_first && verification.findings.is_empty();
    Ok((!nothing).then_some(verification))
}

/// What came of reading a log.
enum Looked {
    Gone,
    Unreadable(io::Error),
    /// What is in it, and whether a writer in this store is about to add to it.
    Found((Box<Inspected>, bool)),
}

/// Reads a log, and once more when it may be only an append under way that makes it look wrong.
fn look(
    request: &Request<'_>,
    registry: &Registry,
    dir: &SessionDir,
) -> Result<Looked, LogFailure> {
    let path = dir.log(request.encoding);
    let mut attempt = 1;
    loop {
        let acknowledged = registry.acknowledged(request.id);
        let opened = open(request.root, &path).and_then(|file| Ok((file.stat()?, file)));
        let (stat, file) = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Looked::Gone),
            Err(error) => return Ok(Looked::Unreadable(error)),
        };
        let acknowledged =
            acknowledged.map(|live| live.acknowledged).filter(|known| known.file.same_file(&stat));
        let end = acknowledged.map_or(stat.size, |known| known.end.min(stat.size));
        let inspected = match Inspection::run(*request, &*file, stat, end) {
            Ok(inspected) => inspected,
            Err(Stopped::Cancelled) => return Err(cancelled("verify")),
            Err(Stopped::Io(error)) => return Ok(Looked::Unreadable(error)),
        };
        let intact = inspected.findings.len() == 0;
        let settled = file.stat().is_ok_and(|now| now == stat);
        // Bytes of someone else's append may have been there without their end.
        let under_way = !settled || (attempt == 1 && is_locked(request.root, dir));
        if intact || acknowledged.is_some() || !under_way || attempt == ATTEMPTS {
            let adding = acknowledged.is_some();
            return Ok(Looked::Found((Box::new(inspected), adding)));
        }
        attempt += 1;
        thread::sleep(MOMENT);
    }
}

fn open(root: &Root, path: &std::path::Path) -> io::Result<Box<dyn File>> {
    root.fs.open(path, OpenMode::Read)
}

/// Whether someone holds the lock of a session, as far as can be told without touching it.
fn is_locked(root: &Root, dir: &SessionDir) -> bool {
    matches!(root.fs.is_locked(&dir.lock()), Ok(Some(true)))
}

fn cancelled(operation: &'static str) -> LogFailure {
    LogFailure::Cancelled(Cancelled { operation })
}

/// What an inspection found, for people.
fn report(
    request: &Request<'_>,
    dir: &SessionDir,
    inspected: Box<Inspected>,
) -> Result<Verification, LogFailure> {
    let Inspected { header, mut findings, mut refused, tracks, .. } = *inspected;
    let root = request.root;
    if let Some(header) = header.filter(|header| header.id == *request.id) {
        // A log of the other encoding is looked for in the same directory.
        let place = is_in_place(root, &header, dir);
        let wrong = match place {
            Ok(true) => None,
            Ok(false) => {
                let problem = "its header belongs to another directory".to_owned();
                Some((FindingKind::WrongPlace, Severity::Damaged, "corrupt", problem))
            }
            Err(error) => {
                let problem = format!("where it belongs cannot be looked at: {error}");
                Some((FindingKind::Unreadable, Severity::Unreadable, "io", problem))
            }
        };
        // Before its events, a reader looks at its place.
        if let Some((kind, severity, error, problem)) = wrong {
            findings.add(Finding::new(kind, severity, problem).at(0));
            refused = Some(error);
        }
    }
    let path = dir.log(request.encoding);
    let subject = Subject { id: request.id, path: &path };
    let parted: Vec<usize> = tracks.parted().collect();
    let mut branches = Vec::new();
    if !parted.is_empty() {
        let file = open(root, &path).map_err(|source| subject.io("open", source))?;
        let reading = Reading { request, file: &*file, end: inspected.end };
        branches = reading.branches(&tracks, &parted);
        for finding in findings.iter_mut().filter(|finding| finding.kind == FindingKind::Fork) {
            let again = branches.iter().find(|branch| {
                branch.offset == finding.offset && Some(branch.first) == finding.seq
            });
            match again {
                Some(branch) if branch.differs_at.is_none() => {
                    finding.kind = FindingKind::SeqDuplicate;
                    let (first, last) = (branch.first, branch.end.0.saturating_sub(1));
                    finding.message =
                        format!("events {first} to {last} are here again, with nothing changed");
                }
                Some(branch) => {
                    let (first, last) = (branch.first, branch.end.0.saturating_sub(1));
                    let differs = branch.differs_at.unwrap_or(first);
                    finding.message = format!(
                        "another writer went on from event {first}: events {first} to {last} are \
                         here again, and differ from event {differs} on"
                    );
                }
                None => {}
            }
        }
        branches.retain(|branch| branch.offset.is_some());
    }
    let (findings, omitted, found) = findings.finish();
    Ok(Verification {
        size_bytes: Some(inspected.end),
        events: inspected.events,
        found,
        refused,
        findings,
        omitted,
        branches,
        ..Verification::default()
    })
}

/// Reads parts of a log again.
struct Reading<'a> {
    request: &'a Request<'a>,
    file: &'a dyn File,
    end: u64,
}

impl Reading<'_> {
    fn replay(&self, stretches: Vec<Stretch>) -> io::Result<Replay<'_>> {
        let max = self.request.root.max_frame_bytes;
        Replay::new(self.file, self.end, self.request.encoding, max, stretches)
    }

    /// What each of several writers wrote, those first that were there first.
    fn branches(&self, tracks: &tracks::Tracks, parted: &[usize]) -> Vec<LogBranch> {
        let mut branches: Vec<LogBranch> = Vec::new();
        for at in parted {
            let Some(track) = tracks.get(*at) else { continue };
            let Some(parent) = track.parent else { continue };
            let first = track.seqs.start;
            let was_there = self.compare(&tracks.path(parent), &tracks.path(*at), first);
            let Compared { older, newer, differs_at } = was_there.unwrap_or_default();
            let end = tracks.get(parent).map_or(first, |parent| parent.seqs.end);
            let last = tracks.get(parent).and_then(|track| track.times).map(|times| times.1);
            let known = branches.iter().any(|branch| {
                branch.first == Seq(first) && branch.offset == older.map(|older| older.0)
            });
            if !known {
                branches.push(LogBranch {
                    first: Seq(first),
                    end: Seq(end),
                    offset: older.map(|older| older.0),
                    first_time: older.map(|older| older.1),
                    last_time: last,
                    differs_at: None,
                });
            }
            branches.push(LogBranch {
                first: Seq(first),
                end: Seq(track.seqs.end),
                offset: newer.map(|newer| newer.0),
                first_time: newer.map(|newer| newer.1),
                last_time: track.times.map(|times| times.1),
                differs_at: differs_at.map(Seq),
            });
        }
        branches
    }

    /// Compares two ways to go on from an event.
    fn compare(&self, older: &[Stretch], newer: &[Stretch], first: u64) -> io::Result<Compared> {
        let mut compared = Compared::default();
        let mut older = Events::new(self.replay(from(older, first))?);
        let mut newer = Events::new(self.replay(from(newer, first))?);
        loop {
            let (Some(left), Some(right)) = (older.next()?, newer.next()?) else {
                return Ok(compared);
            };
            compared.older.get_or_insert((left.0, left.1.time()));
            compared.newer.get_or_insert((right.0, right.1.time()));
            if left.1.text() != right.1.text() {
                compared.differs_at = Some(left.1.seq().0);
                return Ok(compared);
            }
        }
    }
}

/// Where two branches begin, and the times of their first events; the first event that differs.
#[derive(Debug, Default)]
struct Compared {
    older: Option<(u64, i64)>,
    newer: Option<(u64, i64)>,
    differs_at: Option<u64>,
}

/// The part of a path from an event on.
fn from(path: &[Stretch], first: u64) -> Vec<Stretch> {
    let mut path: Vec<Stretch> =
        path.iter().filter(|stretch| stretch.seqs.end > first).cloned().collect();
    if let Some(stretch) = path.first_mut() {
        stretch.seqs.start = stretch.seqs.start.max(first);
    }
    path
}

/// The events of a replay, one by one, each with where its frame or lines begin.
struct Events<'a> {
    replay: Replay<'a>,
    at: u64,
    part: std::vec::IntoIter<Event>,
}

impl<'a> Events<'a> {
    fn new(replay: Replay<'a>) -> Self {
        Self { replay, at: 0, part: Vec::new().into_iter() }
    }

    fn next(&mut self) -> io::Result<Option<(u64, Event)>> {
        loop {
            if let Some(event) = self.part.next() {
                return Ok(Some((self.at, event)));
            }
            let Some((at, events)) = self.replay.next()? else { return Ok(None) };
            self.at = at;
            self.part = events.into_iter();
        }
    }
}
