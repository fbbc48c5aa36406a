use super::*;

/// A session in which `prt_2` of `msg_1` is open and has this text.
fn live(words: &str) -> LiveText {
    let mut live = LiveParts::new(1 << 20);
    live.apply(&updated(&part("prt_2", "text", words)));
    live.of_session("ses_1")
}

/// Checks what becomes of a record in which `prt_2` has the text `so "far"`.
#[track_caller]
fn expect(before: &str, after: &str) {
    let live = live("so \"far\"");
    assert_eq!(live.overlay(&Text::from(before)).as_deref(), Some(after));
    assert_eq!(live.overlay(&Text::from(after)), None, "putting it over twice is once");
}

#[track_caller]
fn expect_same(record: &str) {
    assert_eq!(live("so \"far\"").overlay(&Text::from(record)), None, "{record}");
}

#[test]
fn only_the_text_and_the_end_of_an_open_part_change() {
    expect(
        r#" { "info" : { "id" : "msg_1" , "n" : 1.0 } , "parts" : [ {"id":"prt_1","text":"\u0061"} , { "id" : "prt_2" , "text" : "" , "time" : { "start" : 1.0 , "end" : 2 } , "z" : 1e400 } , 7 ] , "x" : [ ] } "#,
        r#"{ "info" : { "id" : "msg_1" , "n" : 1.0 } , "parts" : [ {"id":"prt_1","text":"\u0061"} , { "id" : "prt_2" , "text" : "so \"far\"" , "time" : { "start" : 1.0 } , "z" : 1e400 } , 7 ] , "x" : [ ] }"#,
    );
}

#[test]
fn a_part_that_has_ended_since_is_as_it_was() {
    expect(
        r#"{"info":{"id":"msg_1"},"parts":[{"id":"prt_2","text":"so \"far\" and to the end","time":{"start":1,"end":2}}]}"#,
        r#"{"info":{"id":"msg_1"},"parts":[{"id":"prt_2","text":"so \"far\"","time":{"start":1}}]}"#,
    );
}

