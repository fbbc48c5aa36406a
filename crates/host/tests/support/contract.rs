//! What clients demand of the host, as they check it: an answer that breaks one of these rules is
//! thrown away by them, without another try.
//!
//! [`check`] sees every answer that a test gets; [`super::host::RunningHost`] lets none past it.

use reqwest::{Url, header::HeaderMap};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::described;

/// What was asked.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub method: &'a str,
    /// Path and query, still escaped.
    pub target: &'a str,
}

/// What came back, its body decoded.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    pub status: u16,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
}

impl Told<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("headers are ASCII"))
    }
}

/// Checks an answer as the clients of its route do.
#[track_caller]
pub fn check(asked: Asked<'_>, told: Told<'_>) {
    described::check(asked, told);
    let target = Target::of(asked.target);
    if let Some(id) = told.header("x-turnkeep-event-id") {
        let (epoch, number) = id.split_once('-').expect("an id is an epoch and a number");
        assert!(epoch.len() == 16 && number.parse::<u64>().is_ok(), "{id}");
    }
    let is_empty = asked.method == "HEAD" || matches!(told.status, 204 | 304);
    if is_empty {
        assert!(told.body.is_empty(), "a {} to a {} has no body", told.status, asked.method);
        assert!(
            asked.method == "HEAD" || told.header("content-type").is_none(),
            "what is not there has no type"
        );
        return;
    }
    if target.segments().as_slice() == ["api", "session.export"] && told.status == 200 {
        return check_archive(told);
    }
    if let ["api", "turnkeep", "sessions", _, "events"] = target.segments().as_slice()
        && told.status == 200
    {
        return check_event_lines(told);
    }
    if let ["api", "turnkeep", "sessions", _, "events", "stream"] = target.segments().as_slice()
        && told.status == 200
    {
        return check_event_blocks(told);
    }
    // Another method under `/api` is another resource: the upstream's, whose answer is its own.
    let is_handed_on = target.is_api()
        && !["GET", "OPTIONS"].contains(&asked.method)
        && !target.segments().contains(&"transcript-cache");
    let is_ours = told.header("content-type") == Some("application/json; charset=utf-8");
    if is_handed_on && (told.status < 400 || !is_ours) {
        return;
    }
    let is_json = told.header("content-type").is_some_and(|media| media.contains("json"));
    if !is_json {
        assert!(!target.is_api(), "everything under /api answers with JSON");
        return;
    }
    if let ["api", "session", _, "message"] = target.segments().as_slice()
        && let Ok(Value::Array(records)) = serde_json::from_slice(told.body)
    {
        return target.check_official_list(&records, told);
    }
    assert_eq!(told.header("content-type"), Some("application/json; charset=utf-8"));
    let body = std::str::from_utf8(told.body).expect("JSON is UTF-8");
    let json: Value = serde_json::from_str(body).expect("a JSON body is JSON");
    let object = json.as_object().expect("a JSON body is an object");
    if told.status >= 400 {
        return check_error(object);
    }
    assert_eq!(told.status, 200, "JSON comes with success or an error");
    assert_eq!(object.get("error"), None, "a success is no error");
    match target.segments().as_slice() {
        ["api", "openchamber", "sessions", _, "messages"] => target.check_turn_page(object),
        ["api", "openchamber", "sessions", _, "messages", "reconcile"] => {
            target.check_reconcile(object, body);
        }
        ["api", "openchamber", "sessions", _, "changes"] => target.check_changes(object),
        ["api", "session", _, "message", _] => target.check_message(object),
        ["api", "openchamber", "transcript-cache", name] => {
            target.check_transcript_cache(name, asked.method, object);
        }
        ["api", "turnkeep", "sessions"] => check_list(object),
        ["api", "turnkeep", "sessions", _] => check_session(object),
        ["openapi.json"] => {}
        ["auth", name] => return check_auth(name, object),
        ["health"] => return assert_eq!(body, r#"{"status":"ok"}"#),
        _ => panic!("no client knows what {} answers with", asked.target),
    }
    if asked.method != "GET" {
        return assert_eq!(told.header("etag"), None, "what was done is not held");
    }
    let tag = told.header("etag").expect("what can be held has a tag");
    let length = format!("W/\"{:x}-", body.len());
    assert!(tag.starts_with(&length) && tag.len() == length.len() + 28, "{tag}");
}

/// The records of a page as they are spelled.
#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow)]
    records: Vec<&'a RawValue>,
}

/// A target, its path in lower case and its query decoded.
struct Target {
    url: Url,
    path: String,
}

