//! What is appended.

use turnkeep_log::Event;
use turnkeep_store::jsonl::Encoding;

use super::run::Life;
use crate::support::{disk::pack, event_of};

impl Life {
    pub(super) fn encode(&self, event: &Event) -> Vec<u8> {
        let line = format!("{}\n", event.text().as_str());
        match self.plan.encoding {
            Encoding::None => line.into_bytes(),
            Encoding::Zstd => pack(&line),
        }
    }

    pub(super) fn small(&mut self, seq: u64) -> Event {
        self.nonce += 1;
        event_of("todo/write", seq, &format!(r#"{{"todos":[],"n":{}}}"#, self.nonce))
    }

    pub(super) fn noise(&mut self, seq: u64, numbers: usize) -> Event {
        let numbers: Vec<u64> = (0..numbers).map(|_| self.random.next()).collect();
        event_of("todo/write", seq, &format!("{numbers:?}"))
    }

    pub(super) fn delta(&mut self, seq: u64) -> Event {
        self.nonce += 1;
        let chunk = format!(r#"{{"type":"text-delta","index":0,"text":"{}"}}"#, self.nonce);
        event_of("assistant/chunk", seq, &format!(r#"{{"turn":1,"step":1,"chunk":{chunk}}}"#))
    }

    /// A batch of some size that continues the log.
    pub(super) fn batch(&mut self) -> Vec<Event> {
        self.batch_from(self.oracle.next_seq())
    }

    pub(super) fn batch_from(&mut self, first: u64) -> Vec<Event> {
        let mut batch: Vec<Event> = match self.random.below(8) {
            0 | 1 => vec![self.small(first)],
            2 => (first..first + 20).map(|seq| self.small(seq)).collect(),
            3 => (first..first + 12).map(|seq| self.delta(seq)).collect(),
            4 | 5 => (first..first + 4).map(|seq| self.noise(seq, 20)).collect(),
            6 => vec![self.noise(first, 200)],
            _ => (first..first + 3).map(|seq| self.noise(seq, 600)).collect(),
        };
        if self.random.once_in(3) {
            let seq = first + batch.len() as u64;
            let reason = r#"{"turn":1,"reason":{"kind":"completed"}}"#;
            batch.push(event_of("turn/end", seq, reason));
        }
        batch
    }
}
