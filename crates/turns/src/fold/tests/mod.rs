mod answers;
pub(super) mod chaos;
mod compactions;
mod ends;
pub(super) mod golden;
mod pages;
mod tools;
mod users;

use serde_json::{Value, json};
use turnkeep_log::{Event, Seq, SessionId, Text};

use super::Fold;

/// A log under construction. The event at seq n happened at 1000 + n.
#[derive(Default)]
pub(super) struct Log {
    pub(super) events: Vec<Event>,
}

impl Log {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Appends an event; `data` is JSON text.
    fn raw(mut self, kind: &str, data: &str) -> Self {
        let seq = self.events.len();
        self.push(&format!(
            r#"{{"type":"{kind}","seq":{seq},"time":{},"data":{data}}}"#,
            1000 + seq
        ));
        self
    }

    pub(super) fn add(self, kind: &str, data: &Value) -> Self {
        self.raw(kind, &data.to_string())
    }

    /// Appends a message-making event with what it came from and how it joins the surface.
    fn surface(mut self, kind: &str, data: &Value, sources: &[u64], op: &Value) -> Self {
        let seq = self.events.len();
        let sources = json!(sources);
        self.push(&format!(
            r#"{{"type":"{kind}","seq":{seq},"time":{},"data":{data},"sourceEventSeqs":{sources},"surfaceOp":{op}}}"#,
            1000 + seq
        ));
        self
    }

    fn push(&mut self, text: &str) {
        self.events.push(Event::parse(&Text::from(text)).unwrap());
    }

