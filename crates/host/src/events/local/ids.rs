//! Ids of the events that the host makes itself.

use std::time::{SystemTime, UNIX_EPOCH};

/// How many characters of an id are random.
const RANDOM_CHARS: usize = 14;

/// Makes ids in the form that OpenCode's have: `evt_`, twelve hex digits that count up with the
/// time, and characters that no other process has.
#[derive(Debug)]
pub(super) struct EventIds {
    last: u64,
    random: String,
}

impl EventIds {
    pub(super) fn new() -> Self {
        const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut bytes = [0; RANDOM_CHARS];
        // Without random numbers the time has to tell processes apart.
        let _ = getrandom::fill(&mut bytes);
        let digit = |byte: &u8| DIGITS.get(usize::from(*byte) % DIGITS.len()).copied();
        let random = bytes.iter().filter_map(digit).map(char::from).collect();
        Self { last: 0, random }
    }

    pub(super) fn next(&mut self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX) << 12;
        self.last = now.max(self.last + 1);
        format!("evt_{:012x}{}", self.last & 0xffff_ffff_ffff, self.random)
    }
}

#[cfg(test)]
mod tests {
    use super::EventIds;

    #[test]
    fn ids_count_up() {
        let mut ids = EventIds::new();
        let made: Vec<String> = (0..5000).map(|_| ids.next()).collect();
        assert!(made.is_sorted_by(|a, b| a < b));
        assert!(made.iter().all(|id| id.len() == 30 && id.starts_with("evt_")));
        assert_ne!(EventIds::new().random, ids.random);
    }
}
