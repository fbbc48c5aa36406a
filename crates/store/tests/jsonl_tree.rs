//! The jsonl store's directories: what lies where, and what is refused.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
};

use support::{
    append, batch, create,
    disk::{BOTH, Disk, INDEX, PROJECT, names, pack},
    header, id, never, open, read, store_session,
};
use turnkeep_store::{
    Access, ListQuery, SessionState, SessionStore,
    jsonl::{Compression, Encoding, JsonlOptions, JsonlStore},
};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn directories_and_files_are_their_owners_alone() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        // Also the directories above the root, if they have to be made.
        let root = disk.root().join("deeper").join("still");
        let options = JsonlOptions { root: root.clone(), ..disk.options() };
        let store = JsonlStore::open(options).unwrap();
        store_session(&store, "s", 1).await;
        let session = root.join(PROJECT).join("s");
        for dir in [&disk.root(), &root, &root.join(PROJECT), &session] {
            assert_eq!(mode(dir), 0o700, "{}", dir.display());
        }
        for file in [disk.log_name(), "session.lock", INDEX] {
            assert_eq!(mode(&session.join(file)), 0o600, "{file}");
        }
        assert_eq!(fs::metadata(session.join("session.lock")).unwrap().len(), 0);
        assert_eq!(fs::metadata(session.join(disk.log_name())).unwrap().nlink(), 1);
        assert_eq!(names(&session), [disk.log_name(), "session.lock", INDEX]);
        assert_eq!(names(&root), [PROJECT]);
    }
}

#[tokio::test]
async fn a_log_has_the_documented_bytes() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let handle = create(&disk.store(), "s").await;
        handle.flush(&never()).await.unwrap();
        let header = "{\"type\":\"session\",\"version\":0,\"id\":\"s\",\"createdAt\":1700000000000,\
                      \"cwd\":\"/work/proj\",\"delegationDepth\":0}\n";
        assert_eq!(disk.text("s"), header);
        append(&*handle, 0, 1).await;
        append(&*handle, 1, 1).await;
        let expected = format!(
            "{header}{}\n{}\n",
            support::event(0).text().as_str(),
            support::event(1).text().as_str()
        );
        assert_eq!(disk.text("s"), expected);
        if encoding == Encoding::Zstd {
            // One frame for the header and one an append, none rewritten.
            let mut frames = pack(header);
            for line in expected.lines().skip(1) {
                frames.extend(pack(&format!("{line}\n")));
            }
            assert_eq!(disk.bytes("s"), frames);
        }
    }
}

#[tokio::test]
async fn sources_are_written_as_they_were_given_and_never_as_ranges() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        let handle = create(&store, "s").await;
        append(&*handle, 0, 8).await;
        let message = r#"{"id":"m","role":"user","content":[],"source":{"kind":"user"}}"#;
        let mut lines = Vec::new();
        for (sources, seq) in ["[1,3,4,5,7]", "[0,1,2,3,4,5,6,7]", "[7,3]"].into_iter().zip(8..) {
            let text = format!(
                r#"{{"type":"user/message","seq":{seq},"time":1,"data":{message},"sourceEventSeqs":{sources},"surfaceOp":"append"}}"#
            );
            let event = turnkeep_log::Event::parse(&text.as_str().into()).unwrap();
            handle.append(vec![event], &never()).await.unwrap();
            lines.push(text);
        }
        let text = disk.text("s");
        assert_eq!(text.lines().skip(9).collect::<Vec<_>>(), lines);
        // Those of a writer that makes ranges of them read the same.
        let ranges =
            lines[0].replace("\"seq\":8", "\"seq\":11").replace("[1,3,4,5,7]", "[1,[3,5],7]");
        handle.close().await.unwrap();
        disk.add("s", &disk.encode(&(ranges + "\n")));
        let events = read(&*open(&store, "s", Access::Write).await).await;
        assert_eq!(events[11].text().as_str(), lines[0].replace("\"seq\":8", "\"seq\":11"));
    }
}