    pub(super) fn turn(self) -> Self {
        self.raw("turn/start", r#"{"turn":1}"#)
    }

    fn step(self, step: u64) -> Self {
        self.add("step/start", &json!({"turn": 1, "step": step}))
    }

    fn end_step(self, step: u64) -> Self {
        self.add("step/end", &json!({"turn": 1, "step": step}))
    }

    fn end_turn(self, reason: &Value) -> Self {
        self.add("turn/end", &json!({"turn": 1, "reason": reason}))
    }

    pub(super) fn prompt(self, id: &str, text: &str) -> Self {
        self.message(id, "user", &json!([{"type": "text", "text": text}]))
    }

    fn message(self, id: &str, source: &str, content: &Value) -> Self {
        let message =
            json!({"id": id, "role": "user", "content": content, "source": {"kind": source}});
        self.add("user/message", &message)
    }

    fn header(self) -> Self {
        let config = json!({"provider": "p", "model": "m"});
        self.add("request/header", &json!({"header": {"config": config}, "reason": "initial"}))
    }

    /// A chunk of step 1.
    fn chunk(self, chunk: &Value) -> Self {
        self.chunk_in(1, chunk)
    }

    fn chunk_in(self, step: u64, chunk: &Value) -> Self {
        self.add("assistant/chunk", &json!({"turn": 1, "step": step, "chunk": chunk}))
    }

    pub(super) fn block(self, index: u64, kind: &str) -> Self {
        self.chunk(&json!({"type": "block-start", "index": index, "blockType": kind}))
    }

    pub(super) fn text(self, index: u64, text: &str) -> Self {
        self.chunk(&json!({"type": "text-delta", "index": index, "text": text}))
    }

    pub(super) fn end_block(self, index: u64, block: &Value) -> Self {
        self.chunk(&json!({"type": "block-end", "index": index, "block": block}))
    }

    fn finish(self, kind: &str) -> Self {
        self.chunk(&json!({"type": "finish", "reason": {"kind": kind}}))
    }

    fn fail(self, message: &str) -> Self {
        let failure = json!({"message": message, "code": "SERVER"});
        self.chunk(&json!({"type": "finish", "reason": {"kind": "error", "failure": failure}}))
    }

    /// An `assistant/message` of step 1.
    pub(super) fn answer(self, content: &Value) -> Self {
        self.answer_in(1, content)
    }

    fn answer_in(self, step: u64, content: &Value) -> Self {
        self.add("assistant/message", &answer(step, content))
    }

    fn call(self, id: &str) -> Self {
        let call = json!({"turn": 1, "step": 1, "callId": id, "name": "bash", "arguments": "{}"});
        self.add("tool/call", &call)
    }

    fn result(self, id: &str, content: &Value) -> Self {
        self.add("tool/result", &result(1, id, content))
    }

    fn fold(&self) -> Fold {
        fold(&SessionId::new("s").unwrap(), &self.events)
    }

    /// Every record of the transcript.
    fn records(&self) -> Vec<Value> {
        all(&self.fold())
    }

    /// The only record with this id.
    fn record(&self, id: &str) -> Value {
        value(self.fold().record(id).unwrap_or_else(|| panic!("no record {id}")).text())
    }

    /// The ids of the records, in order.
    fn ids(&self) -> Vec<String> {
        self.records().iter().map(|record| id_of(record).to_owned()).collect()
    }
}

fn answer(step: u64, content: &Value) -> Value {
    let source = json!({"kind": "model", "provider": "p", "model": "m"});
    let message = json!({"id": "x", "role": "assistant", "content": content, "source": source});
    json!({"turn": 1, "step": step, "message": message})
}

fn result(step: u64, id: &str, content: &Value) -> Value {
    let block = json!({"type": "tool-result", "toolCallId": id, "content": content});
    let source = json!({"kind": "tool", "callId": id});
    let message = json!({"id": "r", "role": "user", "content": [block], "source": source});
    json!({"turn": 1, "step": step, "message": message})
}

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn call(id: &str, arguments: &str) -> Value {
    json!({"type": "tool-call", "id": id, "name": "bash", "arguments": arguments})
}

pub(super) fn fold(session: &SessionId, events: &[Event]) -> Fold {
    let mut fold = Fold::new(session);
    for event in events {
        fold.push(event);
    }
    fold
}

pub(super) fn all(fold: &Fold) -> Vec<Value> {
    let page = fold.page(None, usize::MAX);
    assert!(!page.more);
    assert_eq!(page.rows.len(), fold.len());
    page.rows.iter().map(|(_, row)| value(row.text())).collect()
}

/// `serde_json` refuses a lone surrogate. It is read as what stands for one in an id.
pub(super) fn value(text: &str) -> Value {
    serde_json::from_str(&text.replace(r"\ud800", r"\ufffd")).unwrap()
}

pub(super) fn id_of(record: &Value) -> &str {
    record["info"]["id"].as_str().unwrap()
}

/// Whether a record counts as a prompt of a person, to those who page by turns.
fn is_boundary(record: &Value) -> bool {
    let info = &record["info"];
    let divider = info["id"].as_str().is_some_and(|id| id.starts_with("oc_asst_session_divider:"));
    if divider || info["role"] != "user" {
        return false;
    }
    let parts = record["parts"].as_array().unwrap();
    let system = |part: &Value| part["type"] == "subtask" || part["type"] == "compaction";
    let synthetic = |part: &Value| part["synthetic"] == true;
    parts.is_empty() || (!parts.iter().any(system) && !parts.iter().all(synthetic))
}

/// What holds for any transcript, of whatever log.
fn check(fold: &Fold) {
    let page = fold.page(None, usize::MAX);
    assert!(page.rows.is_sorted_by(|(a, _), (b, _)| a < b));
    assert!(page.rows.last().is_none_or(|(seq, _)| *seq < fold.next_seq()));
    let mut ids = std::collections::HashSet::new();
    for (record, (_, row)) in all(fold).iter().zip(&page.rows) {
        let id = id_of(record);
        assert!(!id.is_empty());
        assert!(ids.insert(id.to_owned()), "{id} twice");
        assert_eq!(fold.record(id).as_ref(), Some(row));
        assert_eq!(record["info"]["sessionID"], "s");
        assert!(record["info"]["time"]["created"].is_number());
        match record["info"]["role"].as_str().unwrap() {
            "user" => {}
            "assistant" => check_answer(&record["info"]),
            role => panic!("role {role}"),
        }
        for part in record["parts"].as_array().unwrap() {
            let part_id = part["id"].as_str().unwrap();
            assert!(part_id.strip_prefix(id).is_some_and(|rest| rest.starts_with('.')));
            assert!(ids.insert(part_id.to_owned()), "{part_id} twice");
            assert_eq!((&part["messageID"], &part["sessionID"]), (&json!(id), &json!("s")));
            check_part(part);
        }
    }
    let mut walked = Vec::new();
    let mut before = None;
    loop {
        let page = fold.page(before, 2);
        walked.splice(0..0, page.rows.clone());
        match page.rows.first() {
            Some((seq, _)) if page.more => before = Some(*seq),
            _ => break,
        }
    }
    assert_eq!(walked, page.rows);
    assert_eq!(fold.page(Some(Seq(0)), 5).rows, []);
}

fn check_answer(info: &Value) {
    assert!(info["providerID"].is_string() && info["modelID"].is_string());
    assert!(info["cost"].is_number());
    let tokens = &info["tokens"];
    let counts = [&tokens["input"], &tokens["output"], &tokens["reasoning"]];
    assert!(counts.into_iter().all(Value::is_number));
    assert!(tokens["cache"]["read"].is_number() && tokens["cache"]["write"].is_number());
    assert!(info.get("parentID").is_none_or(Value::is_string));
    assert!(info.get("finish").is_none_or(Value::is_string));
    assert!(info["time"].get("completed").is_none_or(Value::is_number));
    if let Some(error) = info.get("error") {
        assert!(error["name"].is_string() && error["data"]["message"].is_string());
    }
}

fn check_part(part: &Value) {
    let state = &part["state"];
    match part["type"].as_str().unwrap() {
        "text" => assert!(part["text"].is_string()),
        "reasoning" => assert!(part["text"].is_string() && part["time"]["start"].is_number()),
        "file" => assert!(part["mime"].is_string()),
        "compaction" => assert!(part["auto"].is_boolean()),
        "tool" => {
            assert!(part["callID"].is_string() && part["tool"].is_string());
            assert!(state["input"].is_object());
            assert!(state.get("metadata").is_none_or(Value::is_object));
            let (start, end) = (&state["time"]["start"], &state["time"]["end"]);
            match state["status"].as_str().unwrap() {
                "pending" => assert!(state["raw"].is_string()),
                "running" => assert!(start.is_number() && end.is_null()),
                "completed" => {
                    assert!(state["output"].is_string() && state["title"].is_string());
                    assert!(state["metadata"].is_object() && start.is_number() && end.is_number());
                }
                "error" => assert!(state["error"].is_string() && end.is_number()),
                status => panic!("status {status}"),
            }
        }
        kind => panic!("part {kind}"),
    }
}
