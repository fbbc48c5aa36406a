//! Bodies to try: what a real server sent, and odd records, changed as text.

use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
};

use super::corpus;
use crate::oracle::records;

/// Values to put in the place of others, and pieces that break things.
const WORDS: [&str; 32] = [
    "null",
    "true",
    "0",
    "-0",
    "1e400",
    "17.5",
    "9007199254740993",
    r#""""#,
    r#""user""#,
    r#""assistant""#,
    r#""tool""#,
    r#""file""#,
    r#""reasoning""#,
    r#""subtask""#,
    r#""text""#,
    r#""message.updated.1""#,
    r#""message.part.delta""#,
    r#""session.diff""#,
    r#""\ud800""#,
    r#""\u00e9\/""#,
    r#""data:image/png;base64,iVBORw0KGgo=""#,
    "[]",
    "{}",
    r#"[{"file":"a.ts","patch":"+x"}]"#,
    r#"{"created":1}"#,
    "[[[[[[[[]]]]]]]]",
    ",",
    "\"",
    "}",
    "\\",
    "\u{feff}",
    "\u{2028}",
];

#[derive(Clone, Debug)]
enum Edit {
    /// The value after one of the colons becomes another one.
    Value(Index, &'static str),
    /// A key is renamed to one that matters elsewhere.
    Key(Index, &'static str),
    Insert(Index, &'static str),
    Byte(Index, u8),
    Cut(Index, usize),
    /// A stretch comes twice.
    Repeat(Index, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let word = || select(WORDS.to_vec());
    let key = select(vec![
        "id",
        "info",
        "parts",
        "type",
        "role",
        "synthetic",
        "summary",
        "text",
        "time",
        "end",
        "data",
        "diff",
        "0",
    ]);
    prop_oneof![
        8 => (any::<Index>(), word()).prop_map(|(at, word)| Edit::Value(at, word)),
        3 => (any::<Index>(), key).prop_map(|(at, key)| Edit::Key(at, key)),
        1 => (any::<Index>(), word()).prop_map(|(at, word)| Edit::Insert(at, word)),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Edit::Byte(at, byte)),
        1 => (any::<Index>(), 1_usize..40).prop_map(|(at, length)| Edit::Cut(at, length)),
        1 => (any::<Index>(), 1_usize..80).prop_map(|(at, length)| Edit::Repeat(at, length)),
    ]
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len();
        match *self {
            Self::Value(at, word) => {
                let Some(colon) = nth_of(bytes, b"\":", at) else { return };
                let start = colon + 2;
                let end = start + value_length(&bytes[start..]);
                bytes.splice(start..end, word.bytes());
            }
            Self::Key(at, key) => {
                let Some(end) = nth_of(bytes, b"\":", at) else { return };
                let start = bytes[..end].iter().rposition(|byte| *byte == b'"');
                bytes.splice(start.map_or(end, |start| start + 1)..end, key.bytes());
            }
            Self::Insert(at, word) => {
                let at = at.index(length);
                bytes.splice(at..at, word.bytes());
            }
            Self::Byte(at, byte) => bytes[at.index(length)] = byte,
            Self::Cut(at, count) => {
                let at = at.index(length);
                bytes.drain(at..(at + count).min(length));
            }
            Self::Repeat(at, count) => {
                let at = at.index(length);
                let stretch = bytes[at..(at + count).min(length)].to_vec();
                bytes.splice(at..at, stretch);
            }
        }
    }
}

/// One of the places where `what` stands.
fn nth_of(bytes: &[u8], what: &[u8], which: Index) -> Option<usize> {
    let places: Vec<_> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(what)).collect();
    (!places.is_empty()).then(|| places[which.index(places.len())])
}

/// How long the value is that starts here, if it is one.
fn value_length(bytes: &[u8]) -> usize {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b',' | b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    bytes.len()
}

fn edited(text: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<u8>> {
    (text, vec(edit(), 0..5)).prop_map(|(text, edits)| {
        let mut bytes = text.into_bytes();
        for edit in &edits {
            edit.apply(&mut bytes);
        }
        bytes
    })
}

fn original() -> impl Strategy<Value = String> {
    prop_oneof![3 => select(corpus::records().to_vec()), 2 => records::record()]
}

/// One message, or what was one.
pub fn record() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![20 => edited(original()), 1 => vec(any::<u8>(), 0..60)]
}

/// A list of messages, or what was one.
pub fn page() -> impl Strategy<Value = Vec<u8>> {
    let row = prop_oneof![
        6 => select(corpus::records().to_vec()),
        1 => records::record(),
        3 => (0..4_u8, select(vec!["user", "assistant"])).prop_map(|(id, role)| {
            format!(r#"{{"info":{{"id":"m{id}","role":"{role}"}},"parts":[{{"type":"text"}}]}}"#)
        }),
        1 => (0..4_u8).prop_map(|id| format!(r#"{{ "id" : "m{id}", "type" : "user" }}"#)),
    ];
    let list = (vec(row, 0..6), 0..8_u8).prop_map(|(rows, shape)| {
        let rows = rows.join(",");
        if shape == 0 { format!(r#"{{"x":[],"items":[{rows}]}}"#) } else { format!("[{rows}]") }
    });
    prop_oneof![20 => edited(list), 1 => vec(any::<u8>(), 0..60)]
}

/// Events of one message, or what were some, in any order, and the message itself.
pub fn stream() -> impl Strategy<Value = (Vec<Vec<u8>>, Vec<u8>)> {
    let about = |kind: &'static str, ids: bool, rest: &str| {
        let ids =
            if ids { r#""sessionID":"ses_1","messageID":"msg_1","partID":"prt_1","# } else { "" };
        format!(r#"{{"type":"{kind}","properties":{{{ids}{rest}}}}}"#)
    };
    let part = |kind: &str, time: &str| {
        format!(
            r#"{{"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"{kind}","text":"","time":{time}}}"#
        )
    };
    let open = [part("text", r#"{"start":1}"#), part("reasoning", r#"{"start":1}"#)];
    let ended = part("text", r#"{"start":1,"end":2}"#);
    let of_part =
        |part: &String| about("message.part.updated", false, &format!(r#""part":{part}"#));
    let synced = format!(
        r#"{{"type":"sync","syncEvent":{{"type":"message.updated.1","data":{{"parts":[{ended}],"info":{{"summary":{{"diffs":[{{"patch":"P"}}]}}}}}}}}}}"#
    );
    let common = vec![
        of_part(&open[0]),
        of_part(&open[1]),
        of_part(&ended),
        about("message.part.delta", true, r#""field":"text","delta":"a\u00e9""#),
        about("message.part.delta", true, r#""field":"text","delta":"\ud83d""#),
        about("message.part.removed", true, r#""x":1"#),
        about("message.removed", true, r#""x":1"#),
        about("session.deleted", true, r#""x":1"#),
        about("session.diff", false, r#""diff":[{"file":"a","patch":"P"}]"#),
        about(
            "message.updated",
            false,
            &format!(r#""info":{{"id":"msg_1"}},"parts":[{}]"#, open[1]),
        ),
        synced,
    ];
    let event = prop_oneof![4 => select(common), 1 => select(corpus::events().to_vec())];
    let event = prop_oneof![2 => event.clone().prop_map(String::into_bytes), 1 => edited(event)];
    let listed = vec(select(vec![open[0].clone(), open[1].clone(), ended, "{}".to_owned()]), 0..3);
    let record = listed
        .prop_map(|parts| format!(r#"{{"info":{{"id":"msg_1"}},"parts":[{}]}}"#, parts.join(",")));
    let record = prop_oneof![3 => edited(record), 1 => edited(original())];
    (vec(event, 0..12), record)
}