impl Target {
    fn of(target: &str) -> Self {
        let url = Url::parse(&format!("http://host{target}")).expect("a target is part of a URL");
        let path = url.path().to_ascii_lowercase();
        Self { url, path }
    }

    fn segments(&self) -> Vec<&str> {
        let path = self.path.strip_prefix('/').unwrap_or(&self.path);
        path.strip_suffix('/').unwrap_or(path).split('/').collect()
    }

    fn is_api(&self) -> bool {
        self.segments().first() == Some(&"api")
    }

    /// The value of a parameter that is there once.
    fn parameter(&self, name: &str) -> Option<String> {
        let mut values = self.url.query_pairs().filter(|(key, _)| key == name);
        let value = values.next().map(|(_, value)| value.into_owned());
        value.filter(|_| values.next().is_none())
    }

    fn wants_reasoning(&self) -> bool {
        let first = self.url.query_pairs().find(|(key, _)| key == "includeReasoning");
        first.is_none_or(|(_, value)| value != "false")
    }

    fn check_turn_page(&self, page: &Map<String, Value>) {
        has_keys(page, &["records", "turnCount", "cursor", "complete", "partsProjection"]);
        assert_ne!(page.get("partial"), Some(&Value::Bool(true)), "a page is never partial");
        let records = self.check_records(&page["records"]);
        for record in records {
            check_slim(record);
        }
        let wanted = self.parameter("turns").map_or(3, |turns| turns.trim().parse().unwrap());
        let count = page["turnCount"].as_u64().expect("turnCount is a natural number");
        assert!(count <= wanted, "no more turns than asked for");
        let complete = page["complete"].as_bool().expect("complete is a boolean");
        match &page["cursor"] {
            Value::Null => assert!(complete, "an open page has a cursor"),
            Value::String(cursor) => {
                assert!(!complete, "a complete page has no cursor");
                assert!(!cursor.is_empty(), "a cursor is not empty");
                assert!(!records.is_empty(), "an open page has records");
                assert_ne!(Some(cursor), self.parameter("before").as_ref(), "a cursor leads on");
            }
            other => panic!("a cursor is a string or null, not {other}"),
        }
        assert_eq!(page["partsProjection"], "slim-v1");
    }

    fn check_reconcile(&self, page: &Map<String, Value>, body: &str) {
        has_keys(
            page,
            &[
                "records",
                "anchorFound",
                "capturedHeadMessageID",
                "latestHeadMessageID",
                "continuation",
                "complete",
                "resetRequired",
                "scannedRecords",
                "responseBytes",
            ],
        );
        let records = self.check_records(&page["records"]);
        let complete = page["complete"].as_bool().expect("complete is a boolean");
        let reset = page["resetRequired"].as_bool().expect("resetRequired is a boolean");
        let found = page["anchorFound"].as_bool().expect("anchorFound is a boolean");
        match &page["continuation"] {
            Value::Null => assert!(complete, "an open round has a continuation"),
            Value::String(next) => {
                assert!(!complete && !reset, "what has ended has no continuation");
                assert!(!next.is_empty(), "a continuation is not empty");
                assert_ne!(Some(next), self.parameter("continuation").as_ref(), "it leads on");
                assert!(!records.is_empty(), "an open round makes progress");
            }
            other => panic!("a continuation is a string or null, not {other}"),
        }
        let heads = ["capturedHeadMessageID", "latestHeadMessageID"].map(|key| match &page[key] {
            Value::Null => None,
            Value::String(id) if !id.is_empty() => Some(id),
            other => panic!("{key} is an id or null, not {other}"),
        });
        if reset {
            assert!(complete && !found, "a reset ends a round whose anchor is not there");
            assert!(records.is_empty(), "what is to be dropped is not sent first");
        } else {
            assert!(heads.iter().all(Option::is_some), "what has a gap has a head");
            assert!(!complete || found, "a round ends with its anchor");
        }
        if let (Some(anchor), true) = (self.parameter("anchor"), complete && !reset) {
            assert_eq!(id_of(&records[0]), anchor, "a gap starts with its anchor");
        }
        let scanned = page["scannedRecords"].as_u64().expect("scannedRecords is a natural number");
        assert!(reset || scanned >= records.len() as u64, "what is sent was scanned");
        let raw: Raw<'_> = serde_json::from_str(body).unwrap();
        let bytes: usize = raw.records.iter().map(|record| record.get().len()).sum();
        assert_eq!(page["responseBytes"], bytes, "responseBytes are those of the records");
    }

