//! One of the processes that write, until it is killed.

use turnkeep_log::Seq;
use turnkeep_store::{Access, SessionHandle, SessionStore};

use super::{
    any_session, batch,
    journal::{Batch, Entry, Journal},
    verdict::check_whole,
};
use crate::{
    random::Random,
    support::{header, id, never, read},
};

/// How many sessions it holds at most.
const MOST: usize = 4;

struct Writer {
    name: String,
    journal: Journal,
    random: Random,
    batches: u64,
    held: Vec<Held>,
}

struct Held {
    session: String,
    handle: Box<dyn SessionHandle>,
    next: u64,
}

/// Creates, opens, appends, flushes and closes at random.
pub async fn run(store: &dyn SessionStore, name: &str, journal: Journal, random: Random) {
    let name = name.to_owned();
    let mut writer = Writer { name, journal, random, batches: 0, held: Vec::new() };
    loop {
        if let Err(why) = writer.step(store).await {
            writer.journal.note(&Entry::Failed(why.clone()));
            panic!("{why}");
        }
    }
}

impl Writer {
    async fn step(&mut self, store: &dyn SessionStore) -> Result<(), String> {
        let count = self.held.len();
        if count == 0 || (count < MOST && self.random.once_in(4)) {
            return self.take(store).await;
        }
        let at = self.random.below(count);
        match self.random.below(10) {
            0 => self.close(at).await,
            1 => self.flush(at).await,
            _ => self.append(at).await,
        }
    }

    async fn take(&mut self, store: &dyn SessionStore) -> Result<(), String> {
        let session = any_session(&mut self.random);
        if self.held.iter().any(|held| held.session == session) {
            return Ok(());
        }
        self.journal.note(&Entry::Wants(session.clone()));
        let handle = match store.open(&id(&session), Access::Write, &never()).await {
            Ok(handle) => Some(handle),
            Err(error) if error.kind() == "already_owned" => {
                self.journal.note(&Entry::Refused(session.clone()));
                None
            }
            Err(error) if error.kind() == "not_found" => {
                match store.create(header(&session), &never()).await {
                    Ok(handle) => Some(handle),
                    Err(error) if error.kind() == "already_exists" => None,
                    Err(error) => return Err(format!("create {session}: {error}")),
                }
            }
            Err(error) => return Err(format!("open {session}: {error}")),
        };
        let Some(handle) = handle else {
            self.journal.note(&Entry::Gone(session));
            return Ok(());
        };
        self.journal.note(&Entry::Has(session.clone()));
        let events = read(&*handle).await;
        check_whole(&session, &events)?;
        self.held.push(Held { session, handle, next: events.len() as u64 });
        Ok(())
    }

    async fn append(&mut self, at: usize) -> Result<(), String> {
        self.batches += 1;
        let name = format!("{}-{}", self.name, self.batches);
        let held = &mut self.held[at];
        let events = batch(&name, held.next, &mut self.random);
        let session = held.session.clone();
        let written = Batch { session, name, first: held.next, count: events.len() as u64 };
        self.journal.note(&Entry::Means(written.clone()));
        match held.handle.append(events, &never()).await {
            Ok(Seq(next)) => {
                self.journal.note(&Entry::Acknowledged(written));
                held.next = next;
                Ok(())
            }
            // Someone else created it first.
            Err(error)
                if held.next == 0
                    && ["already_exists", "already_owned"].contains(&error.kind()) =>
            {
                self.journal.note(&Entry::Refused(held.session.clone()));
                self.let_go(at).await;
                Ok(())
            }
            Err(error) => Err(format!("append {written}: {error}")),
        }
    }

    async fn flush(&mut self, at: usize) -> Result<(), String> {
        let held = &self.held[at];
        match held.handle.flush(&never()).await {
            Ok(()) => Ok(()),
            Err(error)
                if held.next == 0
                    && ["already_exists", "already_owned"].contains(&error.kind()) =>
            {
                self.journal.note(&Entry::Refused(held.session.clone()));
                self.let_go(at).await;
                Ok(())
            }
            Err(error) => Err(format!("flush {}: {error}", held.session)),
        }
    }

    async fn close(&mut self, at: usize) -> Result<(), String> {
        let held = self.held.swap_remove(at);
        let closed = held.handle.close().await;
        closed.map_err(|error| format!("close {}: {error}", held.session))?;
        self.journal.note(&Entry::Gone(held.session));
        Ok(())
    }

    /// Closes a session that was never ours, which may well be said.
    async fn let_go(&mut self, at: usize) {
        let held = self.held.swap_remove(at);
        let _ = held.handle.close().await;
        self.journal.note(&Entry::Gone(held.session));
    }
}