#[tokio::test]
async fn packing_is_a_setting_of_the_writer() {
    let deltas = |first: u64| -> Vec<_> {
        let chunk = r#"{"type":"text-delta","index":0,"text":"x"}"#;
        let data = format!(r#"{{"turn":1,"step":1,"chunk":{chunk}}}"#);
        (first..first + 5).map(|seq| support::event_of("assistant/chunk", seq, &data)).collect()
    };
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let options = JsonlOptions { pack_chunks: false, ..disk.options() };
        let plain = JsonlStore::open(options).unwrap();
        let handle = create(&plain, "s").await;
        handle.append(deltas(0), &never()).await.unwrap();
        handle.close().await.unwrap();
        assert_eq!(disk.text("s").lines().count(), 6);
        // A mixed log reads as one.
        let handle = open(&disk.store(), "s", Access::Write).await;
        handle.append(deltas(5), &never()).await.unwrap();
        assert_eq!(disk.text("s").lines().count(), 7);
        assert!(disk.text("s").contains("\"text-chunks\""));
        assert_eq!(read(&*handle).await, [deltas(0), deltas(5)].concat());
    }
}

#[tokio::test]
async fn ids_of_any_kind_stay_below_their_project() {
    let ids = [
        "../../etc/pwn",
        "..",
        ".",
        "a/b",
        "/abs",
        "a:b~c",
        "\u{0}",
        "日本語 😀",
        "session.jsonl",
        ".turnkeep-trash",
        "-",
    ];
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        for name in ids {
            store_session(&store, name, 2).await;
        }
        assert_eq!(names(disk.dir.path()), ["sessions"]);
        assert_eq!(names(&disk.root()), [PROJECT]);
        assert_eq!(names(&disk.root().join(PROJECT)).len(), ids.len());
        let store = disk.store();
        for name in ids {
            let handle = open(&store, name, Access::Write).await;
            assert_eq!(read(&*handle).await, batch(0, 2), "{name:?}");
        }
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        let mut listed: Vec<_> = list.entries.iter().map(|entry| entry.id.as_str()).collect();
        assert!(list.entries.iter().all(|entry| entry.state == SessionState::Ok));
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, ids);
    }
}

#[tokio::test]
async fn an_id_too_long_for_the_file_system_is_absent_and_cannot_be_stored() {
    let disk = Disk::new(Encoding::Zstd);
    let store = disk.store();
    store_session(&store, "other", 1).await;
    let long = "x".repeat(300);
    let error = store.open(&id(&long), Access::Read, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "not_found");
    assert!(store.stat(&id(&long), &never()).await.unwrap().is_none());
    let pending = store.create(header(&long), &never()).await.unwrap();
    assert_eq!(pending.flush(&never()).await.unwrap_err().kind(), "io");
    let fits = "y".repeat(250);
    store_session(&store, &fits, 1).await;
    assert_eq!(read(&*open(&store, &fits, Access::Write).await).await.len(), 1);
}

#[tokio::test]
async fn sessions_of_one_id_in_two_projects_are_refused() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        store_session(&store, "s", 1).await;
        store_session(&store, "t", 1).await;
        let copy = disk.root().join("--elsewhere--").join("s");
        fs::create_dir_all(&copy).unwrap();
        fs::copy(disk.log("s"), copy.join(disk.log_name())).unwrap();
        let fragment = "duplicate JSONL session id \"s\" appears in multiple project directories";
        for access in [Access::Read, Access::Write] {
            let error = store.open(&id("s"), access, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "corrupt");
            assert!(error.to_string().contains(fragment), "{error}");
        }
        assert_eq!(store.stat(&id("s"), &never()).await.unwrap_err().kind(), "corrupt");
        assert_eq!(store.create(header("s"), &never()).await.unwrap_err().kind(), "corrupt");
        // The others are listed, and this one is, once.
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        let mut states: Vec<_> =
            list.entries.iter().map(|entry| (entry.id.as_str(), entry.state)).collect();
        states.sort_unstable_by_key(|(id, _)| *id);
        assert_eq!(states, [("s", SessionState::Damaged), ("t", SessionState::Ok)]);
        // A directory without a log is no session.
        fs::remove_file(copy.join(disk.log_name())).unwrap();
        assert_eq!(read(&*open(&store, "s", Access::Read).await).await.len(), 1);
    }
}

