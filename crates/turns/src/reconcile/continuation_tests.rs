use std::collections::HashSet;

use super::*;
use crate::reconcile::{gap::Resume, keys::KeyRing};

const KEY: &[u8] = b"test-reconcile-secret-32-bytes!!";
const NOW: u64 = 1_700_000_000_000;

fn keys() -> KeyRing {
    KeyRing::new(KEY).unwrap()
}

fn scope() -> Scope {
    Scope {
        runtime: "web".to_owned(),
        directory: Some("/repo".to_owned()),
        session: "ses_1".to_owned(),
        reasoning: true,
    }
}

fn progress() -> Progress {
    Progress {
        anchor: "msg_u2".to_owned(),
        anchor_found: false,
        captured_head: "msg_a5".to_owned(),
        resume: Resume { scan_before: None, returned_through: Some("msg_u4".to_owned()) },
        scanned: Tally { records: 12, bytes: 4096 },
        pages: 1,
    }
}

const VECTOR: &str = "ocr2.eyJ2IjoyLCJydW50aW1lIjoid2ViIiwiZGlyZWN0b3J5IjoiL3JlcG8iLCJzZXNzaW9uSUQiOiJzZXNfMSIsImFuY2hvciI6Im1zZ191MiIsImNhcHR1cmVkSGVhZCI6Im1zZ19hNSIsInNjYW5CZWZvcmUiOm51bGwsInJldHVybmVkVGhyb3VnaElEIjoibXNnX3U0Iiwic2Nhbm5lZFJlY29yZHMiOjEyLCJzY2FubmVkQnl0ZXMiOjQwOTYsInBhZ2VzRW1pdHRlZCI6MSwiaWF0IjoxNzAwMDAwMDAwLCJleHAiOjE3MDAwMDA5MDB9.ZoMJJrD33bC_NPc2hCichG4LIQ9iSjDToDujMedsxRk";

const PAYLOAD: &str = r#"{"v":2,"runtime":"web","directory":"/repo","sessionID":"ses_1","anchor":"msg_u2","capturedHead":"msg_a5","scanBefore":null,"returnedThroughID":"msg_u4","scannedRecords":12,"scannedBytes":4096,"pagesEmitted":1,"iat":1700000000,"exp":1700000900}"#;

/// A text with this payload and a signature to match.
fn signed(payload: &str) -> String {
    signed_as(&URL_SAFE_NO_PAD.encode(payload))
}

fn signed_as(payload: &str) -> String {
    format!("ocr2.{payload}.{}", URL_SAFE_NO_PAD.encode(keys().sign(payload)))
}

fn open_now(text: &str) -> Option<Progress> {
    open(text, &scope(), &keys(), NOW)
}

#[test]
fn the_text_is_the_one_that_other_hosts_make() {
    assert_eq!(seal(&scope(), &progress(), &keys(), NOW, TTL_MS), VECTOR);
    assert_eq!(signed(PAYLOAD), VECTOR);
    assert_eq!(open_now(VECTOR), Some(progress()));
}

