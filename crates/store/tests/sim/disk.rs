//! A file system in memory that fails, is killed, and loses power, as a seed says.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use turnkeep_store::jsonl::fs::{EntryKind, FileStat, Fs};

use super::{
    bytes::{Entries, FileBytes},
    fs::SimFs,
    random::Random,
    tally::{Met, Tally},
};

const ROOT: usize = 0;

/// The open file of another program.
pub(super) const FOREIGN: u64 = 0;

/// What gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The process: what it has written stays in the system's memory.
    Kill,
    /// The machine.
    PowerCut,
}

/// When a process ends, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// With the operation so many after this one.
    pub after: u64,
    /// Or with the next one from there that is one of these.
    pub moment: Moment,
    pub stop: Stop,
}

/// With which operations a process may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Any,
    /// One that syncs something: then there is most to be lost.
    Sync,
    /// One that syncs a file.
    FileSync,
    /// One that syncs a file after a short write.
    SyncOfPieces,
}

/// Which ways there are to give a file its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    Links,
    Renames,
    Neither,
}

/// A sync that says it has been done, and has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    Data,
    All,
    Dir,
}

/// The machine's disk, whatever process runs.
#[derive(Clone)]
pub struct Disk(Arc<Mutex<State>>);

pub(super) struct State {
    pub(super) nodes: Vec<Node>,
    pub(super) random: Random,
    pub(super) tally: Tally,
    pub(super) names: Names,
    pub(super) lie: Option<Lie>,
    /// The process that runs; what others still do has no effect.
    pub(super) process: u64,
    /// How many operations there have been.
    pub(super) steps: u64,
    pub(super) stop: Option<Ending>,
    pub(super) stopped: Option<Stop>,
    /// One operation in so many fails; none when 0.
    pub(super) fault_every: usize,
    /// Nothing fails or stops.
    pub(super) calm: bool,
    /// How many writes fail for want of space.
    pub(super) full: usize,
    /// Whether there was a short write since the last sync.
    pub(super) in_pieces: bool,
    /// What someone else writes right before the next write.
    pub(super) rival: Option<Vec<u8>>,
    /// Failed syncs of logs.
    pub(super) log_syncs_failed: u64,
    pub(super) locks: BTreeMap<usize, u64>,
    pub(super) opened: u64,
    pub(super) clock: i128,
    /// Directories that were moved, and not synced at either end.
    pub(super) moves: Vec<Move>,
}

/// A directory on its way from one directory to another: it arrives and leaves in one step, as in a
/// file system with a journal.
#[derive(Clone)]
pub(super) struct Move {
    from: (usize, OsString),
    to: (usize, OsString),
    node: usize,
}

pub(super) struct Node {
    pub(super) content: Content,
    mtime: i128,
}

pub(super) enum Content {
    File(FileBytes),
    Dir(Entries),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Stat,
    ReadDir,
    CreateDir,
    SyncDir,
    Open,
    Name,
    ReadAt,
    Append,
    Truncate,
    Sync,
    Lock,
}

/// What an operation does beside what it is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    Whole,
    /// A read or a write of a part.
    Part,
}

impl Disk {
    /// A disk with some directories on it, and where a store may make its root.
    pub fn new(seed: u64, names: Names, lie: Option<Lie>) -> Self {
        let disk = Self(Arc::new(Mutex::new(State {
            nodes: vec![Node::dir()],
            random: Random::new(seed),
            tally: Tally::default(),
            names,
            lie,
            process: 0,
            steps: 0,
            stop: None,
            stopped: None,
            fault_every: 0,
            calm: false,
            full: 0,
            in_pieces: false,
            rival: None,
            log_syncs_failed: 0,
            locks: BTreeMap::new(),
            opened: 0,
            clock: 1,
            moves: Vec::new(),
        })));
        disk.process().create_dir(Path::new("/home")).unwrap();
        disk.process().sync_dir(Path::new("/")).unwrap();
        disk
    }

    /// Below a directory that is not there.
    pub fn store_root() -> PathBuf {
        PathBuf::from("/home/data/sessions")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// The file system, for the process that runs.
    pub fn process(&self) -> SimFs {
        SimFs::new(Arc::clone(&self.0), self.state().process)
    }

    /// Lets one operation in so many fail, and stops everything after so many more.
    pub fn expect_trouble(&self, fault_every: usize, stop: Option<Ending>) {
        let mut state = self.state();
        state.fault_every = fault_every;
        state.stop = stop.map(|stop| Ending { after: state.steps + stop.after, ..stop });
    }

    /// What stopped the process, if anything has.
    pub fn stopped(&self) -> Option<Stop> {
        self.state().stopped
    }

    /// Ends the process now, one way or the other.
    pub fn stop(&self, stop: Stop) {
        self.state().give_up(stop);
    }

    /// Starts the next process, on a disk that works.
    pub fn restart(&self) {
        let mut state = self.state();
        state.stopped = None;
        state.stop = None;
        state.fault_every = 0;
        state.full = 0;
        state.rival = None;
    }

    /// Does something during which nothing fails.
    pub fn calmly<T>(&self, act: impl FnOnce() -> T) -> T {
        self.state().calm = true;
        let done = act();
        self.state().calm = false;
        done
    }

    pub fn note(&self, met: Met) {
        self.state().tally.note(met);
    }

    pub fn tally(&self) -> Tally {
        self.state().tally.clone()
    }

    pub fn steps(&self) -> u64 {
        self.state().steps
    }

    /// How many syncs of logs have failed so far.
    pub fn log_syncs_failed(&self) -> u64 {
        self.state().log_syncs_failed
    }

    /// The bytes of a file, as every process sees them.
    pub fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        let node = state.find(path).ok()?;
        match &state.nodes[node].content {
            Content::File(file) => Some(file.cache().to_vec()),
            Content::Dir(_) => None,
        }
    }

