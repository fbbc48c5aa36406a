use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use serde_json::json;
use turnkeep_log::Text;

use super::{Event, Form, Wire};
use crate::events::{
    Hub, Origin, Published,
    client::{Taken, Watch},
    frames::Channel,
};

/// The event as the hub makes it.
fn published(payload: &serde_json::Value) -> Arc<Event> {
    published_text(&payload.to_string())
}

fn published_text(payload: &str) -> Arc<Event> {
    let hub = Hub::new(1 << 20, 1 << 20);
    let form = Form { wire: Wire::Sse, channel: Channel::Global, reasoning: true };
    let (mut client, _) = hub.subscribe(Watch { form, directory: None, last: None }).unwrap();
    hub.publish(Published {
        directory: Some("/d".to_owned()),
        project: None,
        payload: Text::from(payload),
        origin: Origin::Upstream,
    });
    let taken = std::future::poll_fn(|context| client.poll_take(context)).now_or_never();
    let Some(Taken::Events(events)) = taken else { panic!("{taken:?}") };
    Arc::clone(&events[0])
}

fn forms() -> Vec<Form> {
    let wires = [
        Wire::Sse,
        Wire::Socket(None),
        Wire::Socket(Some("/d".into())),
        Wire::Socket(Some("/e".into())),
    ];
    let mut forms = Vec::new();
    for wire in wires {
        for channel in [Channel::Global, Channel::Directory] {
            for reasoning in [true, false] {
                forms.push(Form { wire: wire.clone(), channel, reasoning });
            }
        }
    }
    forms
}

/// Whether two are the same bytes in the same place.
fn are_one(a: &Bytes, b: &Bytes) -> bool {
    a.as_ptr() == b.as_ptr() && a.len() == b.len()
}

#[test]
fn each_form_is_made_once_and_shared() {
    let text = json!({ "type": "note", "properties": {} });
    let message = json!({
        "type": "message.updated",
        "properties": { "info": { "id": "m" }, "parts": [{ "type": "reasoning" }, { "type": "text" }] },
    });
    for payload in [text, message] {
        let event = published(&payload);
        for form in forms() {
            let (first, second) = (event.encoded(&form).unwrap(), event.encoded(&form).unwrap());
            assert!(are_one(&first, &second), "{form:?}");
        }
    }
}

#[test]
fn clients_with_and_without_reasoning_share_what_has_none() {
    let event = published(&json!({ "type": "note", "properties": {} }));
    for form in forms() {
        let other = Form { reasoning: !form.reasoning, ..form.clone() };
        assert!(are_one(&event.encoded(&form).unwrap(), &event.encoded(&other).unwrap()));
    }
}

#[test]
fn what_is_neither_reduced_nor_filtered_leaves_as_it_came() {
    // As nobody would spell it anew.
    let payload =
        r#"{ "type":"message.updated.1", "properties":{ "n":1.0e0,"s":"\u0041\/","n":[ ]}}"#;
    let event = published_text(payload);
    for form in forms() {
        let sent = event.encoded(&form).unwrap();
        let sent = std::str::from_utf8(&sent).unwrap();
        assert!(sent.contains(payload), "{form:?}: {sent}");
    }
}

#[test]
fn reasoning_goes_to_those_who_want_it() {
    let part =
        json!({ "id": "p", "messageID": "m", "sessionID": "s", "type": "reasoning", "text": "" });
    let event =
        published(&json!({ "type": "message.part.updated", "properties": { "part": part } }));
    for form in forms() {
        assert_eq!(event.encoded(&form).is_some(), form.reasoning, "{form:?}");
        assert_eq!(event.cost(form.reasoning) > 0, form.reasoning);
    }
}

#[test]
fn a_socket_names_the_directory_as_its_client_does() {
    let event = published(&json!({ "type": "note", "properties": {} }));
    for (wire, name) in [(None, "/d"), (Some("/d"), "/d"), (Some("/link"), "/link")] {
        let wire = Wire::Socket(wire.map(Arc::from));
        let form = Form { wire, channel: Channel::Directory, reasoning: true };
        let sent: serde_json::Value =
            serde_json::from_slice(&event.encoded(&form).unwrap()).unwrap();
        assert_eq!(sent["directory"], name);
        assert_eq!(sent["eventId"], event.id.to_string());
    }
}
