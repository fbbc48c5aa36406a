use proptest::prelude::*;
use turnkeep_log::json::write_str;

use super::*;

fn token(before: Option<&str>, boundary: &str) -> Token {
    Token { before: before.map(str::to_owned), boundary: boundary.to_owned() }
}

/// A token with this JSON inside.
fn around(json: &str) -> String {
    format!("oc1.{}", URL_SAFE_NO_PAD.encode(json))
}

#[test]
fn tokens_are_spelled_as_other_hosts_spell_them() {
    let position = "eyJpZCI6Im1zZ18wMSIsInRpbWUiOjE3ODAwMDAwMDAwMDB9";
    let table = [
        (token(None, "msg_u3"), "oc1.eyJ2IjoxLCJiZWZvcmUiOm51bGwsImJvdW5kYXJ5SUQiOiJtc2dfdTMifQ"),
        (
            token(Some("opaque_raw_xyz"), "msg_u3"),
            "oc1.eyJ2IjoxLCJiZWZvcmUiOiJvcGFxdWVfcmF3X3h5eiIsImJvdW5kYXJ5SUQiOiJtc2dfdTMifQ",
        ),
        (
            token(Some(position), "msg_02"),
            "oc1.eyJ2IjoxLCJiZWZvcmUiOiJleUpwWkNJNkltMXpaMTh3TVNJc0luUnBiV1VpT2pFM09EQXdNREF3TURBd01EQjkiLCJib3VuZGFyeUlEIjoibXNnXzAyIn0",
        ),
        (
            token(Some("a+b/c==?&"), "msg_é"),
            "oc1.eyJ2IjoxLCJiZWZvcmUiOiJhK2IvYz09PyYiLCJib3VuZGFyeUlEIjoibXNnX8OpIn0",
        ),
        (token(None, "x"), "oc1.eyJ2IjoxLCJiZWZvcmUiOm51bGwsImJvdW5kYXJ5SUQiOiJ4In0"),
        (token(Some("0"), "汉"), "oc1.eyJ2IjoxLCJiZWZvcmUiOiIwIiwiYm91bmRhcnlJRCI6IuaxiSJ9"),
    ];
    for (token, text) in table {
        assert_eq!(token.encode(), text);
        assert_eq!(Token::decode(text), Some(token));
    }
}

