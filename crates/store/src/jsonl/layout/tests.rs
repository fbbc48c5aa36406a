use std::{collections::HashMap, ffi::OsStr, path::Path};

use proptest::prelude::*;
use turnkeep_log::{SessionHeader, SessionId};

use super::{Artifact, Encoding, Layout, decode_id, encode_id, flat_log_id, project_key};
use crate::segment::{decode_units, encode_units};

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

#[test]
fn ids_become_one_segment() {
    let vectors = [
        ("session-1", "session-1"),
        ("6f9619ff-8b86-d011-b42d-00c04fc964ff", "6f9619ff-8b86-d011-b42d-00c04fc964ff"),
        ("../../etc/pwn", "..~002F..~002Fetc~002Fpwn"),
        ("a:b", "a~003Ab"),
        ("a~b", "a~007Eb"),
        (".", "~002E"),
        ("..", "~002E~002E"),
        ("...", "..."),
        ("a b", "a~0020b"),
        ("\0", "~0000"),
        ("é", "~00E9"),
        ("😀", "~D83D~DE00"),
        ("A_b.C-9", "A_b.C-9"),
    ];
    for (text, segment) in vectors {
        assert_eq!(encode_id(&id(text)), segment);
        assert_eq!(decode_id(segment), Some(id(text)));
    }
}

#[test]
fn a_lone_surrogate_has_a_segment_of_its_own() {
    assert_eq!(encode_units([0xD800]), "~D800");
    assert_eq!(decode_units("~D800"), Some(vec![0xD800]));
    assert_eq!(decode_id("~D800"), None);
    assert_eq!(encode_units([0x61, 0xDC00, 0xD800]), "a~DC00~D800");
}

#[test]
fn only_the_one_spelling_of_an_id_is_read() {
    for segment in ["~0041", "~00e9", "~", "~00", "a/b", "é", ".", "..", "", "~+041", "a~00 9"] {
        assert_eq!(decode_id(segment), None, "{segment}");
    }
}

#[test]
fn project_keys_are_readable() {
    let vectors = [
        ("/work/proj", "--work-proj--"),
        (r"C:\work\agent", "--C-work-agent--"),
        ("/", "--root--"),
        ("///", "--root--"),
        ("/开发/~agent", "--~5F00~53D1-~007Eagent--"),
        ("/a/b-c", "--a-b-c--"),
        ("/a-b/c", "--a-b-c--"),
        ("//srv//x/", "--srv-x---"),
        ("-/-x", "--x--"),
        ("/home/me/.config", "--home-me-.config--"),
    ];
    for (cwd, key) in vectors {
        assert_eq!(project_key(Some(cwd)), key);
    }
    assert_eq!(project_key(None), "_no-cwd");
}

#[test]
fn a_project_key_fits_a_file_name() {
    let long = format!("/{}", "x".repeat(400));
    assert_eq!(project_key(Some(&long)).len(), 255);
    // The cut may fall inside an escape: the key is never read back.
    let wide = format!("/{}", "开".repeat(400));
    assert_eq!(project_key(Some(&wide)).len(), 255);
}

#[test]
fn files_are_told_apart_by_name() {
    let of = |name: &str| Artifact::of(OsStr::new(name));
    assert_eq!(of("session.jsonl"), Some(Artifact::Log(Encoding::None)));
    assert_eq!(of("session.jsonl.zstd"), Some(Artifact::Log(Encoding::Zstd)));
    assert_eq!(of("session.v1.jsonl"), Some(Artifact::Newer(1)));
    assert_eq!(of("session.v12.jsonl.zstd"), Some(Artifact::Newer(12)));
    assert_eq!(of("session.v99999999999999999999.jsonl"), Some(Artifact::Newer(u64::MAX)));
    for name in [
        "session.v0.jsonl",
        "session.v01.jsonl",
        "session.V1.jsonl",
        "session.v.jsonl",
        "session.v1.jsonl.gz",
        "session.v-1.jsonl",
        "session.jsonl.0123456789ab.tmp",
        "session.lock",
        "turnkeep.idx",
        "Session.jsonl",
    ] {
        assert_eq!(of(name), None, "{name}");
    }
    assert_eq!(flat_log_id(OsStr::new("a~003Ab.jsonl.zstd")), Some("a~003Ab"));
    assert_eq!(flat_log_id(OsStr::new("notes.txt")), None);
}

#[test]
fn paths_stay_below_the_root() {
    let layout = Layout::new("/srv/sessions".into());
    let header = SessionHeader {
        version: 0,
        id: id("../../etc/pwn"),
        created_at: 0,
        cwd: Some("/../../x".to_owned()),
        parent_session: None,
        seed_length: None,
        origin: None,
        delegation_depth: 0,
        agent_preset: None,
    };
    let dir = layout.session_dir(&header);
    assert_eq!(dir.path(), Path::new("/srv/sessions/--..-..-x--/..~002F..~002Fetc~002Fpwn"));
    assert_eq!(
        dir.temporary(Encoding::Zstd, u64::MAX).file_name().unwrap(),
        "session.jsonl.zstd.ffffffffffff.tmp"
    );
    assert_eq!(dir.cut(9388, 0).file_name().unwrap(), "turnkeep.cut-9388");
}

proptest! {
    #[test]
    fn encoding_is_injective_over_code_units(ids in prop::collection::vec(
        prop::collection::vec(prop_oneof![0u16..128, 0xD7F0u16..0xE010, any::<u16>()], 1..6), 2..40,
    )) {
        let mut seen: HashMap<String, Vec<u16>> = HashMap::new();
        for units in ids {
            let segment = encode_units(units.iter().copied());
            prop_assert!(!segment.contains('/') && segment != "." && segment != "..");
            prop_assert_eq!(decode_units(&segment), Some(units.clone()));
            if let Some(other) = seen.insert(segment, units.clone()) {
                prop_assert_eq!(other, units);
            }
        }
    }
}