    /// Cuts a file and adds bytes, synced, as another program.
    pub fn rewrite(&self, path: &Path, length: usize, bytes: &[u8]) {
        let mut state = self.state();
        let node = state.find(path).unwrap();
        let file = state.file(node);
        file.truncate(length);
        file.append(bytes, FOREIGN);
        file.sync();
        state.touch(node);
    }

    /// Lets another program add bytes right before the next write to a log.
    pub fn arm_rival(&self, bytes: Vec<u8>) {
        self.state().rival = Some(bytes);
    }

    /// Whether the rival is still waiting.
    pub fn disarm_rival(&self) -> bool {
        self.state().rival.take().is_some()
    }
}

impl Node {
    fn dir() -> Self {
        Self { content: Content::Dir(Entries::default()), mtime: 0 }
    }
}

pub(super) fn gone() -> io::Error {
    io::Error::other("the process has ended")
}

/// Whether a file is a log, under its own name or the one it is made under.
pub(super) fn is_log(path: &Path) -> bool {
    name(path).to_str().is_some_and(|name| name.starts_with("session.jsonl"))
}

impl State {
    pub(super) fn find(&self, path: &Path) -> io::Result<usize> {
        let mut node = ROOT;
        for part in path.components() {
            let Component::Normal(name) = part else { continue };
            let Content::Dir(entries) = &self.nodes[node].content else {
                return Err(io::ErrorKind::NotADirectory.into());
            };
            node = *entries.cache().get(name).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(node)
    }

    pub(super) fn file(&mut self, node: usize) -> &mut FileBytes {
        match &mut self.nodes[node].content {
            Content::File(file) => file,
            Content::Dir(_) => panic!("a directory"),
        }
    }

    pub(super) fn entries(&mut self, dir: &Path) -> io::Result<&mut Entries> {
        let node = self.find(dir)?;
        match &mut self.nodes[node].content {
            Content::Dir(entries) => Ok(entries),
            Content::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn dir(&mut self, node: usize) -> &mut Entries {
        match &mut self.nodes[node].content {
            Content::Dir(entries) => entries,
            Content::File(_) => panic!("a file"),
        }
    }

    /// Moves a directory to another directory.
    pub(super) fn move_dir(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.find(from)?;
        if let Ok(there) = self.find(to)
            && !self.dir(there).cache().is_empty()
        {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let ends = (self.find(from.parent().unwrap())?, self.find(to.parent().unwrap())?);
        let (left, taken) = (name(from), name(to));
        self.dir(ends.0).move_out(&left);
        self.dir(ends.1).move_in(taken.clone(), node);
        self.moves.push(Move { from: (ends.0, left), to: (ends.1, taken), node });
        Ok(())
    }

    /// Makes a directory's entries durable, and both ends of the moves that it is one end of.
    pub(super) fn sync_dir(&mut self, path: &Path) -> io::Result<()> {
        self.entries(path)?.sync();
        let node = self.find(path)?;
        let (arrived, on_the_way) = std::mem::take(&mut self.moves)
            .into_iter()
            .partition(|moved| moved.from.0 == node || moved.to.0 == node);
        self.moves = on_the_way;
        self.arrive(arrived);
        Ok(())
    }

    fn arrive(&mut self, moves: Vec<Move>) {
        for Move { from, to, node } in moves {
            self.dir(from.0).moved_out(&from.1);
            self.dir(to.0).moved_in(to.1, node);
        }
    }

    pub(super) fn touch(&mut self, node: usize) {
        self.clock += 1;
        self.nodes[node].mtime = self.clock;
    }

    /// Puts something new into a directory.
    pub(super) fn put(&mut self, path: &Path, content: Content) -> io::Result<usize> {
        if self.find(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let node = self.nodes.len();
        self.entries(path.parent().unwrap())?.add(name(path), node);
        self.nodes.push(Node { content, mtime: 0 });
        self.touch(node);
        Ok(node)
    }

    pub(super) fn stat(&self, node: usize) -> FileStat {
        let Node { content, mtime } = &self.nodes[node];
        let (kind, size, mode) = match content {
            Content::File(file) => (EntryKind::File, file.cache().len() as u64, 0o600),
            Content::Dir(_) => (EntryKind::Dir, 0, 0o700),
        };
        FileStat { kind, dev: 1, ino: node as u64, size, mode, mtime_ns: *mtime, ctime_ns: *mtime }
    }

    pub(super) fn give_up(&mut self, stop: Stop) {
        // A process that was killed, and a sync that gave up what it had written: nobody is left
        // who knows. That is more than any log can take; the power goes as well.
        let doubtful =
            |node: &Node| matches!(&node.content, Content::File(file) if file.doubtful());
        let stop = if self.nodes.iter().any(doubtful) { Stop::PowerCut } else { stop };
        self.process += 1;
        self.stopped = Some(stop);
        self.locks.clear();
        if stop == Stop::PowerCut {
            let moves = std::mem::take(&mut self.moves);
            let arrived = self.random.below(moves.len() + 1);
            self.arrive(moves.into_iter().take(arrived).collect());
        }
        let Self { nodes, random, tally, .. } = self;
        tally.note(match stop {
            Stop::Kill => Met::ProcessKilled,
            Stop::PowerCut => Met::PowerLost,
        });
        for node in nodes {
            match (&mut node.content, stop) {
                (Content::File(file), Stop::PowerCut) => file.lose_power(random, tally),
                (Content::Dir(entries), Stop::PowerCut) => entries.lose_power(random, tally),
                (_, Stop::Kill) => {}
            }
        }
    }

    /// Notes an operation, which may fail, or be the last. `node` is the file it is done to.
    pub(super) fn enter(
        &mut self,
        process: u64,
        op: Op,
        node: Option<usize>,
    ) -> io::Result<Course> {
        if process != self.process {
            return Err(gone());
        }
        if self.calm {
            return Ok(Course::Whole);
        }
        self.steps += 1;
        self.in_pieces &= op != Op::Sync;
        // Whoever takes back what a sync gave up is not hindered.
        let doubtful = node.is_some_and(|node| self.file(node).doubtful());
        if doubtful || self.fault_every == 0 {
            return Ok(Course::Whole);
        }
        if op == Op::Append && self.full > 0 {
            self.full -= 1;
            self.tally.note(Met::DiskFull);
            return Err(io::ErrorKind::StorageFull.into());
        }
        // Most operations only look; those that change something are the ones to fail.
        let every = match op {
            Op::Append | Op::Truncate | Op::Sync | Op::SyncDir | Op::Name => self.fault_every / 4,
            Op::CreateDir | Op::Lock | Op::ReadAt => self.fault_every,
            Op::Stat | Op::ReadDir | Op::Open => self.fault_every * 4,
        };
        if !self.random.once_in(every) {
            return Ok(Course::Whole);
        }
        self.fail(op)
    }

    pub(super) fn fail(&mut self, op: Op) -> io::Result<Course> {
        if op != Op::Sync && op != Op::SyncDir && self.random.once_in(8) {
            self.tally.note(Met::Interrupted);
            return Err(io::ErrorKind::Interrupted.into());
        }
        let met = match op {
            Op::Append => match self.random.below(5) {
                0..=2 => {
                    self.tally.note(Met::WriteShort);
                    self.in_pieces = true;
                    return Ok(Course::Part);
                }
                3 => {
                    self.full = 1 + self.random.below(2);
                    return Ok(Course::Part);
                }
                _ => Met::WriteFailed,
            },
            Op::ReadAt if self.random.coin() => {
                self.tally.note(Met::ReadShort);
                return Ok(Course::Part);
            }
            Op::ReadAt | Op::ReadDir => Met::ReadFailed,
            Op::Stat => Met::StatFailed,
            Op::SyncDir => Met::DirSyncFailed,
            // Noted where it is known what it does.
            Op::Sync => return Err(failed()),
            Op::Truncate => Met::TruncateFailed,
            Op::Open | Op::CreateDir => Met::OpenFailed,
            Op::Name => Met::NameFailed,
            Op::Lock => Met::LockFailed,
        };
        self.tally.note(met);
        Err(failed())
    }

    /// Whether the process ends with this operation.
    pub(super) fn ends_now(&self, process: u64, op: Op) -> Option<Stop> {
        let ending = self.stop.filter(|_| !self.calm && process == self.process)?;
        let there = self.steps + 1 >= ending.after;
        let is_the_moment = match ending.moment {
            Moment::Any => true,
            Moment::Sync => matches!(op, Op::Sync | Op::SyncDir),
            Moment::FileSync => op == Op::Sync,
            Moment::SyncOfPieces => op == Op::Sync && self.in_pieces,
        };
        (there && is_the_moment).then_some(ending.stop)
    }
}

fn failed() -> io::Error {
    io::Error::other("input/output error")
}

pub(super) fn name(path: &Path) -> OsString {
    path.file_name().unwrap().to_owned()
}