    /// The official list is as its source has it, reasoning aside. Where it goes on is told twice.
    fn check_official_list(&self, records: &[Value], told: Told<'_>) {
        for record in records {
            self.check_reasoning(parts_of(record));
        }
        let (next, link) = (told.header("x-next-cursor"), told.header("link"));
        assert_eq!(next.is_some(), link.is_some(), "both or none");
        if let (Some(next), Some(link)) = (next, link) {
            assert!(
                link.starts_with("</api/session/") && link.contains("; rel=\"next\""),
                "{link}"
            );
            assert!(!next.is_empty() && !records.is_empty(), "a cursor leads on");
        }
    }

    fn check_message(&self, message: &Map<String, Value>) {
        let info = message.get("info").and_then(Value::as_object).unwrap_or(message);
        check_summary(info);
        if let Some(parts) = message.get("parts").and_then(Value::as_array) {
            self.check_reasoning(parts);
        }
    }

    fn check_changes(&self, changes: &Map<String, Value>) {
        if self.parameter("file").is_some_and(|file| !file.is_empty()) {
            has_keys(changes, &["diff"]);
            let file = changes["diff"]["file"].as_str();
            assert_eq!(file, self.parameter("file").as_deref(), "the diff of the file asked for");
            return;
        }
        has_keys(changes, &["files"]);
        for file in changes["files"].as_array().expect("files are an array") {
            let file = file.as_object().expect("a file is an object");
            let status = file.contains_key("status");
            let keys: &[&str] = if status {
                &["file", "status", "additions", "deletions"]
            } else {
                &["file", "additions", "deletions"]
            };
            has_keys(file, keys);
            assert!(file["file"].as_str().is_some_and(|path| !path.is_empty()), "{file:?}");
            assert!(!status || file["status"].is_string(), "{file:?}");
            assert!(file["additions"].is_number() && file["deletions"].is_number(), "{file:?}");
        }
    }

    fn check_transcript_cache(&self, name: &str, method: &str, json: &Map<String, Value>) {
        let natural = |value: &Value| value.as_u64().expect("a natural number");
        match (method, name) {
            ("GET", "session") => {
                has_keys(json, &["available", "scope", "records", "byteSize"]);
                check_scope(&json["scope"]);
                let records = json["records"].as_array().expect("records are an array");
                for record in records {
                    self.check_cached(record);
                    assert_eq!(record["scope"], json["scope"], "records of the scope asked for");
                }
                let bytes: u64 = records.iter().map(|record| natural(&record["byteSize"])).sum();
                assert_eq!(natural(&json["byteSize"]), bytes);
                let keys = records.iter().map(|record| {
                    let key = &record["sortKey"];
                    (key["created"].as_f64().unwrap(), key["messageID"].as_str().unwrap())
                });
                assert!(keys.is_sorted_by(|one, other| one < other), "records are in order");
            }
            ("GET", "message") => {
                has_keys(json, &["available", "record"]);
                self.check_cached(&json["record"]);
                let asked_for = self.parameter("messageID");
                assert_eq!(json["record"]["messageID"].as_str(), asked_for.as_deref());
            }
            ("PUT", "message") => match (json["status"].as_str(), json.get("reason")) {
                (Some("written"), None) => {
                    has_keys(json, &["status", "record"]);
                    self.check_cached(&json["record"]);
                }
                (Some("skipped"), Some(reason)) if reason == "not-settled" => {
                    has_keys(json, &["status", "reason"]);
                }
                (Some("skipped"), Some(reason)) => {
                    has_keys(json, &["status", "reason", "record"]);
                    assert!(reason == "slim-downgrade" || reason == "unchanged", "{reason}");
                    self.check_cached(&json["record"]);
                }
                other => panic!("no outcome of a write: {other:?}"),
            },
            ("POST", "evict") => {
                has_keys(json, &["evicted", "freedBytes", "remainingBytes"]);
                json.values().for_each(|number| {
                    natural(number);
                });
            }
            other => panic!("no client asks the transcript cache for {other:?}"),
        }
        assert!(method != "GET" || json["available"] == true, "what answers is available");
    }

