//! What a real server sent, replayed: a page with its overlay and the events after it come to what
//! a client has that saw every event.

use std::{collections::BTreeMap, fs, rc::Rc};

use super::*;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/opencode");

/// The events of a stream, out of their wrappers.
fn events(name: &str) -> Vec<(Text, Value)> {
    let stream = fs::read_to_string(format!("{FIXTURES}-events/{name}")).unwrap();
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = data.map(|data| {
        let event: Value = serde_json::from_str(data).unwrap();
        let event = event.get("payload").unwrap_or(&event).clone();
        (text(&event), event)
    });
    events.collect()
}

/// What a message is, and its parts by their ids.
type Message = (Value, BTreeMap<String, Rc<Value>>);

/// Messages by session and id. Those that stay the same are shared by copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Transcript(BTreeMap<(String, String), Rc<Message>>);

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Transcript {
    fn message(&mut self, of: &Value, id: &str) -> &mut Message {
        let key = (string(&of["sessionID"]), string(&of[id]));
        Rc::make_mut(self.0.entry(key).or_default())
    }

    /// Applies an event as clients do; `deltas` says whether what is only ever said in deltas is
    /// kept, which a server does not.
    fn apply(&mut self, event: &Value, deltas: bool) {
        let body = &event["properties"];
        let part = &body["part"];
        match event["type"].as_str().unwrap() {
            "message.updated" => {
                let info = &body["info"];
                self.message(info, "id").0 = info.clone();
            }
            "message.removed" => {
                self.0.remove(&(string(&body["sessionID"]), string(&body["messageID"])));
            }
            "message.part.updated" => {
                self.message(part, "messageID")
                    .1
                    .insert(string(&part["id"]), Rc::new(part.clone()));
            }
            "message.part.removed" => {
                self.message(body, "messageID").1.remove(&string(&body["partID"]));
            }
            "message.part.delta" if deltas => {
                if let Some(part) =
                    self.message(body, "messageID").1.get_mut(&string(&body["partID"]))
                {
                    let field = &mut Rc::make_mut(part)[body["field"].as_str().unwrap()];
                    *field = (string(field) + body["delta"].as_str().unwrap()).into();
                }
            }
            _ => {}
        }
    }

    /// As a page has it, with what was open at a moment put over it.
    fn overlaid(&self, live: &LiveParts) -> Self {
        let messages = self.0.iter().map(|(key, message)| {
            let live = live.of_session(&key.0);
            if live.is_empty() {
                return (key.clone(), Rc::clone(message));
            }
            let parts: Vec<&Value> = message.1.values().map(|part| &**part).collect();
            let record = text(&json!({"info": message.0, "parts": parts}));
            let Some(overlaid) = live.overlay(&record) else {
                return (key.clone(), Rc::clone(message));
            };
            let record: Value = serde_json::from_str(&overlaid).unwrap();
            let parts = record["parts"].as_array().unwrap().iter();
            let parts: Vec<_> =
                parts.map(|part| (string(&part["id"]), Rc::new(part.clone()))).collect();
            assert!(parts.is_sorted_by(|one, other| one.0 < other.0));
            (key.clone(), Rc::new((record["info"].clone(), parts.into_iter().collect())))
        });
        Self(messages.collect())
    }
}

/// Takes some moments, most of them with something open, and reads a page at once and some events
/// later; then goes on from it with the events after the moment. Says how many moments had something
/// open.
fn replay(name: &str, step: usize) -> usize {
    const LATER: [usize; 4] = [0, 1, 5, 20];
    let events = events(name);
    let (mut live, mut client) = (LiveParts::new(1 << 20), Transcript::default());
    let (mut servers, mut clients, mut lives) = (Vec::new(), Vec::new(), Vec::new());
    let mut server = Transcript::default();
    for (text, event) in &events {
        servers.push(server.clone());
        clients.push(client.clone());
        lives.push(live.clone());
        live.apply(text);
        client.apply(event, true);
        server.apply(event, false);
    }
    let mut open = 0;
    let is_telling = |moment: &usize| !lives[*moment].is_empty() || moment.is_multiple_of(20);
    for moment in (0..events.len()).filter(is_telling).step_by(step) {
        open += usize::from(!lives[moment].is_empty());
        for later in LATER {
            let Some(server) = servers.get(moment + later) else { continue };
            let mut page = server.overlaid(&lives[moment]);
            for (_, event) in &events[moment..moment + later] {
                page.apply(event, true);
            }
            assert!(page == clients[moment + later], "{name}: {moment} read {later} later");
        }
    }
    // What is left are prompts that nobody has answered.
    assert_eq!(server.overlaid(&live), server);
    assert!(live.len() < 4, "{name}: {} parts are open at the end", live.len());
    open
}

#[test]
fn a_page_and_the_events_after_it_are_exact_while_turns_are_aborted() {
    assert!(replay("d-abort.sse", 2) > 30);
}

#[test]
fn a_page_and_the_events_after_it_are_exact_on_a_stream_that_says_things_twice() {
    assert!(replay("a-short-global.sse", 2) > 10);
}

#[test]
fn a_page_and_the_events_after_it_are_exact_for_every_kind_of_part() {
    assert!(replay("c-kinds.sse", 16) > 10);
}

#[test]
fn a_message_listed_in_the_middle_of_its_text_is_given_it() {
    let (mut live, mut words) = (LiveParts::new(1 << 20), String::new());
    let listed = fs::read_to_string(format!("{FIXTURES}/d-abort/text-during.json")).unwrap();
    let list: Value = serde_json::from_str(&listed).unwrap();
    let record = list.as_array().unwrap().last().unwrap();
    let part = record["parts"].as_array().unwrap().last().unwrap();
    assert_eq!(part["text"], "", "it is being written");
    let mut compared = 0;
    for (text, event) in events("d-abort.sse") {
        live.apply(&text);
        let body = &event["properties"];
        if event["type"] == "message.part.delta" && body["partID"] == part["id"] {
            words += body["delta"].as_str().unwrap();
            let record = super::text(record);
            let overlaid = live.of_session(part["sessionID"].as_str().unwrap()).overlay(&record);
            let literal = format!(r#""text":{}"#, json!(words));
            assert_eq!(*overlaid.unwrap(), record.replace(r#""text":"""#, &literal));
            compared += 1;
        }
    }
    assert!(compared > 10);
}

#[test]
fn a_patch_leaves_in_no_event_of_a_stream_and_reasoning_in_none_that_is_filtered() {
    for (name, repeated) in
        [("a-short-global.sse", true), ("c-kinds.sse", false), ("d-abort.sse", false)]
    {
        let mut filter = ReasoningFilter::default();
        let (mut reduced, mut dropped, mut kept) = (0, 0, 0);
        for (text, event) in events(name) {
            let fate = filter.pass(&text);
            let is_reasoning = event.to_string().contains(r#""type":"reasoning""#);
            assert!(!is_reasoning || fate == Passed::Dropped, "{text}");
            dropped += usize::from(fate == Passed::Dropped);
            let is_delta = event["type"] == "message.part.delta";
            kept += usize::from(is_delta && fate == Passed::Kept);
            let text = reduce(&text).map_or(text, |text| {
                reduced += 1;
                text
            });
            // Tools have patches of their own, which are not sent with every message.
            if !text.contains("message.part.") {
                assert!(!text.contains(r#""patch":"#), "{text}");
            }
        }
        assert!(dropped > 5 && kept > 5, "{name}: {dropped} dropped, {kept} deltas kept");
        assert!(!repeated || reduced > 1, "{name}: {reduced}");
    }
}
