//! One session, in a store or behind an upstream: what holds for one holds for the other.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use turnkeep_host::HostOptions;
use turnkeep_store::SessionStore;

use super::{
    host::RunningHost,
    store::{TestStore, made, turns, turns_in},
    upstream::{ScriptedUpstream, list, rows},
};

/// How many records a turn of the session has, in either source.
pub const TURN: usize = 3;

/// A session of so many turns of three records each, the first of which starts the turn.
#[derive(Debug)]
pub struct Served {
    pub host: RunningHost,
    pub session: &'static str,
    options: HostOptions,
    turns: usize,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Store(TestStore),
    Upstream { upstream: ScriptedUpstream, rows: Arc<Mutex<Vec<Value>>> },
}

impl Served {
    /// The session in either place, behind hosts with these options.
    pub async fn both(turns: usize, set: impl Fn(&mut HostOptions)) -> [Self; 2] {
        [Self::in_store(turns, &set).await, Self::behind_upstream(turns, set).await]
    }

    pub async fn in_store(count: usize, set: impl Fn(&mut HostOptions)) -> Self {
        let store = TestStore::new();
        store.add_made("ses_1", &turns(count)).await;
        let mut options = HostOptions::default();
        options.store = Some(Arc::clone(&store.store) as Arc<dyn SessionStore>);
        Self::start(options, set, count, Place::Store(store)).await
    }

    pub async fn behind_upstream(turns: usize, set: impl Fn(&mut HostOptions)) -> Self {
        let all = Arc::new(Mutex::new(rows(turns)));
        let shared = Arc::clone(&all);
        let upstream = ScriptedUpstream::start(move |request| {
            let is_list = request.path == "/session/ses_1/message";
            is_list.then(|| list(&shared.lock().unwrap(), request))
        })
        .await;
        let mut options = HostOptions::default();
        options.upstream = Some(upstream.options());
        Self::start(options, set, turns, Place::Upstream { upstream, rows: all }).await
    }

    async fn start(
        mut options: HostOptions,
        set: impl Fn(&mut HostOptions),
        turns: usize,
        place: Place,
    ) -> Self {
        set(&mut options);
        let host = RunningHost::start(options.clone()).await;
        Self { host, session: "ses_1", options, turns, place }
    }

    /// Another host in place of this one, over the same session, with other options.
    pub async fn restart(&mut self, set: impl Fn(&mut HostOptions)) {
        let mut options = self.options.clone();
        set(&mut options);
        let host = RunningHost::start(options.clone()).await;
        std::mem::replace(&mut self.host, host).stop().await;
        self.options = options;
    }

    /// The store, when there is one.
    pub fn store(&self) -> Option<&TestStore> {
        match &self.place {
            Place::Store(store) => Some(store),
            Place::Upstream { .. } => None,
        }
    }

    /// The upstream, when there is one.
    pub fn upstream(&self) -> Option<&ScriptedUpstream> {
        match &self.place {
            Place::Store(_) => None,
            Place::Upstream { upstream, .. } => Some(upstream),
        }
    }

    /// The id of a record, by its place from the oldest on.
    pub fn id(&self, index: usize) -> String {
        let (turn, place) = (index / TURN, index % TURN);
        match &self.place {
            // An answer is named after its event, the fourth of five of a turn.
            Place::Store(_) if place == 2 => format!("asst:{}", 5 * turn + 3),
            Place::Store(_) => format!("{}-{}", ["prompt", "notice"][place], turn + 1),
            Place::Upstream { .. } => {
                format!("msg_{index:04}_{}", if place == 0 { "user" } else { "asst" })
            }
        }
    }

    /// The ids of these records.
    pub fn ids(&self, range: std::ops::Range<usize>) -> Vec<String> {
        range.map(|index| self.id(index)).collect()
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.turns * TURN
    }

    /// Adds turns.
    pub async fn grow(&mut self, by: usize) {
        let first = self.turns + 1;
        self.turns += by;
        match &self.place {
            Place::Store(store) => {
                let events = turns_in(first..=self.turns);
                let seq = events.len() / by * (first - 1);
                store.append(self.session, made(seq, |at| 1000 + at, &events)).await;
            }
            Place::Upstream { rows: all, .. } => {
                let mut all = all.lock().unwrap();
                let new = rows(self.turns);
                all.extend_from_slice(&new[TURN * (first - 1)..]);
            }
        }
    }

    /// Deletes a record, which only an upstream does.
    pub fn delete(&self, id: &str) {
        let Place::Upstream { rows, .. } = &self.place else { panic!("a log only grows") };
        rows.lock().unwrap().retain(|row| row["info"]["id"] != *id);
    }
}
