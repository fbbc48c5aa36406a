//! The first line of a jsonl log: how it is found, what it must be, and what its refusal says.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::fs;

use support::{
    append, create,
    disk::{BOTH, Disk, names, pack},
    header, id, never, open, read, store_session,
};
use turnkeep_log::SessionHeader;
use turnkeep_store::{Access, ListQuery, SessionState, SessionStore, jsonl::Encoding};

#[tokio::test]
async fn headers_longer_than_one_read_are_read_whole() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        // Does not compress well, and gives one of the longest project names.
        let cwd: String = (0..6000u64).map(|n| char::from(b'a' + (n * n * 7 % 23) as u8)).collect();
        let cwd = format!("/{cwd}{}", (0..4000).map(|n| n.to_string()).collect::<String>());
        assert!(cwd.len() > 20_000);
        let header = SessionHeader { cwd: Some(cwd), ..header("s") };
        let store = disk.store();
        let handle = store.create(header.clone(), &never()).await.unwrap();
        append(&*handle, 0, 1).await;
        let list = disk.store().list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries[0].stat.as_ref().unwrap().header, header);
        let reader = open(&disk.store(), "s", Access::Read).await;
        assert_eq!(*reader.header(), header);
        // Behind it, a damaged record: the header is read all the same.
        let project = disk.root().join(&names(&disk.root())[0]);
        let path = project.join("s").join(disk.log_name());
        let mut bytes = fs::read(&path).unwrap();
        let damaged = bytes.len() - 6;
        bytes[damaged] ^= 0x55;
        fs::write(&path, bytes).unwrap();
        let list = disk.store().list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries[0].state, SessionState::Ok);
    }
}

#[tokio::test]
async fn a_half_written_header_is_no_session_yet() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        store_session(&store, "s", 1).await;
        let bytes = disk.bytes("s");
        for cut in [0, 3, 20] {
            fs::write(disk.log("s"), &bytes[..cut]).unwrap();
            assert_eq!(store.stat(&id("s"), &never()).await.unwrap(), None, "cut to {cut}");
            for access in [Access::Read, Access::Write] {
                let error = store.open(&id("s"), access, &never()).await.unwrap_err();
                assert_eq!(error.kind(), "corrupt");
                assert!(error.to_string().contains("empty or header-less"), "{error}");
            }
            let list = store.list(&ListQuery::default(), &never()).await.unwrap();
            assert_eq!(list.entries[0].state, SessionState::Damaged);
        }
        // Headers that are whole, and none.
        for text in ["[]\n", "7\n", "\u{feff}{}\n", "{\"type\":\"session\"}\n"] {
            fs::write(disk.log("s"), disk.encode(text)).unwrap();
            let error = store.open(&id("s"), Access::Read, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "corrupt", "{text}");
            assert_eq!(store.stat(&id("s"), &never()).await.unwrap_err().kind(), "corrupt");
        }
    }
}

#[tokio::test]
async fn the_first_frame_is_exactly_one_header_line() {
    let disk = Disk::new(Encoding::Zstd);
    let store = disk.store();
    store_session(&store, "s", 2).await;
    let text = disk.text("s");
    let (header, records) = text.split_at(text.find('\n').unwrap() + 1);
    let first = records.split_inclusive('\n').next().unwrap();
    let cases = [
        ("header and events in one", pack(&text)),
        ("two headers", [pack(&header.repeat(2)), pack(records)].concat()),
        ("no line feed", [pack(header.trim_end()), pack(records)].concat()),
        ("half a second line", [pack(&format!("{header}{}", &first[..9])), pack(records)].concat()),
        ("an empty line behind", [pack(&format!("{header}\n")), pack(records)].concat()),
        ("nothing", [pack(""), pack(header), pack(records)].concat()),
    ];
    for (name, bytes) in cases {
        fs::write(disk.log("s"), &bytes).unwrap();
        for access in [Access::Read, Access::Write] {
            let error = store.open(&id("s"), access, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "corrupt", "{name}");
            let words = "first frame is not exactly one header line";
            assert!(error.to_string().contains(words), "{name}: {error}");
        }
        assert_eq!(store.stat(&id("s"), &never()).await.unwrap_err().kind(), "corrupt", "{name}");
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries[0].state, SessionState::Damaged, "{name}");
        assert_eq!(disk.bytes("s"), bytes, "{name}: untouched");
    }
}

