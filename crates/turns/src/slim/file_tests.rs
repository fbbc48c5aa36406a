//! File parts in, slim file parts out, as text.

use base64::prelude::{BASE64_STANDARD, Engine as _};

use crate::slim::tests::slim_in;

/// What is said about a file with these members, beside its type.
fn slim_file(members: &str) -> String {
    let slim = slim_in("user", &format!(r#"{{"type":"file",{members}}}"#));
    let slim = slim.strip_prefix(r#"{"type":"file""#).unwrap();
    let slim = slim.strip_suffix(r#","slim":true}"#).unwrap();
    slim.strip_prefix(',').unwrap_or(slim).to_owned()
}

fn slim_url(url: &str) -> String {
    slim_file(&format!(r#""url":"{url}""#))
}

/// What is said about a file with these bytes.
fn slim_bytes(bytes: &[u8]) -> String {
    slim_url(&format!("data:;base64,{}", BASE64_STANDARD.encode(bytes)))
}

#[test]
fn a_file_is_described_not_sent() {
    assert_eq!(
        slim_in(
            "user",
            r#"{"type":"file","id":"f","mime":"text/plain","filename":"n.txt","url":"data:text/plain,h%C3%A9llo","source":{"type":"file","path":"n.txt"}}"#
        ),
        r#"{"id":"f","type":"file","mime":"text/plain","filename":"n.txt","byteSize":6,"slim":true}"#
    );
    assert_eq!(
        slim_in(
            "user",
            r#"{"type":"file","id":"f","mime":"text/plain","url":"data:text/plain,%E0%A4%A","byteSize":"17"}"#
        ),
        r#"{"id":"f","type":"file","mime":"text/plain","byteSize":17,"slim":true}"#
    );
    assert_eq!(
        slim_in(
            "user",
            r#"{"type":"file","id":"f","mime":1,"filename":null,"url":"file:///x.png","size":10,"metadata":{"width":"640","height":0,"byteSize":9}}"#
        ),
        r#"{"id":"f","type":"file","size":10,"byteSize":9,"width":640,"slim":true}"#
    );
}

#[test]
fn data_urls_say_how_many_bytes_they_hold() {
    let cases = [
        ("data:image/png;base64;charset=x,AAAA", "\"byteSize\":4"),
        ("data:image/png; BASE64 ,QUJD", "\"byteSize\":4"),
        ("data:;base64,QUJD", "\"byteSize\":3"),
        ("data:,abc", "\"byteSize\":3"),
        ("data:,", "\"byteSize\":0"),
        ("DATA:,abc", ""),
        ("data:abc", ""),
        ("data:image/png;base64,QU JD-_=\\n!RA==", "\"byteSize\":4"),
        ("data:image\\/png;base64,QUJD\\u003dQUJD", "\"byteSize\":3"),
        // Binary that is no UTF-8 cannot be percent-decoded as text.
        ("data:image/gif,GIF89a%07%00%05%FF", ""),
        ("data:image/gif,GIF89a%07%00%05%00", "\"byteSize\":10,\"width\":7,\"height\":5"),
    ];
    for (url, said) in cases {
        assert_eq!(slim_url(url), said, "{url}");
    }
    // What the URL holds wins over what is stated, even when it holds nothing.
    assert_eq!(slim_file(r#""url":"data:,","byteSize":5"#), "\"byteSize\":0");
    assert_eq!(slim_file(r#""url":"data:,%","byteSize":5"#), "\"byteSize\":5");
}

#[test]
fn images_say_how_big_they_are() {
    let png = |width: [u8; 4], height: [u8; 4]| {
        [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".as_slice(), &width, &height].concat()
    };
    let widest = png([0xFF; 4], [0, 0, 0, 1]);
    assert_eq!(slim_bytes(&widest), "\"byteSize\":24,\"width\":4294967295,\"height\":1");
    assert_eq!(slim_bytes(&widest[..23]), "\"byteSize\":23");
    assert_eq!(slim_bytes(b"GIF89a\x07\0\x05\0"), "\"byteSize\":10,\"width\":7,\"height\":5");
    assert_eq!(slim_bytes(b"GIF89a\x07\0\x05"), "\"byteSize\":9");
    let cases = [
        ("/9j/4AAEAQH/wgALCAAEAAkBAREA", Some((9, 4))),
        ("/9j//8AACwgABAAJAQERAA==", None),
        ("UklGRgAAAABXRUJQVlA4WAAAAAAAAAAA/w8A/wcA", Some((4096, 2048))),
        ("UklGRgAAAABXRUJQVlA4TAAAAAAvY0AMAAAAAAAA", Some((100, 50))),
        ("UklGRgAAAABXRUJQVlA4IAAAAAAAAACdASpAwfAA", Some((320, 240))),
    ];
    for (base64, size) in cases {
        let said = slim_url(&format!("data:;base64,{base64}"));
        let size = size.map_or(String::new(), |(w, h)| format!(",\"width\":{w},\"height\":{h}"));
        let length = BASE64_STANDARD.decode(base64).unwrap().len();
        assert_eq!(said, format!("\"byteSize\":{length}{size}"), "{base64}");
    }
}

#[test]
fn stated_sizes_win_over_the_header_each_by_itself() {
    let url = r#""url":"data:;base64,R0lGODlhBwAFAA==""#;
    let sized = |size: &str| slim_file(&format!("{url},{size}"));
    assert_eq!(sized(r#""width":64,"height":32"#), r#""byteSize":10,"width":64,"height":32"#);
    assert_eq!(sized(r#""width":64"#), r#""byteSize":10,"width":64,"height":5"#);
    assert_eq!(sized(r#""metadata":{"height":9}"#), r#""byteSize":10,"width":7,"height":9"#);
    assert_eq!(sized(r#""width":0,"height":-1"#), r#""byteSize":10,"width":7,"height":5"#);
    assert_eq!(sized(r#""size":99"#), r#""size":99,"byteSize":10,"width":7,"height":5"#);
}

#[test]
fn sizes_are_integers_or_digits() {
    let cases = [
        ("640", "640"),
        ("3.0", "3"),
        ("1e3", "1000"),
        (r#""007""#, "7"),
        (r#""\u0037""#, "7"),
        ("1e300", "1e+300"),
    ];
    for (stated, size) in cases {
        assert_eq!(slim_file(&format!(r#""width":{stated}"#)), format!(r#""width":{size}"#));
    }
    let beyond = format!("\"{}\"", "9".repeat(400));
    for stated in [
        "2.5", "-1", "1e400", "null", "true", "[1]", r#"" 7""#, r#""7 ""#, r#""-1""#, r#""1.0""#,
        r#""""#, r#""1e3""#, &beyond, "0", "-0", r#""0""#,
    ] {
        assert_eq!(slim_file(&format!(r#""width":{stated}"#)), "", "{stated}");
        let other = format!(r#""width":{stated},"metadata":{{"width":5}}"#);
        assert_eq!(slim_file(&other), r#""width":5"#, "{stated}");
    }
    // A length may be zero, a side may not.
    assert_eq!(slim_file(r#""size":0,"byteSize":-0"#), r#""size":0,"byteSize":0"#);
    assert_eq!(slim_file(r#""size":-1,"metadata":{"size":"0"}"#), r#""size":0"#);
    assert_eq!(slim_file(r#""metadata":[5],"size":{}"#), "");
}
