//! What a store says about sessions that were deleted.

use turnkeep_log::SessionId;

/// A session that was taken out of the store, and where its undoing begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// The session.
    pub id: SessionId,
    /// When, in milliseconds since the epoch. With the id it names this deletion: no later one of
    /// the session has the same time.
    pub deleted_at: i64,
}

/// A session in the trash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trashed {
    /// The session.
    pub id: SessionId,
    /// The directory it worked in, where its header can be read and names one.
    pub cwd: Option<String>,
    /// When it was deleted, in milliseconds since the epoch.
    pub deleted_at: i64,
    /// How many bytes emptying the trash of it frees, about.
    pub size_bytes: u64,
}

/// What to remove from the trash for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emptying {
    /// Everything.
    All,
    /// What was deleted before this time, in milliseconds since the epoch.
    DeletedBefore(i64),
}

impl Emptying {
    /// Whether a session goes that was deleted at this time.
    #[must_use]
    pub fn takes(self, deleted_at: i64) -> bool {
        match self {
            Self::All => true,
            Self::DeletedBefore(time) => deleted_at < time,
        }
    }
}

/// What emptying the trash came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Emptied {
    /// What is gone for good.
    pub removed: Vec<Trashed>,
    /// What should have gone and is in use: someone is putting it back, or still has it open.
    pub in_use: Vec<Trashed>,
}

/// Puts a listing of the trash into its order: the latest deletion first, ties by id.
pub(crate) fn sort(trashed: &mut [Trashed]) {
    trashed.sort_by(|left, right| {
        right.deleted_at.cmp(&left.deleted_at).then_with(|| left.id.cmp(&right.id))
    });
}