#[test]
fn an_end_is_cut_out_wherever_it_stands() {
    for (before, after) in [
        (r#"{"end":2}"#, "{}"),
        (r#"{ "end" : 2 }"#, "{ }"),
        (r#"{"end":2,"start":1}"#, r#"{"start":1}"#),
        (r#"{ "end" : 2 , "start" : 1 }"#, r#"{ "start" : 1 }"#),
        (r#"{"start":1,"end":2,"x":3}"#, r#"{"start":1,"x":3}"#),
        (r#"{"start":1,"\u0065nd":{"a":[1]}}"#, r#"{"start":1}"#),
    ] {
        let record = |time: &str| {
            format!(
                r#"{{"parts":[{{"time":{time},"id":"prt_2","text":"so \"far\""}}],"info":{{"id":"msg_1"}}}}"#
            )
        };
        let overlaid = live("so \"far\"").overlay(&Text::from(record(before))).unwrap();
        let squeezed = |text: &str| text.replace("{  ", "{ ");
        assert_eq!(squeezed(&overlaid), record(after));
    }
    for time in [r#"{"start":1}"#, r#"{"start":1,"end":null}"#, "null", "7", "[]", r#""end""#, "{}"]
    {
        expect_same(&format!(
            r#"{{"info":{{"id":"msg_1"}},"parts":[{{"id":"prt_2","text":"so \"far\"","time":{time}}}]}}"#
        ));
    }
}

#[test]
fn a_text_is_set_whatever_stands_there() {
    for (before, after) in [
        (r#"{"id":"prt_2","text":null}"#, r#"{"id":"prt_2","text":"so \"far\""}"#),
        (r#"{"id":"prt_2","text":{"a":1},"b":2}"#, r#"{"id":"prt_2","text":"so \"far\"","b":2}"#),
        (r#"{"id":"prt_2"}"#, r#"{"id":"prt_2","text":"so \"far\""}"#),
        (
            r#"{"id":"prt_2","text":"SECRET","a":1.0,"text":"x"}"#,
            r#"{"id":"prt_2","text":"so \"far\"","a":1}"#,
        ),
        (
            r#"{"id":"prt_2","text":"","time":{"end":1,"end":2}}"#,
            r#"{"id":"prt_2","text":"so \"far\"","time":{}}"#,
        ),
    ] {
        let record =
            |part: &str| format!(r#"{{"info":{{"id":"msg_1"}},"parts":[{part}],"n":1.0}}"#);
        expect(&record(before), &record(after));
    }
    // However it is spelled.
    expect_same(
        r#"{"info":{"id":"msg_1"},"parts":[{"id":"prt_2","text":"s\u006f \u0022far\u0022"}]}"#,
    );
    expect_same(r#"{"info":{"id":"msg_1"},"parts":[{"id":"prt\u005f2","text":"so \"far\""}]}"#);
}

#[test]
fn a_part_that_is_not_listed_is_put_in_its_place() {
    let open = part("prt_2", "text", "so \"far\"").to_string();
    for (before, after) in [
        ("[]", format!("[{open}]")),
        ("[ ]", format!("[{open} ]")),
        (r#"[{"id":"prt_1"}]"#, format!(r#"[{{"id":"prt_1"}},{open}]"#)),
        (r#"[ {"id":"prt_1"} ]"#, format!(r#"[ {{"id":"prt_1"}},{open} ]"#)),
        (r#"[{"id":"prt_3"}]"#, format!(r#"[{open},{{"id":"prt_3"}}]"#)),
        (
            r#"[{"id":"prt_1"},{},{"id":"prt_3"},7]"#,
            format!(r#"[{{"id":"prt_1"}},{{}},{open},{{"id":"prt_3"}},7]"#),
        ),
    ] {
        let record = |parts: &str| format!(r#"{{"info":{{"id":"msg_1"}},"parts":{parts}}}"#);
        expect(&record(before), &record(&after));
    }
}

#[test]
fn several_parts_are_put_in_in_the_order_of_their_ids() {
    let mut live = LiveParts::new(1 << 20);
    for id in ["prt_9", "prt_1", "prt_4", "prt_6"] {
        live.apply(&updated(&part(id, "reasoning", id)));
    }
    let live = live.of_session("ses_1");
    let listed = json!([
        part("prt_3", "tool", ""),
        part("prt_4", "reasoning", ""),
        part("prt_7", "tool", "")
    ]);
    let record = text(&json!({"info": {"id": "msg_1"}, "parts": listed}));
    let overlaid: Value = serde_json::from_str(&live.overlay(&record).unwrap()).unwrap();
    let ids: Vec<_> = overlaid["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["prt_1", "prt_3", "prt_4", "prt_6", "prt_7", "prt_9"]);
    assert_eq!(overlaid["parts"][2], part("prt_4", "reasoning", "prt_4"));
    assert_eq!(overlaid["parts"][5], part("prt_9", "reasoning", "prt_9"));
}

#[test]
fn other_records_and_what_is_none_are_left_alone() {
    for record in [
        r#"{"info":{"id":"msg_2"},"parts":[{"id":"prt_2","text":""}]}"#,
        r#"{"info":{},"parts":[{"id":"prt_2","text":""}]}"#,
        r#"{"info":{"id":"msg_1"}}"#,
        r#"{"info":{"id":"msg_1"},"parts":null}"#,
        r#"{"info":{"id":"msg_1"},"parts":{"id":"prt_2","text":""}}"#,
        r#"{"id":"msg_1"}"#,
        "[]",
        "7",
        "nonsense",
        "",
    ] {
        expect_same(record);
    }
    // The id is where a page looks for it.
    expect(
        r#"{"id":"msg_1","parts":[{"id":"prt_2","text":""}]}"#,
        r#"{"id":"msg_1","parts":[{"id":"prt_2","text":"so \"far\""}]}"#,
    );
}

#[test]
fn an_open_part_without_text_is_not_given_one() {
    let live = live("");
    let record = r#"{"info":{"id":"msg_1"},"parts":[{"id":"prt_2"}]}"#;
    assert_eq!(live.overlay(&Text::from(record)), None);
    let ended =
        r#"{"info":{"id":"msg_1"},"parts":[{"id":"prt_2","text":"all of it","time":{"end":2}}]}"#;
    let expected = r#"{"info":{"id":"msg_1"},"parts":[{"id":"prt_2","text":"","time":{}}]}"#;
    assert_eq!(live.overlay(&Text::from(ended)).as_deref(), Some(expected));
}
