//! What others do to the log: writers that were interrupted, and writers that take no lock.

use turnkeep_store::Durability;

use super::{run::Life, tally::Met};
use crate::support::id;

impl Life {
    /// Bytes of an append of another writer that was interrupted.
    pub(super) fn foreign_tail(&mut self) {
        if !self.oracle.is_settled() {
            return;
        }
        // Not behind another: that would be no tail that a writer leaves.
        self.without_tail();
        let event = self.small(self.oracle.next_seq());
        let mut bytes = self.encode(&event);
        if self.random.coin() {
            bytes.truncate(1 + self.random.below(bytes.len() - 1));
            self.disk.note(Met::ForeignTail);
        } else {
            bytes = vec![0; 1 + self.random.below(1500)];
            self.disk.note(Met::ForeignZeros);
        }
        self.tell(format!("foreign tail of {} bytes", bytes.len()));
        self.disk.rewrite(&self.log_path(), self.log_bytes().len(), &bytes);
        self.has_tail = true;
    }

    /// Lets the store cut a tail, if there is one.
    pub(super) fn without_tail(&mut self) {
        let batch = vec![self.small(self.oracle.next_seq())];
        let (disk, store, name) = (self.disk.clone(), self.store.clone(), self.name());
        disk.calmly(|| {
            let mut handle = store.open(&id(&name)).unwrap();
            handle.append(&batch).unwrap();
            handle.close().unwrap();
        });
        self.oracle.attempt(batch);
        self.oracle.acknowledge();
    }

    /// A batch of a writer that takes no lock, while nobody else writes.
    pub(super) fn foreign_event(&mut self) {
        if !self.oracle.is_settled() {
            return;
        }
        self.without_tail();
        self.add_foreign();
        self.disk.note(Met::ForeignEvent);
    }

    pub(super) fn add_foreign(&mut self) {
        let event = self.small(self.oracle.next_seq());
        self.tell("foreign event");
        self.disk.rewrite(&self.log_path(), self.log_bytes().len(), &self.encode(&event));
        self.oracle.add(event);
    }

    /// Appends once, so that there is no tail, and nothing in doubt; whether that worked.
    pub(super) fn make_ready(&mut self) -> bool {
        let disk = self.disk.clone();
        disk.calmly(|| {
            self.append();
            self.flush();
        });
        self.handle.is_some() && self.oracle.is_settled()
    }

    /// Accepts some batches, where they need not be synced.
    fn accept_some(&mut self) {
        if self.plan.durability == Durability::Flush {
            let disk = self.disk.clone();
            for _ in 0..self.random.below(3) {
                disk.calmly(|| self.append());
            }
        }
    }

    pub(super) fn foreign_while_open(&mut self) {
        if !self.make_ready() {
            return;
        }
        self.accept_some();
        let seq = self.oracle.next_seq();
        let theirs = self.small(seq);
        self.tell("foreign event while open");
        self.disk.rewrite(&self.log_path(), self.log_bytes().len(), &self.encode(&theirs));
        self.lose_ownership(seq);
        // What was accepted lies before it, and has been synced.
        self.oracle.confirm();
        self.oracle.add(theirs);
        self.disk.note(Met::ForeignWhileOpen);
    }

    /// Puts another event of the same length in the place of the last.
    pub(super) fn foreign_rewrite(&mut self) {
        if !self.make_ready() {
            return;
        }
        let start = self.log_bytes().len();
        let seq = self.oracle.next_seq();
        let batch = vec![self.small(seq)];
        let disk = self.disk.clone();
        disk.calmly(|| {
            self.append_batch(&batch);
            self.flush();
        });
        let length = self.log_bytes().len() - start;
        for _ in 0..50 {
            let other = self.small(seq);
            let bytes = self.encode(&other);
            if bytes.len() == length {
                self.tell("foreign event in place of the last");
                self.disk.rewrite(&self.log_path(), start, &bytes);
                self.oracle.replace_last(other);
                self.disk.note(Met::ForeignRewrite);
                self.lose_ownership(seq + 1);
                return;
            }
        }
    }

    /// Someone else writes between our last look and our write.
    pub(super) fn foreign_at_once(&mut self) {
        if !self.make_ready() {
            return;
        }
        self.accept_some();
        let theirs = self.small(self.oracle.next_seq());
        let bytes = self.encode(&theirs);
        let before = self.log_bytes();
        self.disk.arm_rival(bytes.clone());
        self.tell("foreign event at once");
        self.refuse_lost(self.oracle.next_seq());
        assert!(!self.disk.disarm_rival());
        assert_eq!(self.log_bytes(), [before, bytes].concat());
        self.oracle.confirm();
        self.oracle.add(theirs);
        self.disk.note(Met::ForeignAtOnce);
    }

    /// The next append finds out, and writes nothing.
    pub(super) fn lose_ownership(&mut self, seq: u64) {
        let before = self.log_bytes();
        self.refuse_lost(seq);
        assert_eq!(self.log_bytes(), before);
    }

    pub(super) fn refuse_lost(&mut self, seq: u64) {
        let batch = vec![self.small(seq)];
        let mut handle = self.handle.take().unwrap();
        let disk = self.disk.clone();
        for _ in 0..2 {
            let outcome = disk.calmly(|| handle.append(&batch)).map_err(|error| error.kind());
            assert_eq!(outcome, Err("ownership_lost"), "the fence let a fork through");
        }
        self.disk.note(Met::OwnershipLost);
    }
}