#[tokio::test]
async fn links_to_directories_are_followed_and_counted_once() {
    for encoding in BOTH {
        // A session directory that was moved to another disk.
        let disk = Disk::new(encoding);
        let store = disk.store();
        store_session(&store, "s", 1).await;
        let moved = disk.dir.path().join("moved");
        fs::rename(disk.session_dir("s"), &moved).unwrap();
        symlink(&moved, disk.session_dir("s")).unwrap();
        let writer = open(&store, "s", Access::Write).await;
        append(&*writer, 1, 1).await;
        writer.close().await.unwrap();
        assert_eq!(names(&moved), [disk.log_name(), "session.lock", INDEX]);
        // A project directory that has a second name.
        symlink(disk.root().join(PROJECT), disk.root().join("--alias--")).unwrap();
        assert_eq!(read(&*open(&store, "s", Access::Read).await).await, batch(0, 2));
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries.len(), 1);
        assert_eq!(list.entries[0].state, SessionState::Ok);
        // One that leads nowhere.
        symlink("/nonexistent", disk.root().join("--gone--")).unwrap();
        symlink("/nonexistent", disk.root().join(PROJECT).join("gone")).unwrap();
        assert_eq!(store.stat(&id("gone"), &never()).await.unwrap(), None);
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries.len(), 1);
        store_session(&store, "t", 1).await;
    }
}

#[tokio::test]
async fn a_log_in_the_wrong_place_is_refused() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        store_session(&store, "s", 1).await;
        // Under another id.
        let copy = disk.session_dir("copy");
        fs::create_dir_all(&copy).unwrap();
        fs::copy(disk.log("s"), copy.join(disk.log_name())).unwrap();
        let before = disk.bytes("copy");
        let error = store.open(&id("copy"), Access::Write, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "corrupt");
        let text = error.to_string();
        assert!(text.contains("requested id \"copy\" does not match header id \"s\""), "{text}");
        assert_eq!(disk.bytes("copy"), before);
        fs::remove_dir_all(copy).unwrap();
        // In another project.
        let other = disk.root().join("--other--");
        fs::create_dir_all(&other).unwrap();
        fs::rename(disk.session_dir("s"), other.join("s")).unwrap();
        for access in [Access::Read, Access::Write] {
            let error = store.open(&id("s"), access, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "corrupt");
            let text = error.to_string();
            assert!(text.contains(PROJECT) && text.contains("--other--"), "{text}");
        }
        assert_eq!(store.stat(&id("s"), &never()).await.unwrap_err().kind(), "corrupt");
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries[0].state, SessionState::Damaged);
        assert_eq!(list.entries[0].id, id("s"));
    }
}

#[tokio::test]
async fn a_root_keeps_the_encoding_it_has() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let detect = |compression| {
            let options = JsonlOptions { compression, ..JsonlOptions::new(disk.root()) };
            JsonlStore::open(options).unwrap().encoding()
        };
        assert_eq!(detect(Compression::Detect), Encoding::Zstd);
        assert_eq!(detect(Compression::DetectElseNone), Encoding::None);
        store_session(&disk.store(), "s", 1).await;
        fs::create_dir_all(disk.root().join("--a--").join("empty")).unwrap();
        assert_eq!(detect(Compression::Detect), encoding);
        assert_eq!(detect(Compression::DetectElseNone), encoding);
        assert_eq!(detect(Compression::Zstd), Encoding::Zstd);
        assert_eq!(detect(Compression::None), Encoding::None);
    }
}

#[tokio::test]
async fn logs_of_the_other_encoding_are_refused_and_listed() {
    for encoding in BOTH {
        let theirs = Disk::new(encoding);
        store_session(&theirs.store(), "s", 1).await;
        let other = if encoding == Encoding::Zstd { Encoding::None } else { Encoding::Zstd };
        let ours = Disk { dir: theirs.dir, encoding: other };
        let store = ours.store();
        for access in [Access::Read, Access::Write] {
            let error = store.open(&id("s"), access, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "format_unsupported");
            let text = error.to_string();
            assert!(text.contains("is stored with compression"), "{text}");
            assert!(text.contains("(raw log: "), "{text}");
        }
        assert_eq!(store.stat(&id("s"), &never()).await.unwrap_err().kind(), "format_unsupported");
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries[0].state, SessionState::Foreign);
        assert!(list.entries[0].reason.is_some());
        // A log of ours beside it would make a root that other readers refuse as a whole.
        let handle = create(&store, "new").await;
        let error = handle.append(batch(0, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "format_unsupported");
        assert!(!ours.session_dir("new").exists());
        assert_eq!(
            store.create(header("s"), &never()).await.unwrap_err().kind(),
            "format_unsupported"
        );
    }
}