    fn check_cached(&self, record: &Value) {
        let record = record.as_object().expect("a record is an object");
        has_keys(
            record,
            &[
                "scope",
                "messageID",
                "info",
                "parts",
                "partCompleteness",
                "completeness",
                "contentHash",
                "byteSize",
                "lastAccessedAt",
                "sortKey",
            ],
        );
        check_scope(&record["scope"]);
        assert!(record["info"].is_object(), "info is an object");
        assert_eq!(record["info"]["id"], record["messageID"]);
        let parts = record["parts"].as_array().expect("parts are an array");
        self.check_reasoning(parts);
        let word = |part: &Value| if part["slim"] == true { "slim" } else { "full" };
        let words: Vec<_> = parts.iter().map(word).collect();
        assert_eq!(record["partCompleteness"], Value::from(words.clone()), "a word for each part");
        let completeness = record["completeness"].as_str().expect("a word");
        assert!(["slim", "full"].contains(&completeness), "{completeness}");
        assert!(
            completeness == "slim" || !words.contains(&"slim"),
            "slim parts make a slim record"
        );
        let hash = record["contentHash"].as_str().expect("a hash is a string");
        assert!(hash.len() == 64 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()), "{hash}");
        assert!(record["byteSize"].is_u64() && record["lastAccessedAt"].is_u64(), "{record:?}");
        let key = record["sortKey"].as_object().expect("a sort key is an object");
        has_keys(key, &["created", "messageID"]);
        assert!(key["created"].is_number(), "{key:?}");
        assert_eq!(key["messageID"], record["messageID"]);
    }

    fn check_records<'a>(&self, records: &'a Value) -> &'a [Value] {
        let records = records.as_array().expect("records are an array");
        let mut ids: Vec<&str> = Vec::new();
        for record in records {
            let info = record["info"].as_object().expect("info is an object");
            let id = info.get("id").and_then(Value::as_str).expect("info.id is a string");
            assert!(!id.is_empty(), "info.id is not empty");
            assert!(record.get("parts").is_none_or(Value::is_array), "parts are an array");
            check_summary(info);
            self.check_reasoning(parts_of(record));
            ids.push(id);
        }
        ids.sort_unstable();
        let sent = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), sent, "no record comes twice");
        records
    }

    fn check_reasoning(&self, parts: &[Value]) {
        if !self.wants_reasoning() {
            assert!(parts.iter().all(|part| part["type"] != "reasoning"), "it was not wanted");
        }
    }
}

fn check_scope(scope: &Value) {
    let scope = scope.as_object().expect("a scope is an object");
    has_keys(scope, &["transport", "generation", "directory", "sessionID"]);
    assert!(scope["generation"].is_i64(), "a generation is an integer");
    for key in ["transport", "directory", "sessionID"] {
        assert!(scope[key].as_str().is_some_and(|it| !it.is_empty()), "{key}");
    }
}

