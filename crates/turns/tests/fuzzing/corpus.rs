//! Messages and events that a real server sent.

use std::{collections::HashMap, fs, sync::OnceLock};

use serde_json::{Value, value::RawValue};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/opencode");

/// Messages of every kind there is among the captures: a few of each role with each set of parts.
/// Long ones are left out, which would take most of the time.
pub fn records() -> &'static [String] {
    static RECORDS: OnceLock<Vec<String>> = OnceLock::new();
    RECORDS.get_or_init(|| {
        let mut kinds: HashMap<String, usize> = HashMap::new();
        let mut records = Vec::new();
        let mut files: Vec<_> = fs::read_dir(FIXTURES)
            .unwrap()
            .filter_map(|directory| fs::read_dir(directory.unwrap().path()).ok())
            .flat_map(|files| files.map(|file| file.unwrap().path()))
            .filter(|file| !file.ends_with("messages-full.json"))
            .collect();
        files.sort();
        for file in files {
            let body = fs::read_to_string(file).unwrap();
            let Ok(list) = serde_json::from_str::<Vec<Box<RawValue>>>(&body) else { continue };
            for record in list.iter().map(|record| record.get()) {
                let value: Value = serde_json::from_str(record).unwrap();
                let Some(parts) = value["parts"].as_array() else { continue };
                let types: Vec<_> = parts.iter().map(|part| &part["type"]).collect();
                let kind = format!("{} {types:?}", value["info"]["role"]);
                let count = kinds.entry(kind).or_default();
                if record.len() < 6000 && *count < 3 {
                    *count += 1;
                    records.push(record.to_owned());
                }
            }
        }
        assert!(records.len() > 20, "{} messages", records.len());
        records
    })
}

/// Events of every type there is among the captures, taken out of their wrappers: a few of each.
pub fn events() -> &'static [String] {
    static EVENTS: OnceLock<Vec<String>> = OnceLock::new();
    EVENTS.get_or_init(|| {
        let mut kinds: HashMap<String, usize> = HashMap::new();
        let stream = fs::read_to_string(format!("{FIXTURES}-events/a-short-global.sse")).unwrap();
        let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
        let events = data.filter_map(|data| {
            let event: Value = serde_json::from_str(data).unwrap();
            let event = &event["payload"];
            let kind = [&event["type"], &event["syncEvent"]["type"]].map(Value::to_string).concat();
            let text = event.to_string();
            let count = kinds.entry(kind).or_default();
            *count += 1;
            (*count <= 3 && text.len() < 6000).then_some(text)
        });
        let events: Vec<_> = events.collect();
        assert!(events.len() > 20, "{} events", events.len());
        events
    })
}
