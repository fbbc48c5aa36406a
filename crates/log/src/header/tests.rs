use proptest::prelude::*;

use super::{HeaderError, HeaderProblem, Origin, SessionHeader};
use crate::id::SessionId;

fn id(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

fn parse(line: &str) -> Result<SessionHeader, HeaderError> {
    SessionHeader::parse(line, None)
}

const FULL: &str = r#"{"type":"session","version":0,"id":"s/1","createdAt":17,"cwd":"/work/“q”\n","parentSession":"p","seedLength":42,"origin":"subagent","delegationDepth":2,"agentPreset":"deep"}"#;
const BARE: &str = r#"{"type":"session","version":0,"id":"s","createdAt":0,"delegationDepth":0}"#;

#[test]
fn reads_and_writes_every_member_in_order() {
    let full = SessionHeader {
        version: 0,
        id: id("s/1"),
        created_at: 17,
        cwd: Some("/work/“q”\n".to_owned()),
        parent_session: Some("p".to_owned()),
        seed_length: Some(42),
        origin: Some(Origin::Subagent),
        delegation_depth: 2,
        agent_preset: Some("deep".to_owned()),
    };
    assert_eq!(parse(FULL).unwrap(), full);
    assert_eq!(full.to_line(), FULL);
    assert_eq!(parse(BARE).unwrap(), SessionHeader::new(id("s"), 0));
    assert_eq!(SessionHeader::new(id("s"), 0).to_line(), BARE);
}

#[test]
fn not_seeded_and_seeded_with_nothing_are_two_things() {
    let seeded = BARE.replace("\"delegation", "\"seedLength\":0,\"delegation");
    let header = parse(&seeded).unwrap();
    assert_eq!(header.seed_length, Some(0));
    assert_eq!(header.to_line(), seeded);
    assert_eq!(parse(BARE).unwrap().seed_length, None);
}

#[test]
fn tolerates_what_readers_of_this_version_do() {
    let tolerated = [
        BARE.replace('{', "{\"theme\":{\"dark\":true},"),
        format!(" {BARE}\r"),
        BARE.replace("\"version\":0", "\"version\":0.0"),
        BARE.replace("\"version\":0", "\"version\":-0"),
        BARE.replace("\"version\":0", "\"version\":7,\"version\":0"),
        BARE.replace("\"createdAt\":0", "\"createdAt\":0e5"),
        BARE.replace("\"id\"", "\"\\u0069d\""),
    ];
    for line in tolerated {
        assert_eq!(parse(&line).unwrap(), SessionHeader::new(id("s"), 0), "{line}");
    }
}

#[test]
fn the_version_goes_before_everything_else() {
    let newer = "the log was written by a newer harness — upgrade the harness to open it";
    let older = "this build ships no upgrade path for it";
    let vectors = [
        (r#"{"version":42}"#, "undefined", "42", newer),
        (r#"{"version":1.0,"id":"s","sandboxMode":"x","createdAt":"-"}"#, "s", "1", newer),
        (r#"{"type":"other","id":7,"version":3}"#, "7", "3", newer),
        (r#"{"type":"session","id":{"a":1},"version":1e21}"#, r#"{"a":1}"#, "1e+21", newer),
        (r#"{"id":"s","version":1e999}"#, "s", "1e999", newer),
        (r#"{"id":"","version":0.5}"#, "", "0.5", newer),
        (r#"{"id":"\ud83d","version":-1}"#, "\u{fffd}", "-1", older),
    ];
    for (line, session, version, advice) in vectors {
        let error = SessionHeader::parse(line, Some(&id("asked"))).unwrap_err();
        assert_eq!(error.kind(), "format_unsupported");
        assert_eq!(
            error.to_string(),
            format!(
                "session \"{session}\" uses log format v{version}, but this build reads only v0: {advice}"
            )
        );
    }
}

#[test]
fn what_is_no_header_is_corrupt() {
    let vectors = [
        (String::new(), "session header is not JSON"),
        ("\u{feff}".to_owned() + BARE, "session header is not JSON"),
        (format!("{BARE} {BARE}"), "session header is not JSON"),
        ("7".to_owned(), "session header is not a JSON object"),
        ("null".to_owned(), "session header is not a JSON object"),
        (format!("[{BARE}]"), "session header is not a JSON object"),
        ("{}".to_owned(), "session header member `version` is not a number"),
        (BARE.replace(":0,\"id", ":\"0\",\"id"), "member `version` is not a number"),
        (BARE.replace("\"session\"", "\"sessions\""), "member `type` is not \"session\""),
        (BARE.replace("\"type\":\"session\",", ""), "member `type` is not \"session\""),
        (BARE.replace("\"id\":\"s\",", ""), "member `id` is missing"),
        (BARE.replace("\"s\"", "\"\""), "member `id` is empty"),
        (BARE.replace("\"s\"", "7"), "member `id` is not a string"),
        (BARE.replace("\"s\"", r#""\udc00""#), "member `id` holds a lone surrogate"),
        (FULL.replace("42", "-0.0"), "member `seedLength` is not a non-negative safe integer"),
        (FULL.replace("42", "true"), "member `seedLength` is not a non-negative safe integer"),
        (FULL.replace("\"subagent\"", "\"user\""), "member `origin` is not \"subagent\""),
        (FULL.replace("\"subagent\"", "null"), "member `origin` is not a string"),
        (FULL.replace("\"p\"", "null"), "member `parentSession` is not a string"),
        (FULL.replace("\"/work/“q”\\n\"", "false"), "member `cwd` is not a string"),
    ];
    for (line, words) in vectors {
        let error = parse(&line).unwrap_err();
        assert_eq!(error.kind(), "corrupt", "{line}");
        assert!(error.to_string().contains(words), "{line}: {error}");
    }
}

#[test]
fn a_bad_created_at_delegation_depth_or_agent_preset_is_corrupt() {
    let bad_numbers = [
        "-0",
        "-0.0",
        "-1",
        "1.5",
        "1e-1",
        "9007199254740992",
        "1e400",
        "null",
        "true",
        "\"0\"",
        "[0]",
    ];
    for member in ["createdAt", "delegationDepth"] {
        let missing = BARE.replace(&format!(",\"{member}\":0"), "");
        let error = parse(&missing).unwrap_err();
        assert!(error.to_string().contains(&format!("member `{member}` is missing")), "{error}");
        for bad in bad_numbers {
            let line = BARE.replace(&format!("\"{member}\":0"), &format!("\"{member}\":{bad}"));
            let error = parse(&line).unwrap_err();
            assert_eq!(error.kind(), "corrupt", "{line}");
            let words = format!("member `{member}` is not a non-negative safe integer");
            assert!(error.to_string().contains(&words), "{line}: {error}");
        }
        for good in ["0", "0.0", "1.0", "9007199254740991", "1e3"] {
            let line = BARE.replace(&format!("\"{member}\":0"), &format!("\"{member}\":{good}"));
            assert!(parse(&line).is_ok(), "{line}");
        }
    }
    for bad in ["null", "1", "-0", "true", "{}", "[\"deep\"]"] {
        let error = parse(&FULL.replace("\"deep\"", bad)).unwrap_err();
        assert_eq!(error.kind(), "corrupt", "{bad}");
        assert!(error.to_string().contains("member `agentPreset` is not a string"), "{error}");
    }
    assert_eq!(parse(&FULL.replace("deep", "")).unwrap().agent_preset.as_deref(), Some(""));
}

#[test]
fn retired_members_are_refused() {
    for member in ["sandboxMode", "approvalPolicy"] {
        let line = BARE.replace('}', &format!(",\"{member}\":null}}"));
        let error = parse(&line).unwrap_err();
        assert!(matches!(
            &error,
            HeaderError::Corrupt { problem: HeaderProblem::Retired { member: found } } if *found == member
        ));
        assert!(error.to_string().contains("session header uses retired policy baseline fields"));
    }
}

#[test]
fn a_header_is_that_of_the_session_asked_for() {
    assert!(SessionHeader::parse(BARE, Some(&id("s"))).is_ok());
    let error = SessionHeader::parse(BARE, Some(&id("t"))).unwrap_err();
    assert_eq!(error.to_string(), "requested id \"t\" does not match header id \"s\"");
    assert_eq!(error.kind(), "corrupt");
}

#[test]
fn numbers_that_no_reader_accepts_are_not_written() {
    let header = SessionHeader::new(id("s"), (1 << 53) - 1);
    assert_eq!(header.validate(), Ok(()));
    assert!(parse(&header.to_line()).is_ok());
    let too_large = Some(1 << 53);
    let cases = [
        SessionHeader { created_at: 1 << 53, ..header.clone() },
        SessionHeader { seed_length: too_large, ..header.clone() },
        SessionHeader { delegation_depth: u64::MAX, ..header },
    ];
    for header in cases {
        assert!(header.validate().is_err());
        assert!(parse(&header.to_line()).is_err());
    }
}

#[test]
fn a_foreign_version_is_written_as_it_is() {
    let header = SessionHeader { version: 9, ..SessionHeader::new(id("s"), 0) };
    let line = header.to_line();
    assert!(line.starts_with(r#"{"type":"session","version":9,"#));
    assert_eq!(parse(&line).unwrap_err().kind(), "format_unsupported");
}

proptest! {
    #[test]
    fn what_is_written_reads_back(
        name in "\\PC{1,12}",
        texts in prop::collection::vec(prop::option::of("(?s).{0,12}"), 3),
        numbers in prop::collection::vec(0_u64..1 << 53, 3),
        seeded in any::<bool>(),
        subagent in any::<bool>(),
    ) {
        let header = SessionHeader {
            version: 0,
            id: id(&name),
            created_at: numbers[0],
            cwd: texts[0].clone(),
            parent_session: texts[1].clone(),
            seed_length: seeded.then_some(numbers[1]),
            origin: subagent.then_some(Origin::Subagent),
            delegation_depth: numbers[2],
            agent_preset: texts[2].clone(),
        };
        let line = header.to_line();
        prop_assert!(!line.contains('\n'));
        prop_assert_eq!(SessionHeader::parse(&line, Some(&id(&name))).unwrap(), header);
    }
}
