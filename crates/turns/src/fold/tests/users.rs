use serde_json::{Value, json};

use super::{Log, all, check, id_of, is_boundary, text};

#[test]
fn a_message_of_a_person_is_a_user_record() {
    let log = Log::new().turn().prompt("u1", "hello");
    assert_eq!(
        log.records(),
        [json!({
            "info": {"id": "u1", "sessionID": "s", "role": "user", "time": {"created": 1001}},
            "parts": [{"id": "u1.000", "sessionID": "s", "messageID": "u1", "type": "text", "text": "hello"}]
        })]
    );
    assert_eq!(log.fold().last_prompt_at(), Some(1001));
}

#[test]
fn every_part_of_a_message_that_nobody_wrote_is_synthetic() {
    let image =
        json!({"type": "image", "attachment": {"attachmentId": "a", "mediaType": "image/png"}});
    for source in ["plugin", "goal", "team-message", ""] {
        let log = Log::new().message("u1", source, &json!([text("a"), image]));
        let parts = log.records()[0]["parts"].clone();
        assert_eq!(parts[0]["synthetic"], true);
        assert_eq!(parts[1]["synthetic"], true);
        assert_eq!(log.fold().last_prompt_at(), None);
        assert!(!is_boundary(&log.records()[0]));
    }
}

#[test]
fn a_message_without_a_source_is_nobodys() {
    let log = Log::new().add("user/message", &json!({"id": "u1", "content": [text("a")]}));
    assert!(!is_boundary(&log.records()[0]));
}

#[test]
fn an_image_is_a_file_part_that_refers_to_its_attachment() {
    let attachment = json!({
        "attachmentId": "sha256-1", "mediaType": "image/webp", "bytes": 512, "width": 20,
        "height": 10, "name": "shot.webp", "originalDimensions": {"width": 40, "height": 20}
    });
    let log = Log::new().message(
        "u1",
        "user",
        &json!([text("see"), {"type": "image", "attachment": attachment}]),
    );
    assert_eq!(
        log.records()[0]["parts"][1],
        json!({
            "id": "u1.001", "sessionID": "s", "messageID": "u1", "type": "file",
            "mime": "image/webp", "filename": "shot.webp", "width": 20, "height": 10,
            "byteSize": 512, "attachmentId": "sha256-1"
        })
    );
}

#[test]
fn an_image_says_what_is_known_of_it() {
    let bare = json!({"type": "image", "attachment": {"mediaType": "png", "width": "wide"}});
    let parts = Log::new().message("u1", "user", &json!([bare])).records()[0]["parts"].clone();
    let keys: Vec<&String> = parts[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "sessionID", "messageID", "type", "mime"]);
    assert_eq!(parts[0]["mime"], "image/png");
}

#[test]
fn a_block_that_cannot_be_shown_leaves_the_others_their_index() {
    let content = json!([
        {"type": "hologram"}, text("a"), {"type": "text"}, {"type": "image"}, "text", text("b")
    ]);
    let parts = Log::new().message("u1", "user", &content).records()[0]["parts"].clone();
    let ids: Vec<&Value> = parts.as_array().unwrap().iter().map(|part| &part["id"]).collect();
    assert_eq!(ids, ["u1.001", "u1.005"]);
}

#[test]
fn a_message_of_which_nothing_can_be_shown_is_a_prompt_only_if_a_person_wrote_it() {
    for content in [json!([]), json!([{"type": "hologram"}]), json!("text"), Value::Null] {
        let log = Log::new().message("u1", "user", &content).message("u2", "plugin", &content);
        let records = log.records();
        assert_eq!(records[0]["parts"], json!([]));
        assert!(is_boundary(&records[0]));
        assert_eq!(
            records[1]["parts"],
            json!([{"id": "u2.000", "sessionID": "s", "messageID": "u2", "type": "text",
                "text": "", "synthetic": true}])
        );
        assert!(!is_boundary(&records[1]));
    }
}

