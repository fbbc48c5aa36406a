//! Random records, as text: every key the projections know, with values of every type, likely
//! and odd, spelled in every way JSON allows.

use proptest::{collection::vec, prelude::*, sample::select};

use super::{
    media::data_url,
    spelling::{Text, array, json, long_string, number, object, scalar, string, word, word_raw},
};

/// A record.
pub(crate) fn record() -> Text {
    let parts = || {
        prop_oneof![
            12 => array(part(), 5),
            1 => scalar(),
            1 => object(&[("0", part())]),
        ]
        .boxed()
    };
    let known = object(&[("info", info()), ("parts", parts()), ("extra", scalar())]);
    prop_oneof![20 => known, 1 => json()].boxed()
}

/// What carries a summary.
pub(crate) fn info() -> Text {
    let role = || prop_oneof![4 => word(&["user", "assistant", "system"]), 1 => scalar()].boxed();
    let summary = prop_oneof![
        6 => object(&[
            ("diffs", diffs()),
            ("diffCount", prop_oneof![select(vec!["0", "1", "2.0", "\"1\""]).prop_map(str::to_owned), scalar()].boxed()),
            ("hasDiffs", word_raw(&["true", "false", "1"])),
            ("title", string()),
        ]),
        1 => scalar(),
    ];
    let known = object(&[
        ("role", role()),
        ("clientRole", role()),
        ("summary", summary.boxed()),
        ("tokens", json()),
        ("id", string()),
    ]);
    prop_oneof![12 => known, 1 => scalar(), 1 => array(scalar(), 2)].boxed()
}