#[tokio::test]
async fn a_log_of_the_other_encoding_that_appears_later_is_refused_too() {
    for encoding in BOTH {
        let ours = Disk::new(encoding);
        let store = ours.store();
        store_session(&store, "s", 1).await;
        let pending = create(&store, "new").await;
        // From someone who has this root for one of the other encoding.
        let other = if encoding == Encoding::Zstd { Encoding::None } else { Encoding::Zstd };
        let theirs = Disk { dir: ours.dir, encoding: other };
        for name in ["t", "new"] {
            let line = format!(
                "{{\"type\":\"session\",\"version\":0,\"id\":\"{name}\",\"createdAt\":1,\
                 \"cwd\":\"/work/proj\",\"delegationDepth\":0}}\n"
            );
            theirs.lay(name, &theirs.encode(&line));
        }
        let before = theirs.bytes("new");
        for access in [Access::Read, Access::Write] {
            let error = store.open(&id("t"), access, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "format_unsupported", "{error}");
        }
        // No second log is made beside the one of this id.
        let error = pending.append(batch(0, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "format_unsupported", "{error}");
        assert_eq!(theirs.names("new").iter().filter(|name| *name != "session.lock").count(), 1);
        assert_eq!(theirs.bytes("new"), before);
        pending.close().await.unwrap();
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        let of = |name: &str| list.entries.iter().find(|entry| entry.id == id(name)).unwrap();
        assert_eq!((of("t").state, of("s").state), (SessionState::Foreign, SessionState::Ok));
        // And what there was is served as before.
        let writer = open(&store, "s", Access::Write).await;
        append(&*writer, 1, 1).await;
    }
}

#[tokio::test]
async fn flat_logs_are_refused_and_listed() {
    for name in ["s.jsonl", "s.jsonl.zstd"] {
        for encoding in BOTH {
            let disk = Disk::new(encoding);
            let store = disk.store();
            store_session(&store, "t", 1).await;
            fs::write(disk.root().join(PROJECT).join(name), "{}\n").unwrap();
            for access in [Access::Read, Access::Write] {
                let error = store.open(&id("s"), access, &never()).await.unwrap_err();
                assert_eq!(error.kind(), "format_unsupported");
                assert!(error.to_string().contains("flat layout"), "{error}");
            }
            let list = store.list(&ListQuery::default(), &never()).await.unwrap();
            let mut states: Vec<_> =
                list.entries.iter().map(|entry| (entry.id.as_str(), entry.state)).collect();
            states.sort_unstable_by_key(|(id, _)| *id);
            assert_eq!(states, [("s", SessionState::Foreign), ("t", SessionState::Ok)]);
            assert_eq!(read(&*open(&store, "t", Access::Write).await).await.len(), 1);
        }
    }
}

#[tokio::test]
async fn a_predecessor_of_a_newer_log_is_neither_served_nor_written() {
    for newer in ["session.v1.jsonl", "session.v12.jsonl.zstd"] {
        for keep_ours in [true, false] {
            for encoding in BOTH {
                let disk = Disk::new(encoding);
                let store = disk.store();
                store_session(&store, "s", 1).await;
                fs::write(disk.session_dir("s").join(newer), "whatever").unwrap();
                if !keep_ours {
                    fs::remove_file(disk.log("s")).unwrap();
                }
                for access in [Access::Read, Access::Write] {
                    let error = store.open(&id("s"), access, &never()).await.unwrap_err();
                    assert_eq!(error.kind(), "format_unsupported");
                    let text = error.to_string();
                    assert!(text.contains("written by a newer harness"), "{text}");
                    assert!(text.contains(newer), "{text}");
                }
                let error = store.stat(&id("s"), &never()).await.unwrap_err();
                assert_eq!(error.kind(), "format_unsupported");
                let error = store.create(header("s"), &never()).await.unwrap_err();
                assert_eq!(error.kind(), "format_unsupported");
                let list = store.list(&ListQuery::default(), &never()).await.unwrap();
                assert_eq!(list.entries[0].state, SessionState::Newer);
            }
        }
    }
}

#[tokio::test]
async fn other_files_and_the_trash_are_no_sessions() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        store_session(&store, "s", 1).await;
        for name in ["turnkeep.idx", "notes.txt", "session.jsonl.0123456789ab.tmp"] {
            fs::write(disk.session_dir("s").join(name), "x").unwrap();
        }
        fs::write(disk.root().join("README"), "x").unwrap();
        fs::write(disk.root().join(PROJECT).join("notes.txt"), "x").unwrap();
        let trashed = disk.root().join(".turnkeep-trash").join("1700000000000").join(PROJECT);
        fs::create_dir_all(&trashed).unwrap();
        fs::rename(disk.session_dir("s"), trashed.join("s")).unwrap();
        assert_eq!(store.stat(&id("s"), &never()).await.unwrap(), None);
        assert!(store.list(&ListQuery::default(), &never()).await.unwrap().entries.is_empty());
        store_session(&store, "s", 2).await;
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries.len(), 1);
    }
}

