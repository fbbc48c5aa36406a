//! Whether a store kept its promises.

use std::collections::{HashMap, HashSet};

use turnkeep_log::Event;

use super::{
    journal::{Batch, Entry},
    part_of,
};

/// What the processes wrote down, put together.
#[derive(Debug, Default)]
pub struct Account {
    /// By session.
    pub acknowledged: HashMap<String, HashSet<Batch>>,
    pub meant: HashSet<Batch>,
    pub refused: usize,
}

impl Account {
    /// Fails where a process says that something went wrong, or two were given the same place.
    pub fn of(entries: Vec<Entry>) -> Result<Self, String> {
        let mut account = Self::default();
        let mut places = HashMap::new();
        for entry in entries {
            match entry {
                Entry::Failed(why) => return Err(why),
                Entry::Refused(_) => account.refused += 1,
                Entry::Means(batch) => drop(account.meant.insert(batch)),
                Entry::Acknowledged(batch) => {
                    for seq in batch.first..batch.first + batch.count {
                        let place = (batch.session.clone(), seq);
                        if let Some(other) = places.insert(place, batch.name.clone()) {
                            let name = &batch.name;
                            let session = &batch.session;
                            return Err(format!(
                                "forked: {session} has seq {seq} acknowledged to {other} and {name}"
                            ));
                        }
                    }
                    account.acknowledge(batch);
                }
                Entry::Wants(_) | Entry::Has(_) | Entry::Gone(_) => {}
            }
        }
        Ok(account)
    }

    pub fn acknowledge(&mut self, batch: Batch) {
        self.acknowledged.entry(batch.session.clone()).or_default().insert(batch);
    }

    /// Compares a session with what was written down; how many batches it has that nobody was told
    /// about.
    pub fn check(&self, session: &str, events: &[Event]) -> Result<usize, String> {
        let stored = check_whole(session, events)?;
        let none = HashSet::new();
        let acknowledged = self.acknowledged.get(session).unwrap_or(&none);
        if let Some(batch) = acknowledged.difference(&stored).next() {
            return Err(format!("lost: {batch} was acknowledged and is not there"));
        }
        if let Some(batch) = stored.iter().find(|batch| !self.meant.contains(batch)) {
            return Err(format!("made up: nobody wrote {batch}"));
        }
        Ok(stored.difference(acknowledged).count())
    }
}

/// Checks that seqs count up and that every batch is there whole and once. Returns the batches.
pub fn check_whole(session: &str, events: &[Event]) -> Result<HashSet<Batch>, String> {
    let mut batches = HashSet::new();
    let mut names = HashSet::new();
    let mut at = 0;
    while let Some(event) = events.get(at) {
        let (name, _, of) = part_of(event);
        for index in 0..of {
            let seq = at as u64 + index;
            let part = events.get(at + usize::try_from(index).unwrap());
            let found = part.map(|event| (event.seq().0, part_of(event)));
            let expected = (seq, (name.clone(), index, of));
            if found.as_ref() != Some(&expected) {
                return Err(format!("{session} at {seq}: {found:?}, where {expected:?} belongs"));
            }
        }
        if !names.insert(name.clone()) {
            return Err(format!("{session} has {name} twice"));
        }
        let session = session.to_owned();
        batches.insert(Batch { session, name, first: at as u64, count: of });
        at += usize::try_from(of).unwrap();
    }
    Ok(batches)
}