#[test]
fn other_spellings_are_accepted() {
    let wanted = Some(token(Some("6"), "u3"));
    for json in [
        r#"{"boundaryID":"u3","v":1,"before":"6"}"#,
        r#"{"v":1.0,"before":"6","boundaryID":"u3"}"#,
        r#"{"v":1e0,"before":"6","boundaryID":"u3"}"#,
        " \n{ \"v\" : 1 , \"before\":\"6\",\"boundaryID\":\"u3\" }\t",
        r#"{"v":2,"before":"6","boundaryID":"u3","v":1}"#,
        r#"{"v":1,"before":"\u0036","boundary\u0049D":"u3"}"#,
    ] {
        assert_eq!(Token::decode(&around(json)), wanted, "{json}");
    }
    let text = around(r#"{"v":1,"before":"6","boundaryID":"u3"}"#);
    let (prefix, body) = text.split_at(12);
    assert_eq!(Token::decode(&format!("{text}==")), wanted);
    assert_eq!(Token::decode(&format!("{prefix}! {body}\n")), wanted);
    let both = token(Some("~~~???"), "ÿÿÿ");
    let standard = both.encode().replace('-', "+").replace('_', "/");
    assert_ne!(standard, both.encode());
    assert_eq!(Token::decode(&standard), Some(both));
}

#[test]
fn unsound_tokens_are_refused() {
    for json in [
        r#"{"v":"1","before":"6","boundaryID":"u3"}"#,
        r#"{"v":2,"before":"6","boundaryID":"u3"}"#,
        r#"{"before":"6","boundaryID":"u3"}"#,
        r#"{"v":1,"boundaryID":"u3"}"#,
        r#"{"v":1,"before":"","boundaryID":"u3"}"#,
        r#"{"v":1,"before":6,"boundaryID":"u3"}"#,
        r#"{"v":1,"before":"6"}"#,
        r#"{"v":1,"before":"6","boundaryID":""}"#,
        r#"{"v":1,"before":"6","boundaryID":null}"#,
        r#"{"v":1,"before":"6","boundaryID":"u3","extra":1}"#,
        r#"{"v":1,"before":"6","boundaryID":"u3","__proto__":1}"#,
        r#"{"v":1,"before":"6","boundaryID":"u3","\ud800":1}"#,
        "\u{feff}{\"v\":1,\"before\":\"6\",\"boundaryID\":\"u3\"}",
        "[]",
        "null",
        "7",
        "{",
        "",
    ] {
        assert_eq!(Token::decode(&around(json)), None, "{json}");
    }
    let text = around(r#"{"v":1,"before":"6","boundaryID":"u3"}"#);
    assert_eq!(Token::decode(&text.replace("oc1.", "OC1.")), None);
    assert_eq!(Token::decode(text.trim_start_matches("oc1.")), None);
    assert_eq!(Token::decode("oc1."), None);
    assert_eq!(Token::decode("oc1.!!!"), None);
}

#[test]
fn tokens_end_at_8192_utf16_units() {
    let text = around(r#"{"v":1,"before":"6","boundaryID":"u3"}"#);
    // Anything that is no digit of base64 is skipped, so it can serve as filler.
    let filler = |units: usize| format!("{text}{}", "\u{1f600}".repeat((units - text.len()) / 2));
    let fits = filler(8192);
    assert_eq!(fits.encode_utf16().count() + text.len() % 2, 8192);
    assert!(Token::decode(&fits).is_some());
    assert_eq!(Token::decode(&format!("{fits}!!")), None);
}

#[test]
fn invalid_utf8_inside_becomes_replacement_characters() {
    let mut bytes = br#"{"v":1,"before":null,"boundaryID":"a"#.to_vec();
    bytes.extend([0xFF, b'"', b'}']);
    let text = format!("oc1.{}", URL_SAFE_NO_PAD.encode(bytes));
    assert_eq!(Token::decode(&text), Some(token(None, "a\u{fffd}")));
}

#[test]
fn positions_are_spelled_as_opencode_spells_them() {
    let position =
        Position { time: 1_796_030_447_737, id: "msg_22bc1c079001u9lsVx8SciuoFA".to_owned() };
    let text = "eyJpZCI6Im1zZ18yMmJjMWMwNzkwMDF1OWxzVng4U2NpdW9GQSIsInRpbWUiOjE3OTYwMzA0NDc3Mzd9";
    assert_eq!(position.encode(), text, "an x-next-cursor of a real server");
    assert_eq!(Position::decode(text), Some(position.clone()));
    assert_eq!(Position::decode(&format!("{text}=!")), Some(position));
    let msg = Position { time: 1_780_000_000_000, id: "msg_01".to_owned() };
    assert_eq!(msg.encode(), "eyJpZCI6Im1zZ18wMSIsInRpbWUiOjE3ODAwMDAwMDAwMDB9");
}

#[test]
fn what_is_no_position_decodes_to_none() {
    for json in [
        r#"{"id":"msg_1"}"#,
        r#"{"time":1}"#,
        r#"{"id":"","time":1}"#,
        r#"{"id":"msg_1","time":-1}"#,
        r#"{"id":"msg_1","time":1.5}"#,
        r#"{"id":"msg_1","time":"1"}"#,
        r#"{"id":1,"time":1}"#,
        r#"{"id":"msg_1","order":"desc","direction":"next"}"#,
        r#"{"seq":7}"#,
        "[]",
    ] {
        assert_eq!(Position::decode(&URL_SAFE_NO_PAD.encode(json)), None, "{json}");
    }
    for text in ["", "6", "msg_1", "opaque_older", "////"] {
        assert_eq!(Position::decode(text), None, "{text}");
    }
}

#[test]
fn positions_order_by_time_then_by_the_bytes_of_the_id() {
    let place = |time, id: &str| Position { time, id: id.to_owned() };
    assert!(place(1, "b") < place(2, "a"));
    assert!(place(1, "a") < place(1, "b"));
    // UTF-16 would have it the other way round; the database compares bytes.
    assert!(place(1, "\u{ff5e}") < place(1, "\u{1f600}"));
}

#[test]
fn log_positions_are_seqs() {
    assert_eq!(encode_seq(Seq(42)), URL_SAFE_NO_PAD.encode(r#"{"seq":42}"#));
    assert_eq!(decode_seq(&encode_seq(Seq(42))), Some(Seq(42)));
    for text in ["", "42", &URL_SAFE_NO_PAD.encode(r#"{"seq":-1}"#), &around(r#"{"seq":1}"#)] {
        assert_eq!(decode_seq(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn tokens_survive_a_round_trip(before in prop::option::of(".{1,40}"), boundary in ".{1,40}") {
        let token = Token { before, boundary };
        prop_assert_eq!(Token::decode(&token.encode()), Some(token));
    }

    #[test]
    fn positions_survive_a_round_trip(time in 0..(1_u64 << 53), id in ".{1,40}") {
        let position = Position { time, id };
        let mut json = String::from(r#"{"id":"#);
        write_str(&mut json, &position.id);
        prop_assert!(String::from_utf8(lenient::decode(&position.encode())).unwrap().starts_with(&json));
        prop_assert_eq!(Position::decode(&position.encode()), Some(position));
    }

    #[test]
    fn no_text_breaks_decoding(text in any::<String>()) {
        prop_assert_eq!(Token::decode(&text), None);
        let _ = Token::decode(&format!("oc1.{text}"));
        let _ = (Position::decode(&text), decode_seq(&text));
    }
}
