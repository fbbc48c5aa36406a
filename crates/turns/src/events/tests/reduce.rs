use proptest::prelude::*;

use super::*;
use crate::oracle::{Js, records, slim};

/// Checks that an event comes down to `after`, and that this is where it ends.
#[track_caller]
fn expect(before: &str, after: &str) {
    assert_eq!(reduce(&Text::from(before)).as_deref(), Some(after));
    assert_eq!(reduce(&Text::from(after)), None, "reducing twice is reducing once");
}

#[track_caller]
fn expect_same(text: &str) {
    assert_eq!(reduce(&Text::from(text)), None, "{text}");
}

#[test]
fn four_scalars_are_kept_and_five_body_keys_are_gone() {
    expect(
        r#"{"type":"session.diff","properties":{"sessionID":"s","diff":[{"file":"a","before":"B","after":"A","from":"F","to":"T","patch":"P","additions":1,"deletions":2,"status":"added"}]}}"#,
        r#"{"type":"session.diff","properties":{"sessionID":"s","diff":[{"file":"a","status":"added","additions":1,"deletions":2}]}}"#,
    );
}

#[test]
fn without_a_body_key_it_is_the_same_entry_and_the_same_array() {
    expect_same(
        r#"{"type":"session.diff","properties":{"diff":[ {"file":"a" , "additions":1.0} ]}}"#,
    );
    expect_same(r#"{"type":"session.diff","properties":{"diff":[]}}"#);
    // What is neither a body nor one of the four goes as well: it may be a patch by another name.
    expect(
        r#"{"type":"session.diff","properties":{"diff":[{"file":"a","hunks":["+x"]},"x"]}}"#,
        r#"{"type":"session.diff","properties":{"diff":[{"file":"a"}]}}"#,
    );
}

#[test]
fn two_entries_are_slimmed_and_the_title_is_kept() {
    expect(
        r#"{"type":"message.updated","properties":{"info":{"id":"m","summary":{"title":"t","diffs":[{"file":"a","patch":"P"},{"file":"b","before":"B","after":"A"}]},"z":1.0}}}"#,
        r#"{"type":"message.updated","properties":{"info":{"id":"m","summary":{"title":"t","diffs":[{"file":"a"},{"file":"b"}],"diffCount":2,"hasDiffs":true},"z":1.0}}}"#,
    );
}

#[test]
fn an_empty_list_is_counted() {
    expect(
        r#"{"type":"session.updated","properties":{"info":{"summary":{"diffs":[]}}}}"#,
        r#"{"type":"session.updated","properties":{"info":{"summary":{"diffs":[],"diffCount":0,"hasDiffs":false}}}}"#,
    );
}

#[test]
fn without_diffs_it_is_the_same_owner_even_with_markers() {
    for summary in ["true", "{}", r#"{"title":"t","diffCount":7,"hasDiffs":false}"#, "[1]"] {
        expect_same(&format!(
            r#"{{"type":"message.updated","properties":{{"info":{{"summary":{summary}}}}}}}"#
        ));
    }
}

#[test]
fn slim_with_the_right_markers_is_the_same_owner() {
    expect_same(
        r#"{"type":"message.updated","properties":{"info":{"summary":{"diffs":[{"file":"a"}],"diffCount":1,"hasDiffs":true}}}}"#,
    );
}

#[test]
fn the_legacy_envelope_and_the_current_one_are_both_looked_into() {
    for body in ["properties", "data"] {
        let diff = |diff: &str| format!(r#"{{"type":"session.diff","{body}":{{"diff":{diff}}}}}"#);
        expect(&diff(r#"[{"file":"a","patch":"P"}]"#), &diff(r#"[{"file":"a"}]"#));
    }
    expect(
        r#"{"properties":{"diff":[{"patch":"P"}]},"data":{"diff":[{"patch":"Q"}]},"type":"session.diff"}"#,
        r#"{"properties":{"diff":[{}]},"data":{"diff":[{}]},"type":"session.diff"}"#,
    );
}

#[test]
fn the_info_of_messages_and_sessions_is_looked_into_and_else_the_body() {
    let summary = r#"{"diffs":[{"file":"a","patch":"P"}]}"#;
    let reduced = r#"{"diffs":[{"file":"a"}],"diffCount":1,"hasDiffs":true}"#;
    for kind in ["message.updated", "message.created", "session.updated", "session.created"] {
        for body in ["properties", "data"] {
            let in_info = |summary: &str| {
                format!(r#"{{"type":"{kind}","{body}":{{"info":{{"summary":{summary}}}}}}}"#)
            };
            expect(&in_info(summary), &in_info(reduced));
            let in_body = |summary: &str| {
                format!(r#"{{"type":"{kind}","{body}":{{"summary":{summary},"info":{{}}}}}}"#)
            };
            expect(&in_body(summary), &in_body(reduced));
        }
    }
}

#[test]
fn versioned_names_and_the_events_inside_sync_are_reduced_as_well() {
    let info = json!({"id": "m", "summary": {"diffs": [{"file": "a", "patch": "P"}]}});
    let data = json!({"sessionID": "ses_1", "info": info});
    for text in [
        event("message.updated.1", &data),
        event("message.updated.20", &data),
        synced("message.updated.1", &data),
        synced("message.updated", &data),
        synced("session.updated.3", &data),
        synced("session.diff.1", &json!({"diff": [{"file": "a", "patch": "P"}]})),
    ] {
        let reduced = reduce(&text).expect("there is a patch in it");
        assert_eq!(
            &*reduced,
            text.replace(r#","patch":"P""#, "").replace(
                r#""diffs":[{"file":"a"}]"#,
                r#""diffs":[{"file":"a"}],"diffCount":1,"hasDiffs":true"#,
            )
        );
        assert_eq!(reduce(&reduced), None);
    }
}

#[test]
fn everything_else_is_identity() {
    let patches = r#""diff":[{"patch":"P"}],"info":{"summary":{"diffs":[{"patch":"P"}]}},"summary":{"diffs":[{"patch":"P"}]}"#;
    for kind in [
        "message.part.updated",
        "message.part.delta",
        "message.part.updated.1",
        "message.removed",
        "session.deleted",
        "session.status",
        "session.diffs",
        "session.diff.x1",
        "session.diff.",
        "message.updated.1.a",
        "Message.updated",
        "sync",
    ] {
        expect_same(&format!(r#"{{"type":"{kind}","properties":{{{patches}}}}}"#));
        expect_same(&format!(
            r#"{{"type":"sync","syncEvent":{{"type":"{kind}","data":{{{patches}}}}}}}"#
        ));
    }
    // The event inside is what counts, and only an object is one.
    expect_same(&format!(r#"{{"type":"sync","syncEvent":[{{{patches}}}]}}"#));
    expect_same(&format!(
        r#"{{"type":"other","syncEvent":{{"type":"session.diff","data":{{{patches}}}}}}}"#
    ));
    for body in ["null", "[]", "7", r#""x""#] {
        expect_same(&format!(r#"{{"type":"session.diff","properties":{body},"data":{body}}}"#));
        expect_same(&format!(r#"{{"type":"message.updated","properties":{{"info":{body}}}}}"#));
    }
}

#[test]
fn what_is_not_reduced_keeps_its_bytes() {
    expect(
        r#" { "id" : "\u0061" , "n" : 1.0 , "type" : "session\u002ediff" , "data" : { "x" : [ ] , "diff" : [ {"patch":""} ] , "y" : 1e400 } , "n" : 2 } "#,
        r#"{ "id" : "\u0061" , "n" : 1.0 , "type" : "session\u002ediff" , "data" : { "x" : [ ] , "diff" : [{}] , "y" : 1e400 } , "n" : 2 }"#,
    );
}

#[test]
fn a_patch_does_not_leave_in_a_repeated_key() {
    for secret in [
        r#"{"type":"session.diff","properties":{"diff":[{"patch":"SECRET"}]},"properties":{"diff":[{"patch":"P"}]}}"#,
        r#"{"type":"session.diff","properties":{"diff":[{"patch":"SECRET"}],"diff":[{"patch":"P"}]}}"#,
        r#"{"type":"message.updated","data":{"info":{"summary":{"diffs":[{"patch":"SECRET"}]}},"info":{"summary":{"diffs":[{"patch":"P"}]}}}}"#,
        r#"{"type":"x","type":"session.diff","properties":{"diff":[{"patch":"SECRET"}]}}"#,
        r#"{"type":"sync","syncEvent":{"type":"session.diff","data":{"diff":[{"patch":"SECRET"}]}},"syncEvent":{"type":"session.diff","data":{"diff":[{"patch":"P"}]}}}"#,
    ] {
        let reduced = reduce(&Text::from(secret)).expect("there is a patch in it");
        assert!(!reduced.contains("SECRET"), "{reduced}");
    }
}

#[test]
fn a_70_kb_patch_fits_a_64_kib_frame() {
    let patch = "+x\n".repeat(70 << 10);
    let info = json!({"id": "m", "summary": {"diffs": [{"file": "a", "patch": patch}]}});
    let event = event("message.updated", &json!({"sessionID": "ses_1", "info": info}));
    assert!(reduce(&event).expect("there is a patch in it").len() < 64 << 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// An event's message is reduced as a page's message is, wherever it stands.
    #[test]
    fn reduces_what_the_oracle_reduces(info in records::info(), shape in 0..4) {
        let wrap = |info: &str| match shape {
            0 => format!(r#"{{"type":"message.updated","properties":{{"info":{info}}}}}"#),
            1 => format!(r#"{{"data":{{"info":{info},"a":1}},"type":"session.updated.1"}}"#),
            2 => format!(r#"{{"type":"message.created","properties":{info}}}"#),
            _ => format!(r#"{{"type":"sync","syncEvent":{{"data":{{"info":{info}}},"type":"message.updated.1"}}}}"#),
        };
        let before = Js::parse(&info);
        let expected = slim::reduce(&before);
        let reduced = reduce(&Text::from(wrap(&info)));
        // A body that has an `info` of its own may be reduced there.
        if shape != 2 || before.get("info").is_none() {
            prop_assert_eq!(reduced.is_some(), expected.stringify() != before.stringify());
            if let Some(text) = &reduced {
                let expected = Js::parse(&wrap(&expected.stringify())).stringify();
                prop_assert_eq!(Js::parse(text).stringify(), expected);
            }
        }
        if let Some(text) = reduced {
            prop_assert_eq!(reduce(&text), None);
        }
    }
}
