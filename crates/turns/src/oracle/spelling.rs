//! Random values, spelled in every way JSON allows.

use proptest::{
    collection::vec,
    option::weighted,
    prelude::*,
    sample::{Index, select},
};

/// The text of a value.
pub(super) type Text = BoxedStrategy<String>;

/// Any value.
pub(crate) fn json() -> Text {
    scalar()
        .prop_recursive(3, 12, 4, |inner| {
            let keys = ["a", "b", "type", "diffs", "0", "7", "10", "4294967295", "01", "é", "file"];
            let members = vec((select(keys.to_vec()), inner.clone()), 0..4);
            prop_oneof![
                array(inner.boxed(), 3),
                (members, Style::any()).prop_map(|(members, style)| style.object(&members)),
            ]
        })
        .boxed()
}

pub(super) fn scalar() -> Text {
    prop_oneof![3 => string(), 2 => number(), 1 => word_raw(&["null", "true", "false"])].boxed()
}

pub(super) fn number() -> Text {
    word_raw(&[
        "0",
        "-0",
        "1",
        "-1",
        "1.0",
        "1e3",
        "1.9",
        "20",
        "9007199254740993",
        "1e20",
        "1e21",
        "123456789012345678901",
        "0.1",
        "1e-6",
        "1e-7",
        "-2.50E-8",
        "1e400",
        "-1e400",
        "1e-400",
        "999999999999999",
        "9999999999999999",
    ])
}

pub(super) fn string() -> Text {
    let pieces = [
        "a",
        "B c",
        " ",
        "  ",
        "é",
        "汉",
        "😀",
        "\\u00e9",
        "\\u0041",
        "\\/",
        "/",
        "\\\\",
        "\\\"",
        "\\n",
        "\\t",
        "\\u000a",
        "\\u000A",
        "\\b",
        "\\u0007",
        "\\ud83d",
        "\\ude00",
        "\\ud83d\\ude00",
        "\\uD83D",
        "\u{feff}",
        "\u{85}",
        "\u{a0}",
        "\u{2028}",
        "\\u2003",
        "\u{7f}",
        "<",
        "7",
        "user",
    ];
    vec(select(pieces.to_vec()), 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat())).boxed()
}

/// A string around the longest that is kept whole.
pub(super) fn long_string() -> Text {
    let piece = select(vec!["x", "é", "\\u00e9", "😀", "\\ud83d\\ude00", " "]);
    let around = select(vec!["", " ", "\\t ", "\u{feff}", "y", "😀", "\\n"]);
    (around.clone(), piece, 115..245_usize, around)
        .prop_map(|(before, piece, count, after)| {
            format!("\"{before}{}{after}\"", piece.repeat(count))
        })
        .boxed()
}

pub(super) fn word(words: &'static [&'static str]) -> Text {
    (select(words), any::<bool>())
        .prop_map(|(word, escaped)| format!("\"{}\"", spell(word, escaped)))
        .boxed()
}

pub(super) fn word_raw(words: &[&'static str]) -> Text {
    select(words.to_vec()).prop_map(str::to_owned).boxed()
}

/// A word inside a literal, its last letter escaped if asked for.
fn spell(word: &str, escaped: bool) -> String {
    let mut units: Vec<u16> = word.encode_utf16().collect();
    match units.pop() {
        Some(last) if escaped => format!("{}\\u{last:04x}", String::from_utf16(&units).unwrap()),
        _ => word.to_owned(),
    }
}

pub(super) fn array(element: Text, most: usize) -> Text {
    (vec(element, 0..=most), Style::any())
        .prop_map(|(elements, style)| style.array(&elements))
        .boxed()
}

/// An object with some of these members in any order, now and then one of them twice.
pub(super) fn object(members: &[(&'static str, Text)]) -> Text {
    let some = |chance: f64| {
        let members = members.iter().cloned();
        members.map(move |(key, value)| weighted(chance, value.prop_map(move |v| (key, v))))
    };
    let all: Vec<_> = some(0.6).chain(some(0.02)).collect();
    (all.prop_shuffle(), Style::any())
        .prop_map(|(members, style)| {
            style.object(&members.into_iter().flatten().collect::<Vec<_>>())
        })
        .boxed()
}

/// How an object or array is spelled.
#[derive(Clone, Copy, Debug)]
struct Style {
    space: &'static str,
    escaped_key: Option<Index>,
}

impl Style {
    fn any() -> BoxedStrategy<Self> {
        (select(vec!["", "", "", " ", "\n\t"]), weighted(0.1, any::<Index>()))
            .prop_map(|(space, escaped_key)| Self { space, escaped_key })
            .boxed()
    }

    fn object<K: AsRef<str>>(self, members: &[(K, String)]) -> String {
        let space = self.space;
        let escaped =
            self.escaped_key.filter(|_| !members.is_empty()).map(|at| at.index(members.len()));
        let member = |(at, (key, value)): (usize, &(K, String))| {
            let key = spell(key.as_ref(), escaped == Some(at));
            format!("{space}\"{key}\"{space}:{space}{value}{space}")
        };
        let members: Vec<_> = members.iter().enumerate().map(member).collect();
        format!("{{{}{space}}}", members.join(","))
    }

    fn array(self, elements: &[String]) -> String {
        let space = self.space;
        let elements: Vec<_> = elements.iter().map(|e| format!("{space}{e}{space}")).collect();
        format!("[{}{space}]", elements.join(","))
    }
}
