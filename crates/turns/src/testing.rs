//! Sessions in memory, served as their sources serve them.

pub(crate) mod drafts;
pub(crate) mod shifting;

use turnkeep_log::{
    Text,
    id::Seq,
    json::{Json, JsonText},
};

use crate::{
    cursor::{Position, decode_seq, encode_seq},
    page::{Answer, PageRequest, Purpose, SourcePage},
};

pub(crate) const SESSION: &str = "ses_1";

/// A record whose kind is the first letter of its id: `u`ser, `a`ssistant, `s`ynthetic, sub`t`ask,
/// `c`ompaction, `d`ivider-like tool row.
pub(crate) fn record(id: &str, created: Option<u64>) -> String {
    let (role, part) = match id.as_bytes()[0] {
        b'u' => ("user", r#"{"type":"text","text":"t"}"#),
        b's' => ("user", r#"{"type":"text","text":"t","synthetic":true}"#),
        b't' => ("user", r#"{"type":"subtask"}"#),
        b'c' => ("user", r#"{"type":"compaction"}"#),
        b'd' => ("tool", r#"{"type":"text","text":"t"}"#),
        _ => ("assistant", r#"{"type":"text","text":"t"}"#),
    };
    let time = created.map_or(String::new(), |ms| format!(r#","time":{{"created":{ms}}}"#));
    format!(r#"{{"info":{{"id":"{id}","role":"{role}"{time}}},"parts":[{part}]}}"#)
}

/// The id of a record.
pub(crate) fn id_of(record: &str) -> String {
    let record: serde_json::Value = serde_json::from_str(record).expect("a record is JSON");
    record["info"]["id"].as_str().expect("a record has an id").to_owned()
}

/// OpenCode's cursor for what is older than this place.
pub(crate) fn at(id: &str, time: u64) -> String {
    Position { time, id: id.to_owned() }.encode()
}

/// A source cursor as people read it.
pub(crate) fn shown(before: Option<&str>) -> String {
    let Some(before) = before else { return "newest".to_owned() };
    match (Position::decode(before), decode_seq(before)) {
        (Some(position), _) => format!("{}@{}", position.id, position.time),
        (None, Some(seq)) => format!("#{seq}"),
        (None, None) => before.to_owned(),
    }
}

pub(crate) fn page(records: &[String], next: Option<String>) -> Answer {
    let body = Text::from(format!("[{}]", records.join(",")));
    Answer::Page(SourcePage::from_opencode(&body, next).expect("rows of these tests have ids"))
}

/// Rows without times and opaque cursors: `k` stands before the rows `0..k`.
pub(crate) struct Indexed(pub(crate) Vec<String>);

impl Indexed {
    pub(crate) fn new(ids: &str) -> Self {
        Self(ids.split_whitespace().map(|id| record(id, None)).collect())
    }

    pub(crate) fn answer(&self, request: &PageRequest) -> Answer {
        let end = request.before.as_ref().map(|before| before.parse());
        let Ok(end) = end.unwrap_or(Ok(self.0.len())) else { return Answer::BadCursor };
        let Some(rows) = self.0.get(..end) else { return Answer::BadCursor };
        let start = end.saturating_sub(request.limit);
        page(&rows[start..], (start > 0).then(|| start.to_string()))
    }
}

/// One message of the model.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// What it is ordered by. The time in the record may be another.
    pub(crate) place: Position,
    pub(crate) record: String,
    pub(crate) encodable: bool,
}

/// A session as OpenCode keeps and pages it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// Old to new.
    pub(crate) messages: Vec<Message>,
}

impl Model {
    /// `id@time` for each message, in any order.
    pub(crate) fn new(messages: &str) -> Self {
        let mut model = Self::default();
        for message in messages.split_whitespace() {
            let (id, time) = message.split_once('@').expect("id@time");
            let time = time.parse().expect("a time");
            model.add(id, time, time);
        }
        model
    }

    pub(crate) fn add(&mut self, id: &str, time: u64, shown_time: u64) {
        let place = Position { time, id: id.to_owned() };
        let record = record(id, Some(shown_time));
        self.messages.push(Message { place, record, encodable: true });
        self.messages.sort_by(|one, other| one.place.cmp(&other.place));
    }

    pub(crate) fn remove(&mut self, id: &str) {
        self.messages.retain(|message| message.place.id != id);
    }

    pub(crate) fn poison(&mut self, id: &str) {
        for message in &mut self.messages {
            message.encodable &= message.place.id != id;
        }
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.messages.iter().map(|message| message.place.id.clone()).collect()
    }

    pub(crate) fn answer(&self, request: &PageRequest) -> Answer {
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

/// Records of a log with the seq of each one's first event, old to new.
pub(crate) struct Log(pub(crate) Vec<(u64, String)>);

impl Log {
    /// Times run backwards: they must not matter.
    pub(crate) fn new(ids: &str) -> Self {
        let records = ids.split_whitespace().enumerate().map(|(index, id)| {
            let seq = index as u64 * 10;
            (seq, record(id, Some(1_000_000 - seq)))
        });
        Self(records.collect())
    }

    pub(crate) fn answer(&self, request: &PageRequest) -> Answer {
        let before = request.before.as_ref().map(|before| decode_seq(before).expect("a seq").0);
        let older = |(seq, _): &&(u64, String)| before.is_none_or(|before| *seq < before);
        let older: Vec<_> = self.0.iter().filter(older).collect();
        let start = older.len().saturating_sub(request.limit);
        let rows = older[start..].iter().map(|(seq, record)| {
            (Seq(*seq), JsonText::parse(&Text::from(record.as_str())).expect("a record is JSON"))
        });
        let next = (start > 0).then(|| encode_seq(Seq(older[start].0)));
        Answer::Page(SourcePage::from_log(rows.collect(), next).expect("records have ids"))
    }
}