/// A list of diffs.
pub(crate) fn diffs() -> Text {
    let diff = object(&[
        ("file", string()),
        ("status", scalar()),
        ("additions", count()),
        ("deletions", count()),
        ("patch", patch()),
        ("before", json()),
    ]);
    let reduced = prop_oneof![
        Just(r#"{"file":"a","status":"added","additions":1,"deletions":0}"#),
        Just(r#"{ "file" : "\u0061" , "deletions":-0 }"#),
        Just("{}"),
    ]
    .prop_map(str::to_owned);
    let entry = prop_oneof![4 => diff, 2 => reduced, 1 => json()].boxed();
    prop_oneof![8 => array(entry, 4), 1 => json()].boxed()
}

fn part() -> Text {
    let kind = prop_oneof![
        9 => word(&["tool", "reasoning", "file"]),
        3 => word(&["text", "step-start", "Tool", " file"]),
        1 => scalar(),
    ];
    let known = object(&[
        ("type", kind.boxed()),
        ("id", prop_oneof![string(), json()].boxed()),
        ("sessionID", scalar()),
        ("messageID", scalar()),
        ("callID", scalar()),
        ("tool", prop_oneof![string(), json()].boxed()),
        ("text", string()),
        ("time", time()),
        ("metadata", part_metadata()),
        ("state", state()),
        ("mime", scalar()),
        ("filename", scalar()),
        ("url", prop_oneof![5 => data_url(), 1 => scalar()].boxed()),
        ("size", size()),
        ("byteSize", size()),
        ("width", size()),
        ("height", size()),
        ("10", scalar()),
    ]);
    prop_oneof![20 => known, 1 => json()].boxed()
}

fn time() -> Text {
    prop_oneof![
        4 => Just(r#"{"start":1796030447737,"end":1796030447926}"#.to_owned()),
        1 => json(),
    ]
    .boxed()
}

fn part_metadata() -> Text {
    let known = object(&[
        ("sessionId", id()),
        ("sessionID", id()),
        ("size", size()),
        ("byteSize", size()),
        ("width", size()),
        ("height", size()),
    ]);
    prop_oneof![8 => known, 1 => json()].boxed()
}

fn state() -> Text {
    let known = object(&[
        ("status", scalar()),
        ("title", scalar()),
        ("time", time()),
        ("input", input()),
        ("metadata", tool_metadata()),
        ("output", string()),
        ("error", string()),
    ]);
    prop_oneof![10 => known, 1 => Just("[]".to_owned()), 1 => json()].boxed()
}

fn input() -> Text {
    let keys = [
        "path",
        "filePath",
        "pattern",
        "include",
        "command",
        "offset",
        "limit",
        "description",
        "subagent_type",
        "agent",
        "name",
        "id",
        "content",
        "timeout",
    ];
    let value =
        || prop_oneof![2 => string(), 2 => long_string(), 1 => number(), 1 => json()].boxed();
    let known = object(&keys.map(|key| (key, value())));
    prop_oneof![10 => known, 1 => array(json(), 2), 1 => scalar()].boxed()
}

fn tool_metadata() -> Text {
    let file = || {
        object(&[
            ("file", string()),
            ("relativePath", string()),
            ("filePath", string()),
            ("path", string()),
            ("additions", count()),
            ("deletions", count()),
            ("patch", patch()),
            ("diff", patch()),
        ])
    };
    let files =
        prop_oneof![6 => array(prop_oneof![4 => file(), 1 => json()].boxed(), 3), 1 => json()];
    let filediff = prop_oneof![6 => file(), 1 => json()];
    let known = object(&[
        ("sessionId", id()),
        ("sessionID", id()),
        ("files", files.boxed()),
        ("filediff", filediff.boxed()),
        ("additions", count()),
        ("deletions", count()),
        ("patch", patch()),
        ("diff", patch()),
        ("name", prop_oneof![long_string(), scalar()].boxed()),
        ("output", string()),
    ]);
    prop_oneof![10 => known, 1 => json()].boxed()
}

fn id() -> Text {
    prop_oneof![4 => word_raw(&[r#""ses_1""#, r#"" ses_1\t""#, r#""ses\u005f1""#, r#""""#]), 1 => scalar()].boxed()
}

fn count() -> Text {
    let likely = [
        "0",
        "3",
        "1.9",
        "-4",
        "-0",
        "-0.5",
        "1e3",
        "1e400",
        "\"7abc\"",
        "\" +12 \"",
        "\"-3\"",
        "\"x\"",
        "\"\"",
        "\"\\u0037\"",
        "\"1e3\"",
        "\"\\ufeff8\"",
        "\"- 3\"",
        "true",
    ];
    prop_oneof![6 => word_raw(&likely), 1 => scalar()].boxed()
}

fn size() -> Text {
    let likely = [
        "0",
        "-0",
        "-1",
        "640",
        "3.0",
        "2.5",
        "1e3",
        "1e400",
        "\"640\"",
        "\"007\"",
        "\" 640\"",
        "\"-1\"",
        "\"\"",
        "\"\\u0031\"",
        "\"1.0\"",
        "null",
    ];
    prop_oneof![6 => word_raw(&likely), 1 => scalar()].boxed()
}

fn patch() -> Text {
    let line = [
        "+",
        "-",
        "+++ b",
        "--- a",
        "++",
        "--",
        "+x",
        "-y",
        "@@ -1 +1 @@",
        " c",
        "",
        "\\u002bz",
        "+\\u002b+",
        "\\t+",
        "\\\\n+",
        "é+",
        "+é",
        "\\/",
        "-\\ud800",
        "+\\r",
    ];
    let end = ["\\n", "\\n", "\\n", "\\n", "\\u000a", "\\u000A", "\\r\\n", "\\\\n"];
    let lines = vec((select(line.to_vec()), select(end.to_vec())), 0..8).prop_map(|lines| {
        let mut text = String::from("\"");
        for (line, end) in lines {
            text += line;
            text += end;
        }
        // Half of them do not end with a newline.
        if text.len() % 2 == 0 {
            text += "+last";
        }
        text + "\""
    });
    prop_oneof![8 => lines, 1 => scalar()].boxed()
}
