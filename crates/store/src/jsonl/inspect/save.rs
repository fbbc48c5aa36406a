//! What can be saved of a log.

use std::io;

use turnkeep_log::{Event, Seq, SessionId, gate};

use super::{
    Inspected, Looked, Reading, Request, look, open, report,
    tracks::{Stretch, Tracks},
};
use crate::{
    error::{Forked, FormatUnsupported, LogChanged, NotFound, NothingToSave, SalvageError},
    jsonl::{discover, failure::Subject, fs::File, root::Root, writer::Registry},
    recover::{Branch, Feed, SalvageStart},
    seam::Cancel,
    verify::{Progress, Verification, finding_of},
};

/// What is to be saved, and for whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SaveRequest<'a> {
    pub(crate) id: &'a SessionId,
    pub(crate) branch: Option<Branch>,
    pub(crate) progress: &'a Progress,
    pub(crate) cancel: &'a Cancel,
}

/// Reads out what can be saved of a session.
pub(crate) fn save(
    root: &Root,
    registry: &Registry,
    wanted: &SaveRequest<'_>,
    feed: &mut Feed,
) -> Result<(), SalvageError> {
    let SaveRequest { id, branch, progress, cancel } = *wanted;
    // Of two sessions of one id nobody can say which is meant; another format is not ours to read.
    let dir = discover::find(root, id)?.ok_or_else(|| NotFound { id: id.clone() })?;
    let request = Request { root, id, encoding: root.encoding, progress, cancel };
    let path = dir.log(root.encoding);
    let subject = Subject { id, path: &path };
    let inspected = match look(&request, registry, &dir)? {
        Looked::Gone => return Err(NotFound { id: id.clone() }.into()),
        Looked::Unreadable(error) => return Err(subject.io("read", error).into()),
        Looked::Found((inspected, _)) => inspected,
    };
    let file = open(root, &path).map_err(|source| subject.io("open", source))?;
    let changed = || LogChanged { id: id.clone() };
    let looked_at = inspected.file;
    if !file.stat().is_ok_and(|now| now == looked_at) {
        return Err(changed().into());
    }
    let saving = Saving { request, file: &*file, subject };
    let (start, stretches) = saving.plan(*inspected, &dir, branch)?;
    let events = start.events;
    feed.begin(start);
    let given =
        saving.replay(stretches, &mut |event| event.seq().0 < events, |part| feed.put(part));
    given.map_err(|error| saving.failed(error))?;
    // Whoever cut or replaced it meanwhile may have done so before the first of our bytes.
    if file.stat().is_ok_and(|now| now == looked_at) { Ok(()) } else { Err(changed().into()) }
}

struct Saving<'a> {
    request: Request<'a>,
    file: &'a dyn File,
    subject: Subject<'a>,
}

