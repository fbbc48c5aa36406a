//! Parts in, slim parts out, as text.

use turnkeep_log::json::Json;

use crate::{Parts, Projection};

/// What a part of a record by `role` becomes.
pub(super) fn slim_in(role: &str, part: &str) -> String {
    let record = format!(r#"{{"info":{{"role":"{role}"}},"parts":[{part}]}}"#);
    let mut out = String::new();
    let projection = Projection { parts: Parts::Slim, reasoning: true };
    projection.write(Json::parse(&record).unwrap(), &mut out);
    let parts = out.strip_prefix(&format!(r#"{{"info":{{"role":"{role}"}},"parts":["#)).unwrap();
    parts.strip_suffix("]}").unwrap().to_owned()
}

fn slim(part: &str) -> String {
    slim_in("assistant", part)
}

/// The slim form of a tool part with this in its state.
fn slim_state(state: &str) -> String {
    let part = format!(r#"{{"type":"tool","state":{{{state}}}}}"#);
    let slim = slim(&part);
    let state = slim.strip_prefix(r#"{"type":"tool","state":{"#).unwrap();
    state.strip_suffix(r#"},"slim":true}"#).unwrap().to_owned()
}

/// What is left of a tool's metadata.
fn slim_metadata(metadata: &str) -> String {
    let slim = slim_state(&format!(r#""metadata":{metadata}"#));
    slim.strip_prefix(r#""metadata":"#).unwrap_or(&slim).to_owned()
}

/// What is left of a tool's arguments.
fn slim_input(input: &str) -> String {
    let slim = slim_state(&format!(r#""input":{input}"#));
    slim.strip_prefix(r#""input":"#).unwrap_or(&slim).to_owned()
}

#[test]
fn a_tool_part_keeps_what_was_called_on_what() {
    assert_eq!(
        slim(
            r#"{"id":"p","sessionID":"s","messageID":"m","type":"tool","callID":"c","tool":"read","state":{"status":"completed","input":{"filePath":"  /a.ts ","offset":0,"limit":20,"content":"x","foo":"y"},"output":"BODY","title":"a.ts","metadata":{"preview":"x","truncated":false},"time":{"start":1,"end":2}},"metadata":{"x":1}}"#
        ),
        r#"{"id":"p","sessionID":"s","messageID":"m","callID":"c","tool":"read","type":"tool","state":{"status":"completed","title":"a.ts","time":{"start":1,"end":2},"input":{"filePath":"/a.ts","offset":0,"limit":20}},"slim":true}"#
    );
}

#[test]
fn arguments_are_cut_after_240_code_units() {
    let command = "é".repeat(300);
    assert_eq!(
        slim(&format!(
            r#"{{"type":"tool","tool":"bash","state":{{"status":"running","input":{{"command":"{command}","description":"","timeout":5,"limit":"12"}}}}}}"#
        )),
        format!(
            r#"{{"tool":"bash","type":"tool","state":{{"status":"running","input":{{"command":"{}","limit":"12"}}}},"slim":true}}"#,
            "é".repeat(240)
        )
    );
}

#[test]
fn an_edit_keeps_its_counts() {
    assert_eq!(
        slim(
            r#"{"id":"p","type":"tool","tool":"edit","state":{"status":"completed","metadata":{"diff":"--- a\n+++ b\n@@\n-x\n+y\n+z","filediff":{"file":"a.ts","patch":"-x\n+y","additions":2,"deletions":1,"before":"B","after":"A"},"diagnostics":{}},"input":{"filePath":"a.ts","oldString":"x","newString":"y"}}}"#
        ),
        r#"{"id":"p","tool":"edit","type":"tool","state":{"status":"completed","input":{"filePath":"a.ts"},"metadata":{"filediff":{"file":"a.ts","filePath":"a.ts","additions":2,"deletions":1},"additions":2,"deletions":1}},"slim":true}"#
    );
}

#[test]
fn a_patch_keeps_its_files_and_their_sums() {
    assert_eq!(
        slim_metadata(
            r#"{"files":[{"relativePath":"a.ts","filePath":"/r/a.ts","additions":"3","deletions":1.9,"patch":"P"},{"path":"b.ts","diff":"+1\n+2\n-3"},"bad",null,{"type":"add"}]}"#
        ),
        r#"{"files":[{"relativePath":"a.ts","filePath":"/r/a.ts","additions":3,"deletions":1},{"path":"b.ts","additions":2,"deletions":1}],"additions":5,"deletions":2}"#
    );
}

#[test]
fn a_task_keeps_the_sessions_it_started() {
    assert_eq!(
        slim(
            r#"{"type":"tool","tool":"task","metadata":{"sessionId":" ses_c ","sessionID":"ses_c","z":1},"state":{"metadata":{"sessionId":"ses_c","sessionID":"ses_D","model":{},"summary":[]},"input":{"subagent_type":"fixer","description":"d","prompt":"LONG","command":""}}}"#
        ),
        r#"{"tool":"task","metadata":{"sessionId":"ses_c"},"type":"tool","state":{"input":{"description":"d","subagent_type":"fixer"},"metadata":{"sessionId":"ses_c","sessionID":"ses_D"}},"slim":true}"#
    );
    let spelled_differently = r#"{"sessionId":"ses_1","sessionID":"\tses\u005f1"}"#;
    assert_eq!(slim_metadata(spelled_differently), r#"{"sessionId":"ses_1"}"#);
    assert_eq!(slim_metadata(r#"{"sessionId":" ","sessionID":" x "}"#), r#"{"sessionID":"x"}"#);
    assert_eq!(slim_metadata(r#"{"sessionId":1,"sessionID":null}"#), "");
}

#[test]
fn what_is_no_state_is_left_out() {
    assert_eq!(
        slim(r#"{"type":"tool","id":"p","tool":"x","state":null}"#),
        r#"{"id":"p","tool":"x","type":"tool","slim":true}"#
    );
    assert_eq!(slim(r#"{"type":"tool","state":"x"}"#), r#"{"type":"tool","slim":true}"#);
    assert_eq!(slim(r#"{"type":"tool","state":[1]}"#), r#"{"type":"tool","state":{},"slim":true}"#);
    assert_eq!(slim(r#"{"type":"tool","state":{}}"#), r#"{"type":"tool","state":{},"slim":true}"#);
}

#[test]
fn null_is_kept_where_values_are_kept_as_they_are() {
    assert_eq!(
        slim(
            r#"{"type":"tool","id":"p","tool":"bash","callID":null,"state":{"status":"error","input":{},"error":"E","time":{"start":1,"end":2}}}"#
        ),
        r#"{"id":"p","callID":null,"tool":"bash","type":"tool","state":{"status":"error","time":{"start":1,"end":2}},"slim":true}"#
    );
}

#[test]
fn counts_are_numbers_from_zero_up() {
    assert_eq!(
        slim_metadata(r#"{"additions":-4,"deletions":"7abc","name":" n "}"#),
        r#"{"additions":0,"deletions":7,"name":"n"}"#
    );
    let cases = [
        ("3", "3"),
        ("1.9", "1"),
        ("-0.5", "0"),
        ("-0", "0"),
        ("1e21", "1e+21"),
        (r#"" 12 ""#, "12"),
        (r#""\ufeff\u00378""#, "78"),
        (r#""+5x""#, "5"),
        (r#""-3""#, "0"),
        (r#""0x10""#, "0"),
        (r#""1e3""#, "1"),
        (r#""1.9""#, "1"),
    ];
    for (stated, count) in cases {
        let slim = slim_metadata(&format!(r#"{{"additions":{stated}}}"#));
        assert_eq!(slim, format!(r#"{{"additions":{count}}}"#), "{stated}");
    }
    let beyond = format!("\"{}\"", "9".repeat(400));
    let unknown = [
        "1e400", "-1e400", "null", "true", "[1]", "{}", r#""""#, r#""x""#, r#""-""#, r#""- 3""#,
        &beyond,
    ];
    for stated in unknown {
        let slim = slim_metadata(&format!(r#"{{"additions":{stated},"patch":"+a"}}"#));
        assert_eq!(slim, r#"{"additions":1,"deletions":0}"#, "{stated}");
        assert_eq!(slim_metadata(&format!(r#"{{"additions":{stated}}}"#)), "", "{stated}");
    }
}

#[test]
fn lines_of_a_patch_are_counted() {
    let cases = [
        (r"+a", Some((1, 0))),
        (r"-a\n+", Some((1, 1))),
        (r"++\n--\n+\n-", Some((2, 2))),
        (r"+++ b\n--- a\n+++", None),
        (r"@@ -1 +1 @@\n a\n\n", None),
        (r"", None),
        (r" \n+a\n", Some((1, 0))),
        // Escaped characters count like others, and an escaped backslash starts no escape.
        (r"\u002ba\u000a\u002d", Some((1, 1))),
        (r"+\u002b+\n+", Some((1, 0))),
        (r"\\n+a", None),
        (r"a\\\n+a", Some((1, 0))),
        (r"a\r\n+a\r+b", Some((1, 0))),
        (r"a\u2028+b", None),
        (r"+\ud800", Some((1, 0))),
        (r"é+\n+é", Some((1, 0))),
        (r"\u001b[32m+a\n+b", Some((1, 0))),
    ];
    for (patch, counts) in cases {
        let expected = counts.map_or(String::new(), |(added, deleted)| {
            format!(r#"{{"additions":{added},"deletions":{deleted}}}"#)
        });
        for key in ["patch", "diff"] {
            assert_eq!(slim_metadata(&format!(r#"{{"{key}":"{patch}"}}"#)), expected, "{patch}");
        }
    }
    // A patch hides a diff, unless it is no text at all.
    assert_eq!(slim_metadata(r#"{"patch":"","diff":"+a"}"#), "");
    assert_eq!(slim_metadata(r#"{"patch":null,"diff":"+a"}"#), r#"{"additions":1,"deletions":0}"#);
}

#[test]
fn counts_fall_back_from_own_to_patch_to_files_to_the_single_file() {
    // Each field by itself: stated, then counted.
    assert_eq!(
        slim_metadata(r#"{"additions":9,"patch":"+a\n-b\n-c"}"#),
        r#"{"additions":9,"deletions":2}"#
    );
    // Sums only when neither is known, and then both.
    assert_eq!(
        slim_metadata(r#"{"files":[{"path":"a","additions":1},{"path":"b"}]}"#),
        r#"{"files":[{"path":"a","additions":1},{"path":"b"}],"additions":1,"deletions":0}"#
    );
    assert_eq!(
        slim_metadata(r#"{"deletions":4,"files":[{"path":"a","additions":1}]}"#),
        r#"{"files":[{"path":"a","additions":1}],"deletions":4}"#
    );
    assert_eq!(
        slim_metadata(r#"{"files":[{"path":"a"}],"filediff":{"additions":3}}"#),
        r#"{"files":[{"path":"a"}],"filediff":{"additions":3},"additions":3}"#
    );
    assert_eq!(
        slim_metadata(r#"{"additions":1,"filediff":{"path":"a","additions":5,"deletions":6}}"#),
        r#"{"filediff":{"path":"a","additions":5,"deletions":6},"additions":1,"deletions":6}"#
    );
    let sums_past_the_double_range = r#"{"files":[{"additions":1.7e308},{"additions":1.7e308}]}"#;
    assert_eq!(
        slim_metadata(sums_past_the_double_range),
        r#"{"files":[{"additions":1.7e+308},{"additions":1.7e+308}],"additions":null,"deletions":0}"#
    );
}

#[test]
fn a_changed_file_has_one_path_or_its_two_names() {
    let cases = [
        (r#"{"path":" a ","filePath":"","relativePath":1}"#, r#"[{"path":"a"}]"#),
        (r#"{"path":"a","filePath":"b"}"#, r#"[{"filePath":"b"}]"#),
        (r#"{"path":"a","relativePath":"b"}"#, r#"[{"relativePath":"b"}]"#),
        (r#"{"filePath":"b","relativePath":"a"}"#, r#"[{"relativePath":"a","filePath":"b"}]"#),
        // Not every change is a `file`: that name belongs to the single one.
        (r#"{"file":"a","patch":""}"#, ""),
        (r#"[{"path":"a"}]"#, ""),
    ];
    for (file, expected) in cases {
        let slim = slim_metadata(&format!(r#"{{"files":[{file}]}}"#));
        let files = slim.strip_prefix(r#"{"files":"#).map_or("", |slim| &slim[..slim.len() - 1]);
        assert_eq!(files, expected, "{file}");
    }
    for files in [r#"{"a":{"path":"a"}}"#, "null", r#""a""#, "[]", "[[]]"] {
        assert_eq!(slim_metadata(&format!(r#"{{"files":{files}}}"#)), "", "{files}");
    }
}

#[test]
fn the_single_file_is_named_as_it_was_sent() {
    let cases = [
        (r#"{"file":" a "}"#, r#"{"file":" a ","filePath":"a"}"#),
        (r#"{"file":"a","filePath":"b"}"#, r#"{"file":"a","filePath":"a"}"#),
        (r#"{"file":1,"filePath":"b"}"#, r#"{"filePath":"b"}"#),
        (r#"{"file":"a","relativePath":"r"}"#, r#"{"file":"a","relativePath":"r","filePath":"a"}"#),
        (r#"{"file":" ","filePath":"b","path":"p"}"#, r#"{"file":" ","path":"p"}"#),
        (r#"{"file":"\u0061\/"}"#, r#"{"file":"a/","filePath":"a/"}"#),
        (r#"{"file":""}"#, ""),
        (r#"{"file":"","filePath":"b"}"#, ""),
        ("[]", ""),
        (r#""a""#, ""),
    ];
    for (filediff, expected) in cases {
        let slim = slim_metadata(&format!(r#"{{"filediff":{filediff}}}"#));
        let slim = slim.strip_prefix(r#"{"filediff":"#).map_or("", |slim| &slim[..slim.len() - 1]);
        assert_eq!(slim, expected, "{filediff}");
    }
}

#[test]
fn arguments_are_strings_and_finite_numbers_in_a_fixed_order() {
    let all = r#"{"id":19,"name":18,"subagent":17,"agent":16,"subagentType":15,"subagent_type":14,"description":13,"limit":12,"offset":11,"command":10,"target":9,"query":8,"exclude":7,"include":6,"glob":5,"pattern":4,"file_path":3,"filePath":2,"path":1,"text":0}"#;
    assert_eq!(
        slim_input(all),
        r#"{"path":1,"filePath":2,"file_path":3,"pattern":4,"glob":5,"include":6,"exclude":7,"query":8,"target":9,"command":10,"offset":11,"limit":12,"description":13,"subagent_type":14,"subagentType":15,"agent":16,"subagent":17,"name":18,"id":19}"#
    );
    assert_eq!(
        slim_input(r#"{"path":1.50,"limit":-0,"offset":1e400,"id":1E3}"#),
        r#"{"path":1.5,"limit":0,"id":1000}"#
    );
    assert_eq!(slim_input(r#"{"path":null,"query":true,"name":["a"],"id":{"a":1}}"#), "");
    assert_eq!(slim_input(r#"["a"]"#), "");
    assert_eq!(slim_input(r#""path""#), "");
    assert_eq!(slim_input(r#"{"path":"a","path":"b"}"#), r#"{"path":"b"}"#);
    assert_eq!(slim_input(r#"{"path":"a","path":null}"#), "");
    assert_eq!(slim_input(r#"{"p\u0061th":"a"}"#), r#"{"path":"a"}"#);
}

#[test]
fn strings_are_trimmed_as_javascript_trims() {
    let space = "\\t\\n\\u000b\\f\\r \u{a0}\u{1680}\u{2000}\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}\\ufeff";
    assert_eq!(slim_input(&format!(r#"{{"path":"{space}a{space}b{space}"}}"#)).len(), {
        let kept = "\\t\\n\\u000b\\f\\r \u{a0}\u{1680}\u{2000}\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}\u{feff}";
        format!(r#"{{"path":"a{kept}b"}}"#).len()
    });
    assert_eq!(slim_input(&format!(r#"{{"path":"{space}"}}"#)), "");
    let plain = "\u{a0}\u{3000}\u{feff}";
    assert_eq!(slim_input(&format!(r#"{{"path":"{plain}a{plain}"}}"#)), r#"{"path":"a"}"#);
    // White space to others, not to JavaScript.
    let kept = "{\"path\":\"\u{85}a\u{200b}\u{180e}\"}";
    assert_eq!(slim_input(kept), kept);
}

#[test]
fn a_cut_may_go_through_a_character() {
    let input = |text: &str| slim_input(&format!(r#"{{"path":"{text}"}}"#));
    let path = |text: &str| format!(r#"{{"path":"{text}"}}"#);
    let (a239, a240) = ("a".repeat(239), "a".repeat(240));
    assert_eq!(input(&a240), path(&a240));
    assert_eq!(input(&format!("{a240}b")), path(&a240));
    assert_eq!(input(&"😀".repeat(121)), path(&"😀".repeat(120)));
    assert_eq!(input(&format!("{a239}😀")), path(&format!("{a239}\\ud83d")));
    assert_eq!(input(&format!("{a239}\\ud83d\\ude00")), path(&format!("{a239}\\ud83d")));
    assert_eq!(input(&format!("{a239}\\uD83D")), path(&format!("{a239}\\ud83d")));
    // Trimmed first, then cut: what was inside stays, even when it ends the piece.
    for b in ["b", "\\u0062"] {
        assert_eq!(input(&format!("  {a239} {b}")), path(&format!("{a239} ")));
        assert_eq!(input(&format!("{b}{a239} ")), path(&format!("b{a239}")));
        assert_eq!(input(&format!("{b}{a239}  {b}")), path(&format!("b{a239}")));
    }
    assert_eq!(input(&format!("{a239} \\n ")), path(&a239));
    // Paths of changed files and sessions are trimmed, not cut; a name is both.
    let long = "x".repeat(300);
    let metadata =
        format!(r#"{{"sessionId":" {long}","files":[{{"path":"{long}"}}],"name":"{long}"}}"#);
    assert_eq!(
        slim_metadata(&metadata),
        format!(
            r#"{{"sessionId":"{long}","files":[{{"path":"{long}"}}],"name":"{}"}}"#,
            "x".repeat(240)
        )
    );
}

#[test]
fn copied_values_are_printed_anew() {
    assert_eq!(
        slim(
            r#"{ "type" : "tool" , "id" : "\u00e9\/" , "callID" : 1.0 , "tool" : { "b" : 1 , "7" : 1e400 , "b" : "\uD800" } , "state" : { "title" : [ 1E2 , { } ] , "status" : "\u0061" } }"#
        ),
        r#"{"id":"é/","callID":1,"tool":{"7":null,"b":"\ud800"},"type":"tool","state":{"status":"a","title":[100,{}]},"slim":true}"#
    );
}

#[test]
fn the_last_of_a_repeated_key_counts() {
    assert_eq!(
        slim(
            r#"{"type":"text","id":1,"state":{"status":"a","title":"t"},"metadata":{"sessionId":"a"},"id":2,"state":{"status":"b"},"metadata":{},"type":"tool"}"#
        ),
        r#"{"id":2,"type":"tool","state":{"status":"b"},"slim":true}"#
    );
    assert_eq!(
        slim(r#"{"type":"tool","state":{"title":1},"state":null}"#),
        r#"{"type":"tool","slim":true}"#
    );
    assert_eq!(
        slim_metadata(
            r#"{"files":[{"path":"a"}],"files":1,"filediff":{"path":"a"},"filediff":[]}"#
        ),
        ""
    );
    assert_eq!(slim_state(r#""input":{"path":"a"},"input":[]"#), "");
    assert_eq!(slim_state(r#""metadata":{"name":"a"},"metadata":null"#), "");
}

#[test]
fn reasoning_keeps_its_time() {
    let part = r#"{"type":"reasoning","id":"r","sessionID":"s","messageID":"m","text":"T","time":{"start":1},"metadata":{"a":1}}"#;
    assert_eq!(
        slim(part),
        r#"{"id":"r","sessionID":"s","messageID":"m","type":"reasoning","time":{"start":1},"slim":true}"#
    );
    assert_eq!(slim_in("user", part), part);
}

#[test]
fn parts_of_other_types_are_left_as_they_are() {
    for part in [
        r#"{"type":"text","text":"\u0061","metadata":{}}"#,
        r#"{"type":"patch","files":["a"],"hash":"h"}"#,
        r#"{"type":"Tool","state":{"output":"x"}}"#,
        r#"{"type":["tool"]}"#,
        r#"{"type":null}"#,
        r#"{"state":{"output":"x"}}"#,
        r#"["tool"]"#,
        "null",
        "1.0",
    ] {
        assert_eq!(slim(part), part);
    }
    assert_eq!(slim(r#"{"t\u0079pe":"t\u006fol"}"#), r#"{"type":"tool","slim":true}"#);
}
