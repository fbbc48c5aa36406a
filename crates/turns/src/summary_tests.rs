use proptest::prelude::*;
use turnkeep_log::json::Json;

use super::{reduce, reduce_list};
use crate::oracle::{Js, records, slim};

/// The owner reduced, `None` when there was nothing to reduce.
fn reduced(owner: &str) -> Option<String> {
    let mut out = String::from("before ");
    let is_changed = reduce(Json::parse(owner).unwrap(), &mut out);
    let out = out.strip_prefix("before ").unwrap().to_owned();
    assert_eq!(is_changed, !out.is_empty());
    is_changed.then_some(out)
}

/// A summary reduced.
fn summary(summary: &str) -> Option<String> {
    let owner = reduced(&format!(r#"{{"id":"m","summary":{summary}}}"#))?;
    let summary = owner.strip_prefix(r#"{"id":"m","summary":"#).unwrap().strip_suffix('}').unwrap();
    Some(summary.to_owned())
}

#[test]
fn entries_keep_four_values_as_they_are() {
    let cases = [
        (
            r#"{"title":"t","diffs":[{"file":"a","patch":"P","additions":"3","deletions":null,"status":"weird","extra":1}]}"#,
            r#"{"title":"t","diffs":[{"file":"a","status":"weird","additions":"3","deletions":null}],"diffCount":1,"hasDiffs":true}"#,
        ),
        (
            r#"{"diffs":[{"file":"a","additions":1,"deletions":0,"extra":{"big":1}}]}"#,
            r#"{"diffs":[{"file":"a","additions":1,"deletions":0}],"diffCount":1,"hasDiffs":true}"#,
        ),
        (
            r#"{"diffs":[{"path":"a","filename":"b","patch":""}]}"#,
            r#"{"diffs":[{}],"diffCount":1,"hasDiffs":true}"#,
        ),
        (
            r#"{"diffs":[{"file":"a","patch":null,"before":5}]}"#,
            r#"{"diffs":[{"file":"a"}],"diffCount":1,"hasDiffs":true}"#,
        ),
        (
            r#"{"diffs":[{"file":"a","before":"B","after":"A"},{"file":"b","from":"x","to":"y","patch":"z"}],"title":"t"}"#,
            r#"{"diffs":[{"file":"a"},{"file":"b"}],"title":"t","diffCount":2,"hasDiffs":true}"#,
        ),
        (
            r#"{"diffs":[{"additions":[1,{"a":1.0}],"file":"\u0061\/","status":{}}]}"#,
            r#"{"diffs":[{"file":"\u0061\/","status":{},"additions":[1,{"a":1.0}]}],"diffCount":1,"hasDiffs":true}"#,
        ),
        (
            r#"{"diffs":[{"file":"a","patch":"P","file":"b"}]}"#,
            r#"{"diffs":[{"file":"b"}],"diffCount":1,"hasDiffs":true}"#,
        ),
    ];
    for (before, after) in cases {
        assert_eq!(summary(before).as_deref(), Some(after));
        assert_eq!(summary(after), None, "reducing twice is reducing once");
    }
}

#[test]
fn what_is_no_object_is_no_diff() {
    assert_eq!(
        summary(r#"{"diffs":["x",null,3,["y"]]}"#).unwrap(),
        r#"{"diffs":[],"diffCount":0,"hasDiffs":false}"#
    );
    assert_eq!(
        summary(r#"{"diffs":[null,{"file":"a"},[],{"file":"b"},"x"]}"#).unwrap(),
        r#"{"diffs":[{"file":"a"},{"file":"b"}],"diffCount":2,"hasDiffs":true}"#
    );
    for diffs in [r#"{"a":1}"#, "null", "true", r#""x""#, "0"] {
        assert_eq!(
            summary(&format!(r#"{{"diffs":{diffs}}}"#)).unwrap(),
            r#"{"diffs":[],"diffCount":0,"hasDiffs":false}"#
        );
    }
}

#[test]
fn the_count_and_the_flag_are_put_right_where_they_stand() {
    assert_eq!(
        summary(r#"{"diffs":[],"diffCount":4,"hasDiffs":true}"#).unwrap(),
        r#"{"diffs":[],"diffCount":0,"hasDiffs":false}"#
    );
    assert_eq!(
        summary(r#"{ "hasDiffs" : 1 , "a" : [ ] , "diffCount" : "1" , "diffs" : [ { } ] }"#)
            .unwrap(),
        r#"{ "hasDiffs" : true , "a" : [ ] , "diffCount" : 1 , "diffs" : [ { } ] }"#
    );
    assert_eq!(
        summary(r#"{"hasDiffs":true,"diffs":[{}]}"#).unwrap(),
        r#"{"hasDiffs":true,"diffs":[{}],"diffCount":1}"#
    );
    assert_eq!(
        summary(r#"{"diffCount":0,"diffs":[1]}"#).unwrap(),
        r#"{"diffCount":0,"diffs":[],"hasDiffs":false}"#
    );
}

#[test]
fn what_is_right_is_left_alone() {
    for owner in [
        r#"{"summary":{"diffs":[{"file":"a","deletions":1}],"diffCount":1,"hasDiffs":true}}"#,
        r#"{"summary":{"diffs":[ { "file" : "a" } , {} ],"diffCount":2.0,"hasDiffs":true}}"#,
        r#"{"summary":{"diffs":[{"file":"a","status":1,"file":"b"}],"diffCount":1,"hasDiffs":true}}"#,
        r#"{"summary":{"title":"x"}}"#,
        r#"{"summary":{"diffCount":7,"hasDiffs":false}}"#,
        r#"{"summary":true}"#,
        r#"{"summary":null}"#,
        r#"{"summary":[{"diffs":[1]}]}"#,
        r#"{"summary":{"a":{"diffs":[1]}},"diffs":[1]}"#,
        r#"{"id":"m","id":"n"}"#,
        "{}",
        r#"[{"summary":{"diffs":[1]}}]"#,
        "null",
    ] {
        assert_eq!(reduced(owner), None, "{owner}");
    }
}

#[test]
fn everything_else_keeps_its_bytes() {
    assert_eq!(
        reduced(
            r#"{ "id" : "\u0061" , "n" : 1.0 , "id" : 2 , "summary" : { "title" : "\/" , "diffs" : [ 1 , { "file" : "a" , "patch" : "" } ] } , "z" : 1e400 }"#
        )
        .unwrap(),
        r#"{ "id" : "\u0061" , "n" : 1.0 , "id" : 2 , "summary" : { "title" : "\/" , "diffs" : [{"file":"a"}],"diffCount":1,"hasDiffs":true } , "z" : 1e400 }"#
    );
}

#[test]
fn a_patch_does_not_leave_in_a_repeated_key() {
    let reduced_diffs = r#""diffs":[{"file":"b"}],"diffCount":1,"hasDiffs":true"#;
    for (owner, expected) in [
        (
            r#"{"summary":{"diffs":[{"patch":"SECRET"}]},"a":1.0,"summary":{"diffs":[{"file":"b","patch":"P"}]}}"#,
            format!(r#"{{"summary":{{{reduced_diffs}}},"a":1}}"#),
        ),
        (
            r#"{"summary":{"diffs":[{"patch":"SECRET"}],"diffs":[{"file":"b","patch":"P"}]}}"#,
            format!(r#"{{"summary":{{{reduced_diffs}}}}}"#),
        ),
        (
            r#"{"summary":{"diffs":[{"file":"b","patch":"SECRET"}],"diffCount":1,"hasDiffs":5,"diffCount":2,"hasDiffs":6}}"#,
            format!(r#"{{"summary":{{{reduced_diffs}}}}}"#),
        ),
    ] {
        assert_eq!(reduced(owner).unwrap(), expected);
    }
}

#[test]
fn a_list_by_itself_has_no_markers() {
    let mut out = String::new();
    let list = r#"[ {"file":"a","patch":"P","status":"added"} , 1 ]"#;
    assert!(reduce_list(Json::parse(list).unwrap(), &mut out));
    assert_eq!(out, r#"[{"file":"a","status":"added"}]"#);
    for left_alone in [r#"[ {"file":"a"} ]"#, "[]", r#"{"file":"a","patch":"P"}"#, "null"] {
        assert!(!reduce_list(Json::parse(left_alone).unwrap(), &mut out));
    }
    assert_eq!(out, r#"[{"file":"a","status":"added"}]"#);
}

#[test]
fn hundreds_of_patches_come_down_to_a_list() {
    let diff = |file: usize| {
        format!(
            r#"{{"file":"src/{file}.ts","patch":"{}","additions":1,"deletions":2,"status":"modified"}}"#,
            "+x\\n".repeat(500)
        )
    };
    let diffs: Vec<_> = (0..463).map(diff).collect();
    let text = summary(&format!(r#"{{"title":"t","diffs":[{}]}}"#, diffs.join(","))).unwrap();
    assert!(text.starts_with(r#"{"title":"t","diffs":[{"file":"src/0.ts","status":"modified","additions":1,"deletions":2},"#));
    assert!(text.ends_with(r#"],"diffCount":463,"hasDiffs":true}"#));
    assert!(text.len() < 64 * 1024);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn reduces_what_the_oracle_reduces(owner in records::info()) {
        let before = Js::parse(&owner);
        let expected = slim::reduce(&before);
        let text = reduced(&owner);
        prop_assert_eq!(text.is_some(), expected.stringify() != before.stringify());
        if let Some(text) = text {
            prop_assert_eq!(Js::parse(&text).stringify(), expected.stringify());
            prop_assert_eq!(reduced(&text), None);
        }
    }

    #[test]
    fn a_list_is_reduced_as_in_a_summary(diffs in records::diffs()) {
        let mut out = String::new();
        if reduce_list(Json::parse(&diffs).unwrap(), &mut out) {
            let in_summary = summary(&format!(r#"{{"diffs":{diffs}}}"#)).unwrap();
            prop_assert_eq!(
                Json::parse(&in_summary).unwrap().get("diffs").unwrap().text(),
                out
            );
        } else {
            prop_assert_eq!(out, "");
        }
    }
}