#[tokio::test]
async fn a_frame_over_the_limit_is_neither_read_nor_written() {
    let disk = Disk::new(Encoding::Zstd);
    store_session(&disk.store(), "s", 200).await;
    let options = JsonlOptions { max_frame_bytes: 4000, ..disk.options() };
    let strict = JsonlStore::open(options).unwrap();
    let error = strict.open(&id("s"), Access::Write, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "format_unsupported");
    assert!(error.to_string().contains("raise `max_frame_bytes`"), "{error}");
    assert!(strict.stat(&id("s"), &never()).await.unwrap().is_some());

    let handle = create(&strict, "t").await;
    let error = handle.append(batch(0, 200), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "not_serializable");
    append(&*handle, 0, 20).await;
    assert_eq!(read(&*handle).await.len(), 20);
}

#[test]
fn a_root_that_others_can_change_is_refused() {
    let disk = Disk::new(Encoding::Zstd);
    fs::create_dir(disk.root()).unwrap();
    for mode in [0o720, 0o702, 0o777, 0o1777] {
        fs::set_permissions(disk.root(), fs::Permissions::from_mode(mode)).unwrap();
        let error = JsonlStore::open(disk.options()).unwrap_err();
        assert_eq!(error.kind(), "usage");
        let text = error.to_string();
        let advice = format!("run `chmod go-w {}`", disk.root().display());
        assert!(text.contains(&advice), "{text}");
    }
    for mode in [0o700, 0o755] {
        fs::set_permissions(disk.root(), fs::Permissions::from_mode(mode)).unwrap();
        JsonlStore::open(disk.options()).unwrap();
    }
    fs::remove_dir(disk.root()).unwrap();
    fs::write(disk.root(), "").unwrap();
    let error = JsonlStore::open(disk.options()).unwrap_err();
    assert_eq!(error.kind(), "usage");
    assert!(error.to_string().contains("not a directory"), "{error}");
    // Below a file there is nothing to find.
    let options = JsonlOptions::new(disk.root().join("below"));
    assert_eq!(JsonlStore::open(options).unwrap_err().kind(), "io");
    assert_eq!(JsonlStore::open(JsonlOptions::new("")).unwrap_err().kind(), "usage");
}

#[tokio::test]
async fn a_root_that_turns_up_open_to_others_is_refused_too() {
    let disk = Disk::new(Encoding::Zstd);
    let handle = create(&disk.store(), "s").await;
    fs::create_dir(disk.root()).unwrap();
    fs::set_permissions(disk.root(), fs::Permissions::from_mode(0o777)).unwrap();
    let error = handle.append(batch(0, 1), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "io");
    assert!(error.to_string().contains("chmod go-w"), "{error}");
    assert!(names(&disk.root()).is_empty());
}

#[tokio::test]
async fn a_relative_root_is_resolved_once() {
    // Changing the working directory would disturb the other tests: the error tells the path.
    let options = JsonlOptions::new("Cargo.toml");
    let error = JsonlStore::open(options).unwrap_err().to_string();
    let manifest = std::env::current_dir().unwrap().join("Cargo.toml");
    assert!(error.contains(&manifest.display().to_string()), "{error}");
}
