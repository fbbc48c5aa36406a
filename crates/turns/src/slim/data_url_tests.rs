use turnkeep_log::json::JsonStr;

use super::DataUrl;

fn bytes(raw: &str) -> Option<Vec<u8>> {
    let data = DataUrl::parse(JsonStr::from_raw(raw))?;
    let bytes: Vec<u8> = data.bytes().collect();
    assert_eq!(data.byte_len(), bytes.len(), "{raw}");
    Some(bytes)
}

#[test]
fn base64_is_the_last_word_of_the_header_or_none() {
    let is_base64 = [
        "data:;base64,QUJD",
        "data:base64,QUJD",
        "data:image/png;base64,QUJD",
        "data:image\\/png;base64,QUJD",
        "data: ;BASE64\\t,QUJD",
        "data:;bAsE64\u{feff},QUJD",
        "\\u0064ata:;base64\\u002cQUJD",
        "data:é;base64,QUJD",
    ];
    for raw in is_base64 {
        assert_eq!(bytes(raw).unwrap(), b"ABC", "{raw}");
    }
    let is_text = [
        "data:,QUJD",
        "data:image/png;base64;charset=x,QUJD",
        "data:image/png; BASE64 ,QUJD",
        "data:xbase64,QUJD",
        "data:base64;,QUJD",
        "data:;ba\\u017fe64,QUJD",
        "data:;base64\u{85},QUJD",
    ];
    for raw in is_text {
        assert_eq!(bytes(raw).unwrap(), b"QUJD", "{raw}");
    }
}

#[test]
fn the_body_starts_after_the_first_comma() {
    assert_eq!(bytes("data:,").unwrap(), b"");
    assert_eq!(bytes("data:,a,b").unwrap(), b"a,b");
    assert_eq!(bytes("data:a\\u002c\\u002cb").unwrap(), b",b");
    for raw in
        ["data:abc", "data:", "data", "", "DATA:,abc", " data:,abc", "file:///a,b", "\\u0064ata:x"]
    {
        assert_eq!(bytes(raw), None, "{raw}");
    }
}

#[test]
fn text_is_percent_encoded_utf8() {
    assert_eq!(bytes("data:,h%C3%A9llo").unwrap(), "héllo".as_bytes());
    assert_eq!(bytes("data:,hé%c3%a9%F0%9F%98%80%00").unwrap(), "héé😀\0".as_bytes());
    assert_eq!(bytes("data:,\\u0025\\u00341\\n").unwrap(), b"A\n");
    assert_eq!(bytes("data:,\\ud83d\\ude00\\ud83d").unwrap(), "😀\u{fffd}".as_bytes());
    let malformed = [
        "%",
        "%4",
        "a%",
        "%zz",
        "%4g",
        "%FF",
        "%80",
        "%C3",
        "%C3é",
        "%C3%",
        "%C3%41",
        "%C0%80",
        "%E0%A4%A",
        "%ED%A0%80",
        "%F4%90%80%80",
        "%F8%88%80%80%80",
        "%4\\ud83d",
        "%\u{661}1",
    ];
    for body in malformed {
        assert_eq!(bytes(&format!("data:,{body}")), None, "{body}");
        assert_eq!(bytes(&format!("data:,ab{body}")), None, "{body}");
    }
}
