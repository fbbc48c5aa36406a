//! Every place that an image can stand in, and none besides.

use serde_json::{Value, json};
use turnkeep_log::{Event, Text};

use super::images_of;

fn image(id: &str) -> Value {
    json!({ "type": "image", "attachment": { "attachmentId": id, "mediaType": "image/png" } })
}

fn found(data: &Value) -> Vec<String> {
    let text = json!({ "type": "t", "seq": 0, "time": 1, "data": data }).to_string();
    let event = Event::parse(&Text::from(text)).unwrap();
    let mut ids = Vec::new();
    let all = images_of(&event, |image| {
        ids.push(image.id);
        Ok::<_, ()>(())
    });
    all.unwrap();
    ids
}

#[test]
fn images_are_found_in_order_wherever_blocks_have_a_place() {
    let result = json!({ "type": "tool-result", "content": [
        image("b"),
        { "type": "text", "text": "" },
        { "type": "box", "content": [image("c"), image("d")] },
        image("e"),
    ] });
    let data = json!({
        "content": [image("a"), result, image("f")],
        "message": { "content": [image("g")] },
        "inserted": [{ "content": [image("h")] }, { "content": [] }, { "content": [image("i")] }],
        "chunk": { "type": "block-end", "block": image("j") },
    });
    assert_eq!(found(&data).concat(), "abcdefghij");
    let nested = json!({ "chunk": { "type": "block-end", "block": { "content": [image("a")] } } });
    assert_eq!(found(&nested), ["a"]);
}

#[test]
fn what_only_looks_like_an_image_is_none() {
    for data in [
        json!({ "chunk": { "type": "block-start", "block": image("a") } }),
        json!({ "chunk": image("a") }),
        json!({ "content": image("a") }),
        json!({ "content": [image("a").to_string()] }),
        json!({ "content": [{ "type": "text", "attachment": image("a")["attachment"] }] }),
        json!({ "content": [{ "type": "image", "attachment": "a" }] }),
        json!({ "content": [{ "type": "image", "attachment": { "attachmentId": 1 } }] }),
        json!({ "inserted": { "content": [image("a")] }, "message": [image("a")] }),
        json!({ "arguments": { "content": [image("a")] } }),
        json!([image("a")]),
        json!(null),
    ] {
        assert!(found(&data).is_empty(), "{data}");
    }
}

#[test]
fn escapes_and_depth_hide_nothing() {
    let text = r#"{"type":"t","seq":0,"time":1,"data":{"cont\u0065nt":[{"typ\u0065":"im\u0061ge","attachment":{"attachm\u0065ntId":"a"}}]}}"#;
    let mut ids = Vec::new();
    let event = Event::parse(&Text::from(text)).unwrap();
    let all = images_of(&event, |image| {
        ids.push(image.id);
        Ok::<_, ()>(())
    });
    all.unwrap();
    assert_eq!(ids, ["a"]);
    let deep = (0..100).fold(image("deep"), |inner, _| json!({ "content": [inner] }));
    assert_eq!(found(&json!({ "content": [deep] })), ["deep"]);
}

#[test]
fn who_looks_may_stop() {
    let text = json!({ "type": "t", "seq": 0, "time": 1,
        "data": { "content": [image("a"), image("b")] } });
    let event = Event::parse(&Text::from(text.to_string())).unwrap();
    assert_eq!(images_of(&event, |image| Err(image.id)), Err("a".to_owned()));
}