#[test]
fn text_is_spelled_as_the_log_spells_it() {
    let message = r#"{"id":"u\u00e9","role":"user","content":[{"type":"text","text":"a\/\u0041\ud83d"}],"source":{"kind":"\u0075ser"}}"#;
    let fold = Log::new().raw("user/message", message).fold();
    let row = fold.page(None, 1).rows.remove(0).1;
    assert!(row.text().contains(r#""text":"a\/\u0041\ud83d"}"#), "{row:?}");
    assert!(row.text().contains(r#""id":"u\u00e9.000""#), "{row:?}");
    assert!(!row.text().contains("synthetic"));
    assert_eq!(fold.record("u\u{e9}"), Some(row));
}

#[test]
fn the_session_id_is_escaped_once() {
    let session = turnkeep_log::SessionId::new("a\"\\\n").unwrap();
    let log = Log::new().prompt("u1", "x");
    let record = &all(&super::fold(&session, &log.events))[0];
    assert_eq!(record["info"]["sessionID"], "a\"\\\n");
    assert_eq!(record["parts"][0]["sessionID"], "a\"\\\n");
}

#[test]
fn ids_are_unique_though_the_log_repeats_them() {
    let log = Log::new()
        .prompt("u", "a")
        .prompt("u", "b")
        .prompt("u:2", "c")
        .prompt("u", "d")
        .prompt("asst:5", "e")
        .answer(&json!([text("f")]));
    assert_eq!(log.ids(), ["u", "u:1", "u:2", "u:3", "asst:5", "asst:5:5"]);
    check(&log.fold());
}

#[test]
fn a_message_without_an_id_is_named_after_its_event() {
    let log = Log::new()
        .turn()
        .add("user/message", &json!({"content": [text("a")], "source": {"kind": "user"}}))
        .add("user/message", &json!({"id": "", "content": [text("b")], "source": {"kind": "user"}}))
        .add("user/message", &json!({"id": 7, "content": [], "source": {"kind": "user"}}))
        .raw("user/message", "null");
    assert_eq!(log.ids(), ["user:1", "user:2", "user:3", "user:4"]);
    check(&log.fold());
}

#[test]
fn a_message_that_replaces_others_for_the_model_is_shown_and_hides_nothing() {
    let message =
        json!({"id": "u2", "role": "user", "content": [text("b")], "source": {"kind": "user"}});
    let op = json!({"op": "replace", "start": 0, "end": 0});
    let log = Log::new().prompt("u1", "a").surface("user/message", &message, &[0], &op);
    assert_eq!(log.ids(), ["u1", "u2"]);
    // Under its own id it is the message that is there already.
    let log = Log::new().prompt("u2", "a").surface("user/message", &message, &[0], &op);
    assert_eq!(log.ids(), ["u2"]);
    assert_eq!(log.record("u2")["parts"][0]["text"], "a");
}

fn run(id: &str, name: &str, args: &Value, source: &str) -> Value {
    json!({"commandId": id, "name": name, "args": args, "source": {"kind": source}})
}

#[test]
fn a_command_is_a_prompt_and_its_outcome_a_synthetic_part_of_it() {
    let ran = Log::new().add("command/run", &run("c1", "goal", &json!(" do it"), "user"));
    let typed = json!({"id": "command:c1.000", "sessionID": "s", "messageID": "command:c1",
        "type": "text", "text": "/goal do it"});
    assert_eq!(ran.record("command:c1")["parts"], json!([typed]));
    let done = ran.add("command/done", &json!({"commandId": "c1", "kind": "error", "text": "no"}));
    let said = json!({"id": "command:c1.001", "sessionID": "s", "messageID": "command:c1",
        "type": "text", "text": "no", "synthetic": true});
    let record = done.record("command:c1");
    assert_eq!(record["parts"], json!([typed, said]));
    assert_eq!(
        record["info"],
        json!({"id": "command:c1", "sessionID": "s", "role": "user", "time": {"created": 1000}})
    );
    assert!(is_boundary(&record));
    // It is nothing that a person wrote to the model.
    assert_eq!(done.fold().last_prompt_at(), None);
}

#[test]
fn commands_end_in_any_order_or_without_a_word() {
    let log = Log::new()
        .add("command/run", &run("c1", "a", &Value::Null, "user"))
        .add("command/run", &run("c2", "b", &json!(""), "user"))
        .add("command/done", &json!({"commandId": "c2", "kind": "success", "text": "two"}))
        .add("command/done", &json!({"commandId": "c1", "kind": "success"}))
        .add("command/done", &json!({"commandId": "c2", "kind": "success", "text": "again"}))
        .add("command/done", &json!({"commandId": "c9", "kind": "success", "text": "nobody"}));
    let texts = |id: &str| -> Vec<String> {
        let record = log.record(id);
        let parts = record["parts"].as_array().unwrap().iter();
        parts.map(|part| part["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts("command:c1"), ["/a"]);
    assert_eq!(texts("command:c2"), ["/b", "two"]);
    assert_eq!(log.fold().len(), 2);
}

#[test]
fn a_command_that_no_person_ran_or_that_has_no_name_is_none() {
    let log = Log::new()
        .add("command/run", &run("c1", "a", &Value::Null, "plugin"))
        .add("command/run", &json!({"commandId": "c2", "source": {"kind": "user"}}))
        .add("command/run", &json!({"name": "b", "source": {"kind": "user"}}));
    assert_eq!(log.ids(), ["command:2"]);
}

#[test]
fn a_turn_after_a_command_answers_its_own_message() {
    let log = Log::new()
        .add("command/run", &run("c1", "goal", &json!(" x"), "user"))
        .add("command/done", &json!({"commandId": "c1", "kind": "success", "text": "ok"}))
        .turn()
        .message("g", "goal", &json!([text("round 1")]))
        .answer(&json!([text("done")]))
        .end_turn(&json!({"kind": "completed"}));
    let records = log.records();
    let prompts: Vec<&str> =
        records.iter().filter(|record| is_boundary(record)).map(id_of).collect();
    assert_eq!(prompts, ["command:c1"]);
    assert_eq!(log.record("asst:4")["info"]["parentID"], "g");
}