#[tokio::test]
async fn a_header_frame_with_a_wrong_checksum_is_corrupt() {
    let disk = Disk::new(Encoding::Zstd);
    let store = disk.store();
    store_session(&store, "s", 1).await;
    store_session(&store, "t", 1).await;
    let length = pack(disk.text("s").split_inclusive('\n').next().unwrap()).len();
    let mut bytes = disk.bytes("s");
    bytes[length - 1] ^= 1;
    fs::write(disk.log("s"), &bytes).unwrap();
    let error = store.open(&id("s"), Access::Read, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "corrupt");
    assert!(error.to_string().contains("header frame failed validation"), "{error}");
    assert_eq!(store.stat(&id("s"), &never()).await.unwrap_err().kind(), "corrupt");
    let list = store.list(&ListQuery::default(), &never()).await.unwrap();
    let mut states: Vec<_> =
        list.entries.iter().map(|entry| (entry.id.as_str(), entry.state)).collect();
    states.sort_unstable_by_key(|(id, _)| *id);
    assert_eq!(states, [("s", SessionState::Damaged), ("t", SessionState::Ok)]);
}

#[tokio::test]
async fn a_retired_header_member_is_refused_by_stat_and_open_and_listed_as_damage() {
    for member in ["sandboxMode", "approvalPolicy"] {
        for encoding in BOTH {
            let disk = Disk::new(encoding);
            let store = disk.store();
            store_session(&store, "s", 1).await;
            store_session(&store, "t", 1).await;
            let text = disk.text("s");
            let header = text.lines().next().unwrap();
            let header = header.replace("\"id\"", &format!("\"{member}\":\"x\",\"id\""));
            fs::write(disk.log("s"), disk.encode(&(header + "\n"))).unwrap();
            let stat = store.stat(&id("s"), &never()).await.unwrap_err();
            let open = store.open(&id("s"), Access::Read, &never()).await.unwrap_err();
            for (kind, text) in [(stat.kind(), stat.to_string()), (open.kind(), open.to_string())] {
                assert_eq!(kind, "corrupt", "{text}");
                assert!(text.contains("retired policy baseline fields"), "{text}");
            }
            let list = store.list(&ListQuery::default(), &never()).await.unwrap();
            let mut states: Vec<_> =
                list.entries.iter().map(|entry| (entry.id.as_str(), entry.state)).collect();
            states.sort_unstable_by_key(|(id, _)| *id);
            assert_eq!(states, [("s", SessionState::Damaged), ("t", SessionState::Ok)]);
        }
    }
}

#[tokio::test]
async fn a_version_that_we_wrote_ourselves_is_refused_with_the_path_of_its_log() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        let foreign = SessionHeader { version: 7, ..header("s") };
        let handle = store.create(foreign, &never()).await.unwrap();
        append(&*handle, 0, 1).await;
        handle.close().await.unwrap();
        let path = format!(" (raw log: {})", disk.log("s").display());
        for access in [Access::Read, Access::Write] {
            let error = store.open(&id("s"), access, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "format_unsupported");
            let text = error.to_string();
            assert!(text.starts_with("session \"s\" uses log format v7"), "{text}");
            assert!(text.ends_with(&path), "{text}");
        }
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries[0].state, SessionState::Newer);
    }
}

#[tokio::test]
async fn of_a_log_with_a_torn_first_batch_the_header_stays() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        let handle = create(&store, "s").await;
        handle.flush(&never()).await.unwrap();
        handle.close().await.unwrap();
        let header = disk.bytes("s");
        let tail = disk.encode("{\"type\":\"turn/start\",\"seq\":0,\"time\":1,\"data\":{}}\n");
        for cut in 1..tail.len() {
            fs::write(disk.log("s"), [&header, &tail[..cut]].concat()).unwrap();
            let writer = open(&disk.store(), "s", Access::Write).await;
            assert!(read(&*writer).await.is_empty());
            append(&*writer, 0, 1).await;
            writer.close().await.unwrap();
            let bytes = disk.bytes("s");
            assert!(bytes.starts_with(&header));
            let event = format!("{}\n", support::event(0).text().as_str());
            assert_eq!(bytes[header.len()..], disk.encode(&event));
        }
    }
}
