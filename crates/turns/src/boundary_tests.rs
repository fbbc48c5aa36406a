use turnkeep_log::json::Json;

use super::is_boundary;

fn starts(record: &str) -> bool {
    is_boundary(Json::parse(record).expect("a record of these tests is JSON"))
}

fn with_parts(parts: &str) -> bool {
    starts(&format!(r#"{{"info":{{"id":"msg_1","role":"user"}},"parts":{parts}}}"#))
}

fn with_info(info: &str) -> bool {
    starts(&format!(r#"{{"info":{info},"parts":[{{"type":"text","text":"t"}}]}}"#))
}

#[test]
fn what_a_person_wrote_starts_a_turn() {
    assert!(with_info(r#"{"id":"msg_1","role":"user"}"#));
    assert!(with_info(r#"{"role":"user"}"#), "ids are checked elsewhere");
    for info in [r#"{"role":"assistant"}"#, r#"{"role":"User"}"#, r#"{"role":"tool"}"#, "{}"] {
        assert!(!with_info(info), "{info}");
    }
}

#[test]
fn a_client_role_outranks_the_role_when_it_is_a_string() {
    assert!(with_info(r#"{"clientRole":"user"}"#));
    assert!(with_info(r#"{"clientRole":"user","role":"assistant"}"#));
    assert!(with_info(r#"{"clientRole":null,"role":"user"}"#));
    assert!(with_info(r#"{"clientRole":7,"role":"user"}"#));
    assert!(!with_info(r#"{"clientRole":"assistant","role":"user"}"#));
    assert!(!with_info(r#"{"clientRole":"","role":"user"}"#));
}

#[test]
fn dividers_start_nothing() {
    assert!(!with_info(r#"{"id":"oc_asst_session_divider:x","role":"user"}"#));
    assert!(!with_info(r#"{"id":"oc_asst_session_divider:x","role":"system"}"#));
    assert!(!with_info(r#"{"id":"oc_asst_session_divider:\ud800","role":"user"}"#));
    assert!(!starts(r#"{"id":"oc_asst_session_divider:x","type":"user"}"#));
    assert!(!starts(r#"{"id":"oc_asst_session_divider:x","info":{"id":null,"role":"user"}}"#));
    assert!(starts(r#"{"id":"oc_asst_session_divider:x","info":{"id":"m","role":"user"}}"#));
    assert!(starts(r#"{"id":"oc_asst_session_divider:x","info":{"id":7,"role":"user"}}"#));
    assert!(with_info(r#"{"id":"x:oc_asst_session_divider:","role":"user"}"#));
}

#[test]
fn a_record_without_parts_counts_by_its_role() {
    assert!(with_parts("[]"));
    assert!(with_parts("{}"));
    assert!(with_parts("null"));
    assert!(starts(r#"{"info":{"id":"msg_1","role":"user"}}"#));
    assert!(!starts(r#"{"info":{"id":"msg_1","role":"assistant"},"parts":[]}"#));
}

#[test]
fn all_parts_synthetic_is_somebody_elses_doing() {
    for parts in [
        r#"[{"synthetic":true}]"#,
        r#"[{"synthetic":1}]"#,
        r#"[{"synthetic":"false"}]"#,
        r#"[{"synthetic":{}}]"#,
        r#"[{"type":"text","synthetic":true},{"type":"file","synthetic":true}]"#,
        r#"[{"synthetic":false,"synthetic":true}]"#,
        r#"[{"s\u0079nthetic":true}]"#,
    ] {
        assert!(!with_parts(parts), "{parts}");
    }
    for parts in [
        r#"[{"synthetic":true},{"type":"text"}]"#,
        r#"[{"type":"file"},{"synthetic":true}]"#,
        r#"[null,{"synthetic":true}]"#,
        r#"[[],{"synthetic":true}]"#,
        r#"["text"]"#,
        r#"[{"synthetic":false}]"#,
        r#"[{"synthetic":0}]"#,
        r#"[{"synthetic":-0.0}]"#,
        r#"[{"synthetic":""}]"#,
        r#"[{"synthetic":null}]"#,
    ] {
        assert!(with_parts(parts), "{parts}");
    }
}

#[test]
fn subtasks_and_compactions_are_not_authored() {
    assert!(!with_parts(r#"[{"type":"text"},{"type":"subtask"}]"#));
    assert!(!with_parts(r#"[{"type":"compaction"}]"#));
    assert!(!with_parts(r#"[{"type":"comp\u0061ction"}]"#));
    assert!(with_parts(r#"[{"type":"patch"},{"type":7},"subtask"]"#));
    assert!(!starts(r#"{"info":{"role":"assistant"},"parts":[{"type":"subtask"}]}"#));
    assert!(!starts(r#"{"info":{"role":"assistant"},"parts":[{"type":"compaction"}]}"#));
}

#[test]
fn v2_rows_say_it_with_their_type() {
    assert!(starts(r#"{"id":"msg_1","type":"user","text":"t"}"#));
    assert!(starts(r#"{"id":"msg_1","type":"user","info":null}"#));
    assert!(starts(r#"{"type":"user","parts":[{"synthetic":true}]}"#));
    for row_type in ["assistant", "synthetic", "User", ""] {
        assert!(!starts(&format!(r#"{{"id":"msg_1","type":"{row_type}"}}"#)), "{row_type}");
    }
    assert!(!starts(r#"{"type":"user","info":{"role":"assistant"}}"#));
    assert!(!starts(r#"{"type":7,"role":"user"}"#));
}

#[test]
fn what_is_no_record_starts_nothing() {
    for record in ["null", "7", r#""user""#, "[]", "true", "{}"] {
        assert!(!starts(record), "{record}");
    }
    assert!(!with_info(r#""user""#));
    assert!(!with_info("[]"));
    assert!(!starts(r#"{"role":"user","parts":[]}"#), "a role outside of info is none");
}
