//! What a crash makes of one file, and of one directory.

use std::{collections::BTreeMap, ffi::OsString, ops::Range};

use super::{
    random::Random,
    tally::{Met, Tally},
};

/// What a disk writes at once, and so loses at once.
pub const SECTOR: usize = 512;

/// The bytes of a file: as every process sees them, and as they are on the disk.
#[derive(Clone, Debug, Default)]
pub struct FileBytes {
    cache: Vec<u8>,
    durable: Vec<u8>,
    /// The cache when there were no changes.
    base: Vec<u8>,
    /// What has been done since and not been synced.
    changes: Vec<Change>,
    /// Whether bytes that were never stored look as if they were: they were given up by a sync that
    /// failed, and nothing has been cut since.
    doubtful: bool,
}

#[derive(Clone, Debug)]
enum Change {
    /// These bytes, by this open file.
    Append(Vec<u8>, u64),
    Truncate(usize),
}

/// Which sectors of the last writes reach the disk.
#[derive(Clone, Copy, Debug)]
enum Reached {
    All,
    First,
    Some,
    None,
}

impl FileBytes {
    pub fn cache(&self) -> &[u8] {
        &self.cache
    }

    pub fn doubtful(&self) -> bool {
        self.doubtful
    }

    pub fn append(&mut self, bytes: &[u8], by: u64) {
        self.cache.extend_from_slice(bytes);
        self.changes.push(Change::Append(bytes.to_vec(), by));
    }

    pub fn truncate(&mut self, length: usize) {
        self.cache.resize(length, 0);
        self.changes.push(Change::Truncate(length));
        self.doubtful = false;
    }

    /// All that was changed reaches the disk; what a failed sync gave up does not.
    pub fn sync(&mut self) {
        if self.changes.is_empty() {
            return;
        }
        let mut image = self.base.clone();
        let mut touched: Vec<Range<usize>> = Vec::new();
        for change in &self.changes {
            touched.push(apply(change, &mut image));
        }
        self.durable.resize(self.cache.len(), 0);
        for range in touched {
            for sector in sectors(&range) {
                store(&mut self.durable, &self.cache, &sector);
            }
        }
        self.settled();
    }

    /// Some of what was written may reach the disk. The rest stays to be synced, or is given up:
    /// then it looks as if it were stored, and no later sync will store it. The length is the
    /// business of the file system's journal, and not given up.
    ///
    /// What others have written, through another open file, is not given up either: whoever hears of
    /// it would not know what is meant. No log can take that.
    pub fn sync_fails(&mut self, by: u64, random: &mut Random, tally: &mut Tally) {
        tally.note(Met::SyncFailed);
        let is_foreign =
            |change: &Change| matches!(change, Change::Append(_, writer) if *writer != by);
        if self.changes.is_empty() || self.changes.iter().any(is_foreign) || random.once_in(3) {
            return;
        }
        tally.note(Met::SyncDropped);
        let grown = self.cache.len() > self.base.len();
        self.durable = self.given_up(random);
        self.settled();
        self.doubtful = grown;
    }

    pub fn lose_power(&mut self, random: &mut Random, tally: &mut Tally) {
        self.durable = self.after_crash(random, tally);
        self.cache.clone_from(&self.durable);
        self.settled();
    }

    fn settled(&mut self) {
        self.base.clone_from(&self.cache);
        self.changes.clear();
        self.doubtful = false;
    }

    /// What the disk holds when the bytes of some sectors were given up.
    fn given_up(&self, random: &mut Random) -> Vec<u8> {
        let reached = random.pick(&[Reached::First, Reached::Some, Reached::None]);
        let (mut disk, mut image) = (self.durable.clone(), self.base.clone());
        for change in &self.changes {
            let range = apply(change, &mut image);
            match change {
                Change::Truncate(length) => disk.truncate(*length),
                Change::Append(..) => {
                    grow(&mut disk, &image, range, reached, random, &mut Tally::default());
                }
            }
        }
        disk
    }

    /// What the disk holds when the power goes now: the first changes of the file's length, in
    /// order, and any sectors of what was written.
    fn after_crash(&self, random: &mut Random, tally: &mut Tally) -> Vec<u8> {
        let mut disk = self.durable.clone();
        if self.changes.is_empty() {
            return disk;
        }
        let reached = random.pick(&[Reached::All, Reached::First, Reached::Some, Reached::None]);
        let kept =
            if random.coin() { self.changes.len() } else { random.below(self.changes.len() + 1) };
        let mut image = self.base.clone();
        for (index, change) in self.changes.iter().enumerate() {
            if index >= kept {
                tally.note(match change {
                    Change::Append(..) => Met::BytesLost,
                    Change::Truncate(_) => Met::TruncateLost,
                });
                continue;
            }
            let range = apply(change, &mut image);
            match change {
                Change::Truncate(length) => disk.truncate(*length),
                Change::Append(..) => {
                    let end = match (index + 1 == kept, random.below(4)) {
                        (true, 0) => range.start + random.below(range.len() + 1),
                        (true, 1) => {
                            let end = range.start + random.below(range.len() + 1);
                            (end / SECTOR * SECTOR).max(range.start)
                        }
                        _ => range.end,
                    };
                    if end < range.end {
                        tally.note(Met::BytesTorn);
                    }
                    grow(&mut disk, &image, range.start..end, reached, random, tally);
                }
            }
        }
        disk
    }
}

