//! Sources in memory.

use turnkeep_log::{Text, json::Json};

use super::{Answer, PageRequest, Position, Purpose, SESSION, SourcePage, record};

pub(super) fn page(records: &[String], next: Option<String>) -> Answer {
    let body = Text::from(format!("[{}]", records.join(",")));
    Answer::Page(SourcePage::from_opencode(&body, next).expect("rows of these tests have ids"))
}

/// Rows without times and opaque cursors: `k` stands before the rows `0..k`.
pub(super) struct Indexed(pub(super) Vec<String>);

impl Indexed {
    pub(super) fn new(ids: &str) -> Self {
        Self(ids.split_whitespace().map(|id| record(id, None)).collect())
    }

    pub(super) fn answer(&self, request: &PageRequest) -> Answer {
        let end = request.before.as_ref().map(|before| before.parse());
        let Ok(end) = end.unwrap_or(Ok(self.0.len())) else { return Answer::BadCursor };
        let Some(rows) = self.0.get(..end) else { return Answer::BadCursor };
        let start = end.saturating_sub(request.limit);
        page(&rows[start..], (start > 0).then(|| start.to_string()))
    }
}

/// One message of the model.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// What it is ordered by. The time in the record may be another.
    pub(super) place: Position,
    pub(super) record: String,
    pub(super) encodable: bool,
}

/// A session as OpenCode keeps and pages it.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    /// Old to new.
    pub(super) messages: Vec<Message>,
}

impl Model {
    /// `id@time` for each message, in any order.
    pub(super) fn new(messages: &str) -> Self {
        let mut model = Self::default();
        for message in messages.split_whitespace() {
            let (id, time) = message.split_once('@').expect("id@time");
            let time = time.parse().expect("a time");
            model.add(id, time, time);
        }
        model
    }

    pub(super) fn add(&mut self, id: &str, time: u64, shown_time: u64) {
        let place = Position { time, id: id.to_owned() };
        let record = record(id, Some(shown_time));
        self.messages.push(Message { place, record, encodable: true });
        self.messages.sort_by(|one, other| one.place.cmp(&other.place));
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.messages.retain(|message| message.place.id != id);
    }

    pub(super) fn poison(&mut self, id: &str) {
        for message in &mut self.messages {
            message.encodable &= message.place.id != id;
        }
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.messages.iter().map(|message| message.place.id.clone()).collect()
    }

    pub(super) fn answer(&self, request: &PageRequest) -> Answer {
        if request.purpose == Purpose::Identify {
            return Answer::History(Text::from(self.history()));
        }
        assert!(request.limit > 0, "no limit would be the whole session");
        let bound = match &request.before {
            Some(before) => match Position::decode(before) {
                Some(bound) => Some(bound),
                None => return Answer::BadCursor,
            },
            None => None,
        };
        let older = |message: &&Message| bound.as_ref().is_none_or(|bound| message.place < *bound);
        let older: Vec<&Message> = self.messages.iter().filter(older).collect();
        let start = older.len().saturating_sub(request.limit);
        let rows = &older[start..];
        // A page that has a cursor leaves as it is stored, the last one is encoded.
        if start == 0 && rows.iter().any(|message| !message.encodable) {
            return Answer::Unencodable;
        }
        let next = (start > 0).then(|| rows[0].place.encode());
        let rows: Vec<String> = rows.iter().map(|message| message.record.clone()).collect();
        page(&rows, next)
    }

    /// What `/sync/history` tells, with another session's events among ours.
    fn history(&self) -> String {
        let event = |session: &str, record: &str| {
            let info = Json::parse(record).unwrap().get("info").unwrap().text();
            format!(
                r#"{{"id":"evt_1","aggregate_id":"{session}","seq":1,"type":"message.updated.1","data":{{"sessionID":"{session}","info":{info}}}}}"#
            )
        };
        let foreign = event("ses_other", &record("u_foreign", Some(0)));
        let mut events = vec![foreign];
        events.extend(self.messages.iter().map(|message| event(SESSION, &message.record)));
        format!("[{}]", events.join(","))
    }
}