impl Saving<'_> {
    /// Decides what is saved.
    fn plan(
        &self,
        inspected: Inspected,
        dir: &crate::jsonl::layout::SessionDir,
        branch: Option<Branch>,
    ) -> Result<(SalvageStart, Vec<Stretch>), SalvageError> {
        let id = self.request.id;
        if inspected.foreign {
            let message =
                format!("session \"{id}\" is of another log format; its own build reads it");
            let path = Some(self.subject.path.to_owned());
            return Err(FormatUnsupported { id: id.clone(), message, path }.into());
        }
        let header = inspected.header.clone();
        let (tracks, torn) = (inspected.tracks.clone(), inspected.torn.clone());
        let prefix = inspected.events;
        let verification = report(&self.request, dir, Box::new(inspected))?;
        let chosen = self.choose(&tracks, &verification, branch)?;
        let (stretches, _) = tracks.extended(tracks.path(chosen), &torn);
        let (events, first_time, refused) = self.check(stretches.clone())?;
        if events == 0 && verification.refused.is_some() {
            let reason = refused.unwrap_or_else(|| "its first event is gone".to_owned());
            return Err(NothingToSave { id: id.clone(), reason }.into());
        }
        let left = verification.found.saturating_sub(events);
        let stopped =
            refused.or_else(|| (left > 0).then(|| why_no_more(&tracks, &verification, events)));
        let salvaged = events.saturating_sub(prefix);
        let start = SalvageStart { header, events, salvaged, stopped, first_time, verification };
        Ok((start, stretches))
    }

    /// The track to save.
    fn choose(
        &self,
        tracks: &Tracks,
        verification: &Verification,
        branch: Option<Branch>,
    ) -> Result<usize, SalvageError> {
        let grounded: Vec<usize> = tracks.parted().filter(|at| tracks.is_grounded(*at)).collect();
        // Those that only say again what is there are no choice, unless one of them says more.
        let differs = verification.branches.iter().any(|branch| branch.differs_at.is_some());
        let length = |at: &usize| tracks.get(*at).map_or(0, |track| track.seqs.end);
        let (Some(first), Some(last)) = (grounded.first(), grounded.last()) else { return Ok(0) };
        match branch {
            _ if !differs => {
                let longest = grounded.iter().copied().max_by_key(length).unwrap_or(0);
                Ok(if length(&longest) > length(&0) { longest } else { 0 })
            }
            Some(Branch::First) => Ok(0),
            Some(Branch::Last) => Ok(*last),
            None => {
                let at = Seq(tracks.get(*first).map_or(0, |track| track.seqs.start));
                Err(Forked { id: self.request.id.clone(), at }.into())
            }
        }
    }

    /// How many of the events readers will take, the time of the first, and why there are no more.
    fn check(
        &self,
        stretches: Vec<Stretch>,
    ) -> Result<(u64, Option<i64>, Option<String>), SalvageError> {
        let (mut events, mut first_time, mut refused) = (0, None, None);
        let vocabulary = &self.request.root.vocabulary;
        let mut takes = |event: &Event| {
            if let Err(error) = gate::check_event(self.request.id, event, vocabulary) {
                let what = finding_of(&error, event).message;
                refused = Some(format!("readers refuse event {}: {what}", event.seq()));
                return false;
            }
            first_time.get_or_insert(event.time());
            events += 1;
            true
        };
        self.replay(stretches, &mut takes, |_| true).map_err(|error| self.failed(error))?;
        Ok((events, first_time, refused))
    }

    /// Reads events out until one is not taken, or nobody wants more.
    fn replay(
        &self,
        stretches: Vec<Stretch>,
        takes: &mut dyn FnMut(&Event) -> bool,
        mut put: impl FnMut(Vec<Event>) -> bool,
    ) -> io::Result<()> {
        let end = stretches.iter().map(|stretch| stretch.segment.end).max().unwrap_or(0);
        let reading = Reading { request: &self.request, file: self.file, end };
        let mut replay = reading.replay(stretches)?;
        while let Some((_, mut events)) = replay.next()? {
            if self.request.cancel.is_cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.request.progress.tell(replay.at(), end);
            let refused = events.iter().position(|event| !takes(event));
            events.truncate(refused.unwrap_or(events.len()));
            if (!events.is_empty() && !put(events)) || refused.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn failed(&self, error: io::Error) -> SalvageError {
        match error.kind() {
            io::ErrorKind::Interrupted => super::cancelled("recover").into(),
            io::ErrorKind::InvalidData => LogChanged { id: self.request.id.clone() }.into(),
            _ => self.subject.io("read", error).into(),
        }
    }
}

/// Why the events that are saved are not followed by more, although there are more.
fn why_no_more(tracks: &Tracks, verification: &Verification, events: u64) -> String {
    if tracks.parted().any(|at| tracks.is_grounded(at))
        && verification.branches.iter().any(|branch| branch.end.0 > branch.first.0)
        && verification.findings.iter().all(|finding| finding.lost.is_none())
    {
        return "the rest is of another writer, or is there twice".to_owned();
    }
    format!("event {events} is gone, and a log has no holes")
}