/// Does a change to an image of the file; which bytes it touches.
fn apply(change: &Change, image: &mut Vec<u8>) -> Range<usize> {
    match change {
        Change::Append(bytes, _) => {
            let start = image.len();
            image.extend_from_slice(bytes);
            start..image.len()
        }
        Change::Truncate(length) => {
            image.resize(*length, 0);
            *length..*length
        }
    }
}

/// Gives the file on the disk its new length, and some of the sectors of what is new.
fn grow(
    disk: &mut Vec<u8>,
    image: &[u8],
    range: Range<usize>,
    reached: Reached,
    random: &mut Random,
    tally: &mut Tally,
) {
    disk.resize(range.end, 0);
    let all: Vec<_> = sectors(&range).collect();
    let first = random.below(all.len() + 1);
    let kept: Vec<bool> = (0..all.len())
        .map(|index| match reached {
            Reached::All => true,
            Reached::First => index < first,
            Reached::Some => random.coin(),
            Reached::None => false,
        })
        .collect();
    for (sector, _) in all.iter().zip(&kept).filter(|(_, kept)| **kept) {
        store(disk, image, sector);
    }
    if all.is_empty() {
        return;
    }
    if kept.iter().all(|kept| *kept) {
        tally.note(Met::BytesKept);
    } else {
        tally.note(Met::SectorsZeroed);
    }
    if kept.iter().all(|kept| !kept) {
        tally.note(Met::SizeWithoutData);
    }
    if kept.windows(2).any(|pair| !pair[0] && pair[1]) {
        tally.note(Met::SectorsReordered);
    }
}

/// The sectors that a range of bytes lies in.
fn sectors(range: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    let (first, end) = (range.start / SECTOR, range.end.div_ceil(SECTOR));
    (first..end).map(|sector| sector * SECTOR..(sector + 1) * SECTOR)
}

/// Writes a sector, as far as it lies within the file.
fn store(disk: &mut [u8], image: &[u8], sector: &Range<usize>) {
    let end = sector.end.min(disk.len()).min(image.len());
    if sector.start < end {
        disk[sector.start..end].copy_from_slice(&image[sector.start..end]);
    }
}

/// The entries of a directory: as every process sees them, and as they are on the disk.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    cache: BTreeMap<OsString, usize>,
    durable: BTreeMap<OsString, usize>,
    changes: Vec<EntryChange>,
}

#[derive(Clone, Debug)]
enum EntryChange {
    Add(OsString, usize),
    Remove(OsString),
    Rename(OsString, OsString),
}

impl Entries {
    pub fn cache(&self) -> &BTreeMap<OsString, usize> {
        &self.cache
    }

    pub fn add(&mut self, name: OsString, node: usize) {
        self.change(EntryChange::Add(name, node));
    }

    pub fn remove(&mut self, name: OsString) {
        self.change(EntryChange::Remove(name));
    }

    pub fn rename(&mut self, from: OsString, to: OsString) {
        self.change(EntryChange::Rename(from, to));
    }

    /// Takes an entry away whose move to another directory is accounted for there; as far as every
    /// process sees.
    pub fn move_out(&mut self, name: &OsString) -> Option<usize> {
        // Where it was not durable, the move is all there is to become so.
        self.changes
            .retain(|change| !matches!(change, EntryChange::Add(added, _) if added == name));
        self.cache.remove(name)
    }

    /// The other end of [`move_out`](Self::move_out).
    pub fn move_in(&mut self, name: OsString, node: usize) {
        self.cache.insert(name, node);
    }

    /// The move of an entry away from here reaches the disk.
    pub fn moved_out(&mut self, name: &OsString) {
        self.durable.remove(name);
    }

    /// The move of an entry to here reaches the disk.
    pub fn moved_in(&mut self, name: OsString, node: usize) {
        self.durable.insert(name, node);
    }

    fn change(&mut self, change: EntryChange) {
        change.apply(&mut self.cache);
        self.changes.push(change);
    }

    pub fn sync(&mut self) {
        self.durable.clone_from(&self.cache);
        self.changes.clear();
    }

    /// Each change reaches the disk or does not.
    pub fn lose_power(&mut self, random: &mut Random, tally: &mut Tally) {
        let manner = random.below(3);
        for change in std::mem::take(&mut self.changes) {
            let kept = match manner {
                0 => false,
                1 => true,
                _ => random.coin(),
            };
            if kept {
                change.apply(&mut self.durable);
                tally.note(Met::EntryKept);
            } else if let EntryChange::Remove(_) = change {
                tally.note(Met::RemovalLost);
            } else {
                tally.note(Met::EntryLost);
            }
        }
        self.cache.clone_from(&self.durable);
    }
}

impl EntryChange {
    fn apply(&self, entries: &mut BTreeMap<OsString, usize>) {
        match self {
            Self::Add(name, node) => {
                entries.insert(name.clone(), *node);
            }
            Self::Remove(name) => {
                entries.remove(name);
            }
            Self::Rename(from, to) => {
                if let Some(node) = entries.remove(from) {
                    entries.insert(to.clone(), node);
                }
            }
        }
    }
}
