//! When an append counts as kept.

/// What it takes for an append to be acknowledged.
///
/// A backend may promise more than it is asked for: `sqlite` syncs with every append whatever this
/// says, and `memory` has nothing to sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Its events are on disk: they survive a crash of the process and of the machine.
    #[default]
    Append,
    /// Its events are accepted, ordered, and visible to the readers of this store. They survive a
    /// crash of the process. A crash of the machine may take them, the last ones first, until
    /// [`SessionHandle::flush`](crate::SessionHandle::flush),
    /// [`SessionStore::flush`](crate::SessionStore::flush) or
    /// [`SessionHandle::close`](crate::SessionHandle::close) has returned; without any of these
    /// they are synced within [`Durability::WINDOW`] or so.
    Flush,
}

impl Durability {
    /// How long accepted events may wait for a sync that nobody asks for.
    pub const WINDOW: std::time::Duration = std::time::Duration::from_millis(200);

    /// How many bytes of one session may wait: the append that goes beyond syncs before it returns.
    pub const MOST_UNSYNCED: u64 = 8 << 20;

    /// The name in a configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Flush => "flush",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Append, Self::Flush].into_iter().find(|durability| durability.as_str() == name)
    }
}
