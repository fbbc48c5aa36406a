//! What is kept, what is pinned, and what has to go.

use std::collections::HashMap;

use turnkeep_log::SessionId;

/// How much may be kept of what nobody is looking at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) entries: usize,
    pub(super) bytes: u64,
}

/// Entries by session, at most one for each.
///
/// An entry with pins stays. Of those without, the least recently used go while they are more, or
/// larger, than the limits allow.
#[derive(Debug)]
pub(super) struct Kept<T> {
    limits: Limits,
    slots: HashMap<SessionId, Slot<T>>,
    clock: u64,
    /// How many have no pin, and their bytes.
    idle: usize,
    idle_bytes: u64,
}

#[derive(Debug)]
struct Slot<T> {
    entry: T,
    /// Tells this entry from others that the session had, or will have.
    serial: Serial,
    bytes: u64,
    pins: usize,
    last_use: u64,
}

/// When the reading of an entry was begun: later ones have greater numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Serial(pub(super) u64);

/// What is kept of the session was read later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outdated;

impl<T: Clone> Kept<T> {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, slots: HashMap::new(), clock: 0, idle: 0, idle_bytes: 0 }
    }

    /// The session's entry and its number.
    pub(super) fn get(&self, id: &SessionId) -> Option<(&T, Serial)> {
        self.slots.get(id).map(|slot| (&slot.entry, slot.serial))
    }

    /// Keeps an entry in place of an older one, which is handed out, and pins it.
    ///
    /// The same entry may come several times, once from everyone who waited for it.
    pub(super) fn insert(
        &mut self,
        id: &SessionId,
        serial: Serial,
        bytes: u64,
        entry: &T,
    ) -> Result<Option<T>, Outdated> {
        let known = self.slots.get(id).map(|slot| slot.serial);
        if known.is_some_and(|known| known > serial) {
            return Err(Outdated);
        }
        let older = if known == Some(serial) { None } else { self.remove(id) };
        if known != Some(serial) {
            let slot = Slot { entry: entry.clone(), serial, bytes, pins: 0, last_use: 0 };
            self.slots.insert(id.clone(), slot);
            self.idle += 1;
            self.idle_bytes = self.idle_bytes.saturating_add(bytes);
        }
        self.pin(id, serial);
        Ok(older)
    }

    /// Pins an entry once more, if it is still kept.
    pub(super) fn pin(&mut self, id: &SessionId, serial: Serial) {
        self.clock += 1;
        let Some(slot) = self.slots.get_mut(id).filter(|slot| slot.serial == serial) else {
            return;
        };
        slot.last_use = self.clock;
        slot.pins += 1;
        if slot.pins == 1 {
            self.idle -= 1;
            self.idle_bytes = self.idle_bytes.saturating_sub(slot.bytes);
        }
    }

    /// Takes one pin off an entry, and lets go of what is too much then. What was let go is handed
    /// out, to be dropped where nobody waits.
    pub(super) fn unpin(&mut self, id: &SessionId, serial: Serial) -> Vec<T> {
        self.clock += 1;
        if let Some(slot) = self.slots.get_mut(id).filter(|slot| slot.serial == serial)
            && slot.pins > 0
        {
            slot.last_use = self.clock;
            slot.pins -= 1;
            if slot.pins == 0 {
                self.idle += 1;
                self.idle_bytes = self.idle_bytes.saturating_add(slot.bytes);
            }
        }
        self.evict()
    }

    fn evict(&mut self) -> Vec<T> {
        let mut gone = Vec::new();
        while self.idle > self.limits.entries || self.idle_bytes > self.limits.bytes {
            let idle = self.slots.iter().filter(|(_, slot)| slot.pins == 0);
            let oldest = idle.min_by_key(|(_, slot)| slot.last_use).map(|(id, _)| id.clone());
            let Some(entry) = oldest.and_then(|id| self.remove(&id)) else { break };
            gone.push(entry);
        }
        gone
    }

    fn remove(&mut self, id: &SessionId) -> Option<T> {
        let slot = self.slots.remove(id)?;
        if slot.pins == 0 {
            self.idle -= 1;
            self.idle_bytes = self.idle_bytes.saturating_sub(slot.bytes);
        }
        Some(slot.entry)
    }

    /// How many entries are kept, pinned ones included.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}
