//! What a log may hold, going by what its writers were told.

use turnkeep_log::Event;

/// What is known of one session from outside.
#[derive(Debug, Default)]
pub struct Oracle {
    /// What must be there: acknowledged, or seen after the power was gone.
    kept: Vec<Event>,
    /// Whether the session must be there.
    stored: bool,
    /// What the open handle found behind it, or accepted since, by batch: may be lost until
    /// something is acknowledged or flushed.
    found: Vec<Vec<Event>>,
    /// Whether the open handle accepted all of that: then it has made sure of what it found.
    accepted: bool,
    /// What may follow what is kept: one way for each attempt that ended in doubt, by batch.
    ways: Vec<Vec<Vec<Event>>>,
}

/// Where a batch may end that was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// Only where it does.
    Batch,
    /// After any event, but those of the first batch came with their log.
    EventOfALog,
    /// After any event.
    Event,
}

impl Oracle {
    /// The log as the open handle knows it.
    pub fn log(&self) -> Vec<Event> {
        self.kept.iter().chain(self.found.iter().flatten()).cloned().collect()
    }

    pub fn next_seq(&self) -> u64 {
        (self.kept.len() + self.found.iter().map(Vec::len).sum::<usize>()) as u64
    }

    pub fn is_stored(&self) -> bool {
        self.stored
    }

    /// Whether there is nothing in doubt.
    pub fn is_settled(&self) -> bool {
        self.stored && self.ways.is_empty() && self.found.is_empty()
    }

    /// A batch is about to be appended.
    pub fn attempt(&mut self, batch: Vec<Event>) {
        let mut way = self.found.clone();
        way.push(batch);
        self.ways.push(way);
    }

    /// The last attempt was accepted.
    pub fn accept(&mut self) {
        let mut way = self.ways.pop().unwrap_or_default();
        let batch = way.pop();
        if !self.accepted {
            self.confirm();
        }
        self.found.extend(batch);
        self.ways.clear();
        self.accepted = true;
    }

    /// The seqs that were accepted and are not known to be stored.
    pub fn accepted(&self) -> Option<(u64, u64)> {
        let (first, next) = (self.kept.len() as u64, self.next_seq());
        (self.accepted && first < next).then(|| (first, next - 1))
    }

    /// What was accepted before this event is stored: a rollback has synced it.
    pub fn confirm_until(&mut self, seq: u64) {
        while (self.kept.len() as u64) < seq {
            let batch = self.found.remove(0);
            for way in &mut self.ways {
                assert_eq!(way.remove(0), batch);
            }
            self.kept.extend(batch);
        }
        assert_eq!(self.kept.len() as u64, seq, "a part of a batch was taken back");
    }

    /// The last attempt is in doubt, and all that was accepted before it is stored.
    pub fn confirm_before(&mut self) {
        let rest = self.ways.pop().unwrap_or_default().split_off(self.found.len());
        self.confirm();
        self.ways.push(rest);
    }

    /// The last attempt was acknowledged, and with it all before it.
    pub fn acknowledge(&mut self) {
        let way = self.ways.pop().unwrap_or_default();
        self.kept.extend(way.into_iter().flatten());
        self.stored = true;
        self.ways.clear();
        self.found.clear();
        self.accepted = false;
    }

    /// All that the open handle found or accepted is stored.
    pub fn confirm(&mut self) {
        self.kept.extend(std::mem::take(&mut self.found).into_iter().flatten());
        self.stored = true;
        self.ways.clear();
        self.accepted = false;
    }

    /// The last attempt left nothing.
    pub fn take_back(&mut self) {
        self.ways.pop();
    }

    /// Someone else has added an event.
    pub fn add(&mut self, event: Event) {
        assert!(self.is_settled());
        self.kept.push(event);
    }

    /// Someone else has put another event in the place of the last.
    pub fn replace_last(&mut self, event: Event) {
        assert!(self.is_settled());
        *self.kept.last_mut().unwrap() = event;
    }

    /// What is there, or what is wrong with it. `durable` says that it is no longer in doubt.
    pub fn look(&mut self, there: &[Event], grain: Grain, durable: bool) -> Result<(), String> {
        let Some(behind) = there.strip_prefix(self.kept.as_slice()) else {
            let same =
                there.iter().zip(&self.kept).take_while(|(left, right)| left == right).count();
            return Err(format!(
                "acknowledged events are gone: {} were, {} are there, the first {same} the same",
                self.kept.len(),
                there.len()
            ));
        };
        let nothing = Vec::new();
        let found = [&self.found, &nothing]
            .into_iter()
            .chain(&self.ways)
            .find_map(|way| split(behind, way, grain));
        let Some(found) = found else {
            return Err(format!(
                "{} events behind the {} acknowledged ones are no batch that was appended",
                behind.len(),
                self.kept.len()
            ));
        };
        self.found = found;
        self.accepted = false;
        if durable {
            self.kept = there.to_vec();
            self.stored = true;
            self.ways.clear();
            self.found.clear();
        }
        Ok(())
    }

    /// The session is not there, or this is wrong.
    pub fn miss(&mut self, durable: bool) -> Result<(), String> {
        if self.stored {
            return Err("a stored session is gone".to_owned());
        }
        self.found.clear();
        if durable {
            self.ways.clear();
        }
        Ok(())
    }
}

/// The batches that these events are, if they are the first of this way.
fn split(events: &[Event], way: &[Vec<Event>], grain: Grain) -> Option<Vec<Vec<Event>>> {
    let mut rest = events;
    let mut found = Vec::new();
    for (index, batch) in way.iter().enumerate() {
        if rest.is_empty() {
            break;
        }
        let part = match grain {
            Grain::Batch => batch.as_slice(),
            Grain::EventOfALog if index == 0 => batch.as_slice(),
            Grain::EventOfALog | Grain::Event => &batch[..batch.len().min(rest.len())],
        };
        rest = rest.strip_prefix(part)?;
        found.push(part.to_vec());
    }
    rest.is_empty().then_some(found)
}