#[test]
fn what_is_not_as_usual_stands_at_the_end() {
    let payload = |scope: &Scope, progress: &Progress| {
        let text = seal(scope, progress, &keys(), NOW, TTL_MS);
        let payload = text.strip_prefix("ocr2.").unwrap().rsplit_once('.').unwrap().0;
        String::from_utf8(URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
    };
    let found = Progress { anchor_found: true, ..progress() };
    let without_reasoning = Scope { reasoning: false, directory: None, ..scope() };
    let usual = PAYLOAD.trim_end_matches('}');
    assert_eq!(payload(&scope(), &progress()), PAYLOAD);
    assert_eq!(payload(&scope(), &found), format!(r#"{usual},"anchorFound":true}}"#));
    let nowhere = usual.replace(r#""/repo""#, "null");
    assert_eq!(
        payload(&without_reasoning, &progress()),
        format!(r#"{nowhere},"includeReasoning":false}}"#)
    );
    assert_eq!(
        payload(&without_reasoning, &found),
        format!(r#"{nowhere},"anchorFound":true,"includeReasoning":false}}"#)
    );
    let text = seal(&without_reasoning, &found, &keys(), NOW, TTL_MS);
    assert_eq!(open(&text, &without_reasoning, &keys(), NOW), Some(found));
}

#[test]
fn it_is_good_up_to_its_last_second() {
    let text = seal(&scope(), &progress(), &keys(), NOW + 999, 60_000);
    let open_at = |now_ms| open(&text, &scope(), &keys(), now_ms).is_some();
    assert!(open_at(NOW + 59_000) && open_at(NOW + 60_999), "the second it ends in is still good");
    assert!(!open_at(NOW + 61_000) && !open_at(u64::MAX));
    assert!(open_at(0), "a clock that is behind does no harm");
    let rounded = seal(&scope(), &progress(), &keys(), NOW + 999, 60_001);
    assert!(open(&rounded, &scope(), &keys(), NOW + 61_000).is_some(), "seconds, after adding");
}

#[test]
fn another_key_signs_another_text() {
    let other = KeyRing::new(b"another secret that has 32 bytes").unwrap();
    assert_eq!(open(VECTOR, &scope(), &other, NOW), None);
    let foreign = seal(&scope(), &progress(), &other, NOW, TTL_MS);
    assert_eq!(open_now(&foreign), None);
    assert_eq!(open(&foreign, &scope(), &other, NOW), Some(progress()));
}

#[test]
fn what_was_made_for_something_else_is_refused() {
    let others = [
        Scope { runtime: "desktop".to_owned(), ..scope() },
        Scope { directory: None, ..scope() },
        Scope { directory: Some("/repo/".to_owned()), ..scope() },
        Scope { session: "ses_2".to_owned(), ..scope() },
        Scope { reasoning: false, ..scope() },
    ];
    for other in others {
        assert_eq!(open(VECTOR, &other, &keys(), NOW), None, "{other:?}");
        let text = seal(&other, &progress(), &keys(), NOW, TTL_MS);
        assert_eq!(open(&text, &other, &keys(), NOW), Some(progress()));
        assert_eq!(open_now(&text), None, "{other:?}");
    }
}

#[test]
fn texts_of_another_form_are_refused() {
    let (payload, mac) = VECTOR.strip_prefix("ocr2.").unwrap().rsplit_once('.').unwrap();
    let edited =
        URL_SAFE_NO_PAD.encode(PAYLOAD.replace(r#""scannedRecords":12"#, r#""scannedRecords":1"#));
    for text in [
        String::new(),
        "ocr2.".to_owned(),
        format!("ocr1.{payload}.{mac}"),
        format!("oc1.{payload}.{mac}"),
        format!("OCR2.{payload}.{mac}"),
        format!("{payload}.{mac}"),
        format!("ocr2.{payload}"),
        format!("ocr2.{payload}."),
        format!("ocr2..{mac}"),
        format!("ocr2.{payload}.!!"),
        format!("ocr2.{payload}.={mac}"),
        format!("ocr2.{payload}.{}", &mac[..42]),
        format!("ocr2.{payload}.{mac}AAAA"),
        format!("ocr2.{payload}.{payload}"),
        format!("ocr2.{edited}.{mac}"),
        format!("ocr2.{payload}=.{mac}"),
        format!("ocr2.{payload}.{mac}.{mac}"),
        "x".repeat(9000),
    ] {
        assert_eq!(open_now(&text), None, "{text}");
    }
}

#[test]
fn the_signature_is_read_as_leniently_as_other_hosts_do() {
    let standard = VECTOR.replace("bC_NPc2", "bC/NPc2");
    assert_ne!(standard, VECTOR);
    assert_eq!(open_now(&standard), Some(progress()));
    assert_eq!(open_now(&format!("{VECTOR}=")), Some(progress()));
}

#[test]
fn it_ends_at_the_last_dot() {
    // A dot is no digit of base64 and is skipped.
    let payload = URL_SAFE_NO_PAD.encode(PAYLOAD);
    let dotted = format!("{}.{}", &payload[..9], &payload[9..]);
    assert_eq!(open_now(&signed_as(&dotted)), Some(progress()));
}

#[test]
fn its_length_is_limited() {
    let padded = |length: usize| {
        // White space around the object makes it longer and means nothing.
        let bytes = (length - "ocr2..".len() - 43) / 4 * 3;
        let text = signed(&format!("{PAYLOAD}{}", " ".repeat(bytes - PAYLOAD.len())));
        assert!(text.len().abs_diff(length) < 4, "{}", text.len());
        text
    };
    assert_eq!(open_now(&padded(8190)), Some(progress()));
    assert_eq!(open_now(&padded(8197)), None);
}

#[test]
fn the_order_and_spelling_of_the_members_are_free() {
    let mut members: Vec<&str> = PAYLOAD[1..PAYLOAD.len() - 1].split(',').collect();
    members.reverse();
    assert_eq!(open_now(&signed(&format!("{{ {} }}", members.join(" , ")))), Some(progress()));
    let spelled = PAYLOAD.replace(r#""v":2"#, r#""v":1,"\u0076":2.0"#);
    assert_eq!(open_now(&signed(&spelled)), Some(progress()));
}

#[test]
fn every_member_is_needed_and_no_other() {
    let members: Vec<&str> = PAYLOAD[1..PAYLOAD.len() - 1].split(',').collect();
    assert_eq!(members.len(), 13);
    for left_out in 0..members.len() {
        let mut fewer = members.clone();
        fewer.remove(left_out);
        let payload = format!("{{{}}}", fewer.join(","));
        assert_eq!(open_now(&signed(&payload)), None, "{payload}");
    }
    let more = PAYLOAD.replace('}', r#","x":1}"#);
    assert_eq!(open_now(&signed(&more)), None);
    assert_eq!(open_now(&signed_as("")), None);
    for payload in ["", "{", "[]", "null", "2", "\"ocr2\"", &*format!("{PAYLOAD}x")] {
        assert_eq!(open_now(&signed(payload)), None, "{payload}");
    }
}

#[test]
fn members_of_the_wrong_kind_are_refused() {
    let mut keys = HashSet::new();
    for (key, right, wrong) in [
        ("v", "2", &["1", "3", "\"2\"", "null", "2.5", "true"][..]),
        ("runtime", "\"web\"", &["\"\"", "null", "1", "[\"web\"]"]),
        ("directory", "\"/repo\"", &["\"\"", "1", "false", "{}"]),
        ("sessionID", "\"ses_1\"", &["\"\"", "null", "1"]),
        ("anchor", "\"msg_u2\"", &["\"\"", "null", "1"]),
        ("capturedHead", "\"msg_a5\"", &["\"\"", "null", "1"]),
        ("scanBefore", "null", &["\"\"", "1", "false"]),
        ("returnedThroughID", "\"msg_u4\"", &["\"\"", "1", "[]"]),
        ("scannedRecords", "12", &["-1", "1.5", "\"12\"", "null", "1e400", "9007199254740992"]),
        ("scannedBytes", "4096", &["-1", "0.1", "\"1\"", "null"]),
        ("pagesEmitted", "1", &["-1", "0.5", "\"1\"", "null"]),
        ("iat", "1700000000", &["-1", "1700000000.5", "\"1\"", "null", "1700000901"]),
        ("exp", "1700000900", &["-1", "1700000900.5", "\"1\"", "null", "1699999999"]),
    ] {
        keys.insert(key);
        for value in wrong {
            let member = format!(r#""{key}":{right}"#);
            assert!(PAYLOAD.contains(&member), "{member}");
            let payload = PAYLOAD.replace(&member, &format!(r#""{key}":{value}"#));
            assert_eq!(open_now(&signed(&payload)), None, "{key}: {value}");
        }
    }
    assert_eq!(keys.len(), 13);
    for member in [
        r#""anchorFound":false"#,
        r#""anchorFound":1"#,
        r#""anchorFound":null"#,
        r#""includeReasoning":true"#,
        r#""includeReasoning":"false""#,
        r#""includeReasoning":null"#,
    ] {
        let payload = PAYLOAD.replace('}', &format!(",{member}}}"));
        assert_eq!(open_now(&signed(&payload)), None, "{member}");
    }
}