fn parts_of(record: &Value) -> &[Value] {
    record.get("parts").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn id_of(record: &Value) -> &str {
    record["info"]["id"].as_str().expect("info.id is a string")
}

fn has_keys(object: &Map<String, Value>, expected: &[&str]) {
    let keys: Vec<_> = object.keys().collect();
    assert_eq!(keys, expected, "these keys in this order");
}

/// An error says what is wrong, and nothing of what the upstream or a log said.
fn check_error(error: &Map<String, Value>) {
    let text = error.get("error").and_then(Value::as_str).expect("an error has a text");
    assert!(!text.is_empty() && text.len() < 200, "{text}");
    for (key, value) in error {
        if key == "restarting" {
            assert_eq!(value, true, "it is said only when it is so");
            continue;
        }
        if key == "locked" {
            assert_eq!((text, value), ("authentication required", &Value::Bool(true)));
            continue;
        }
        assert!(["error", "code", "session"].contains(&key.as_str()), "{key} in an error");
        assert!(value.is_string(), "{key} of an error is a string");
    }
}

/// One event a line, each the next.
fn check_event_lines(told: Told<'_>) {
    assert_eq!(told.header("content-type"), Some("application/x-ndjson"));
    let body = std::str::from_utf8(told.body).expect("JSON is UTF-8");
    assert!(body.is_empty() || body.ends_with('\n'), "a line is whole");
    let mut next = None;
    for line in body.lines() {
        next = Some(check_event(line, next));
    }
}

/// One event a block, each the next; comments between them, an error at the end if anywhere.
pub fn check_event_blocks(told: Told<'_>) {
    assert_eq!(told.header("content-type"), Some("text/event-stream"));
    assert_eq!(told.header("content-encoding"), None, "events leave when they happen");
    let body = std::str::from_utf8(told.body).expect("JSON is UTF-8");
    assert!(body.is_empty() || body.ends_with("\n\n"), "a block is whole");
    let (mut next, mut is_over) = (None, false);
    for block in body.split_terminator("\n\n").filter(|block| !block.starts_with(':')) {
        assert!(!is_over, "an error is the last thing");
        let (first, data) = block.split_once("\ndata: ").expect("a block has data");
        assert!(!data.contains(['\n', '\r']), "data is one line");
        if first == "event: error" {
            let error: Value = serde_json::from_str(data).unwrap();
            check_error(error.as_object().expect("an error is an object"));
            is_over = true;
        } else {
            let seq = check_event(data, next) - 1;
            assert_eq!(first, format!("id: {seq}"));
            next = Some(seq + 1);
        }
    }
}

/// The seq after that of the event.
fn check_event(text: &str, wanted: Option<u64>) -> u64 {
    let event: Value = serde_json::from_str(text).expect("an event is JSON");
    let seq = event["seq"].as_u64().expect("an event has a seq");
    assert!(wanted.is_none_or(|wanted| wanted == seq), "{seq} follows");
    assert!(event["type"].is_string() && event["time"].is_number());
    seq + 1
}

/// What the reader's login goes by.
fn check_auth(name: &str, told: &Map<String, Value>) {
    let is_in = told["authenticated"].as_bool().expect("authenticated is a boolean");
    match name {
        "login" => has_keys(told, &["authenticated", "scope"]),
        "logout" => has_keys(told, &["authenticated"]),
        "status" => {
            has_keys(told, &["authenticated", "passwordRequired", "scope", "via"]);
            assert!(told["passwordRequired"].is_boolean(), "{told:?}");
            assert_eq!(told["via"].is_string(), is_in, "{told:?}");
            assert_eq!(told["scope"].is_string(), is_in, "{told:?}");
        }
        _ => panic!("there is no /auth/{name}"),
    }
}

/// Diffs leave without their patches, counted.
fn check_summary(info: &Map<String, Value>) {
    let Some(summary) = info.get("summary").and_then(Value::as_object) else { return };
    let Some(diffs) = summary.get("diffs") else { return };
    let diffs = diffs.as_array().expect("diffs are an array");
    for diff in diffs {
        for key in diff.as_object().expect("a diff is an object").keys() {
            let known = ["file", "status", "additions", "deletions"];
            assert!(known.contains(&key.as_str()), "{key} in a reduced diff");
        }
    }
    assert_eq!(summary["diffCount"], diffs.len());
    assert_eq!(summary["hasDiffs"], !diffs.is_empty());
}

/// What a turn page refers to is marked, and has nothing of what makes it large.
fn check_slim(record: &Value) {
    let info = &record["info"];
    let role = info["clientRole"].as_str().or(info["role"].as_str());
    for part in parts_of(record) {
        let heavy: &[&str] = match part["type"].as_str() {
            Some("file") => &["url", "source", "metadata"],
            Some("tool") if role != Some("user") => &["output", "error", "attachments"],
            // One that is being written has the text so far, for the events to add to.
            Some("reasoning") if part["slim"].is_null() && part["time"]["end"].is_null() => {
                continue;
            }
            Some("reasoning") if role != Some("user") => &["text"],
            _ => continue,
        };
        assert_eq!(part["slim"], true, "{part}");
        let state = if part["type"] == "tool" { &part["state"] } else { part };
        for key in heavy {
            assert!(state.get(*key).is_none(), "{key} in a slim {}", part["type"]);
        }
    }
}

/// An archive is saved as it comes, under the name that comes with it.
fn check_archive(told: Told<'_>) {
    assert_eq!(told.header("content-type"), Some("application/zip"));
    assert_eq!(told.header("content-encoding"), None, "an archive is compressed already");
    let name = told.header("content-disposition").expect("an archive has a name");
    let name = name.strip_prefix("attachment; filename=\"dsh-session-");
    let name = name.and_then(|name| name.strip_suffix(".zip\"")).expect("of the usual form");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    assert!(!name.is_empty() && name.bytes().all(plain), "{name}");
    assert!(told.body.starts_with(b"PK\x03\x04"), "an archive begins with an entry");
}

fn check_list(list: &Map<String, Value>) {
    assert!(list["cursor"].is_null() || list["cursor"].as_str().is_some_and(|it| !it.is_empty()));
    for session in list["sessions"].as_array().expect("sessions are an array") {
        check_session(session.as_object().expect("a session is an object"));
    }
}

fn check_session(session: &Map<String, Value>) {
    assert!(session["id"].as_str().is_some_and(|id| !id.is_empty()), "{session:?}");
    assert!(session["source"].is_string() && session["state"].is_string(), "{session:?}");
}

/// The ids of a page's records, old to new.
pub fn ids(page: &Value) -> Vec<String> {
    let records = page["records"].as_array().expect("records are an array");
    records.iter().map(|record| id_of(record).to_owned()).collect()
}
