//! How often what happened.

use std::{collections::BTreeMap, fmt};

/// Something that a run of the simulator has to meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Met {
    // What stops a run.
    PowerLost,
    ProcessKilled,
    // What a power cut does to unsynced bytes of a file.
    BytesLost,
    BytesKept,
    BytesTorn,
    SectorsReordered,
    SectorsZeroed,
    SizeWithoutData,
    TruncateLost,
    // What it does to unsynced entries of a directory.
    EntryLost,
    EntryKept,
    RemovalLost,
    // What the disk refuses.
    WriteFailed,
    WriteShort,
    DiskFull,
    Interrupted,
    SyncFailed,
    SyncDropped,
    DirSyncFailed,
    StatFailed,
    ReadFailed,
    ReadShort,
    TruncateFailed,
    OpenFailed,
    NameFailed,
    LockFailed,
    NoLinks,
    NoRenames,
    // What others do to the log.
    ForeignTail,
    ForeignZeros,
    ForeignEvent,
    ForeignWhileOpen,
    ForeignRewrite,
    ForeignAtOnce,
    // What the store has to say to it.
    Acknowledged,
    RolledBack,
    Poisoned,
    OwnershipLost,
    UnacknowledgedKept,
    UnacknowledgedGone,
    TailCut,
    // What a crash left of an index.
    IndexCurrent,
    IndexOutdated,
    Accepted,
    AcceptedKept,
    AcceptedLost,
    AcceptedTakenBack,
    Flushed,
}

impl Met {
    pub const ALL: [Self; 48] = [
        Self::PowerLost,
        Self::ProcessKilled,
        Self::BytesLost,
        Self::BytesKept,
        Self::BytesTorn,
        Self::SectorsReordered,
        Self::SectorsZeroed,
        Self::SizeWithoutData,
        Self::TruncateLost,
        Self::EntryLost,
        Self::EntryKept,
        Self::RemovalLost,
        Self::WriteFailed,
        Self::WriteShort,
        Self::DiskFull,
        Self::Interrupted,
        Self::SyncFailed,
        Self::SyncDropped,
        Self::DirSyncFailed,
        Self::StatFailed,
        Self::ReadFailed,
        Self::ReadShort,
        Self::TruncateFailed,
        Self::OpenFailed,
        Self::NameFailed,
        Self::LockFailed,
        Self::NoLinks,
        Self::NoRenames,
        Self::ForeignTail,
        Self::ForeignZeros,
        Self::ForeignEvent,
        Self::ForeignWhileOpen,
        Self::ForeignRewrite,
        Self::ForeignAtOnce,
        Self::Acknowledged,
        Self::RolledBack,
        Self::Poisoned,
        Self::OwnershipLost,
        Self::UnacknowledgedKept,
        Self::UnacknowledgedGone,
        Self::TailCut,
        Self::IndexCurrent,
        Self::IndexOutdated,
        Self::Accepted,
        Self::AcceptedKept,
        Self::AcceptedLost,
        Self::AcceptedTakenBack,
        Self::Flushed,
    ];
}

/// Counts of all that can be met.
#[derive(Clone, Debug, Default)]
pub struct Tally(BTreeMap<Met, u64>);

impl Tally {
    pub fn note(&mut self, met: Met) {
        *self.0.entry(met).or_default() += 1;
    }

    pub fn count(&self, met: Met) -> u64 {
        self.0.get(&met).copied().unwrap_or_default()
    }

    pub fn add(&mut self, other: &Self) {
        for (met, count) in &other.0 {
            *self.0.entry(*met).or_default() += count;
        }
    }

    /// After how many crashes a log was looked at.
    pub fn crash_points(&self) -> u64 {
        self.count(Met::PowerLost) + self.count(Met::ProcessKilled)
    }

    /// What never happened.
    pub fn missing(&self) -> Vec<Met> {
        Met::ALL.into_iter().filter(|met| self.count(*met) == 0).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for met in Met::ALL {
            writeln!(f, "{:>9}  {met:?}", self.count(met))?;
        }
        Ok(())
    }
}
