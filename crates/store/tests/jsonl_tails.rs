//! What an interrupted write or a lost sector leaves, and what the jsonl store makes of it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{fs, os::unix::fs::PermissionsExt as _};

use support::{
    append, batch, create,
    disk::{self, BOTH, Disk, INDEX},
    event_of,
    faulty::{CUT, LOG, Op, stored},
    id, never, open, read, seqs, store_session,
};
use turnkeep_log::Event;
use turnkeep_store::{
    Access, EventRange, SessionHandle, SessionStore,
    jsonl::{Encoding, JsonlStore},
};

/// A turn that does not compress: longer than a few sectors, with its end as the last event.
fn turn(first: u64) -> Vec<Event> {
    let noise = |seq: u64| {
        let noise: Vec<u64> =
            (0..60).map(|n| (seq * 64 + n).wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        event_of("todo/write", seq, &format!("{noise:?}"))
    };
    let end = event_of("turn/end", first + 5, r#"{"turn":1,"reason":{"kind":"completed"}}"#);
    (first..first + 5).map(noise).chain([end]).collect()
}

async fn try_read(store: &JsonlStore, session: &str) -> Result<Vec<Event>, &'static str> {
    let handle =
        store.open(&id(session), Access::Read, &never()).await.map_err(|error| error.kind())?;
    handle.read(EventRange::ALL, &never()).await.map_err(|error| error.kind())
}

/// A log of three batches, and where each of them ends.
async fn three_batches(disk: &Disk) -> Vec<usize> {
    let handle: Box<dyn SessionHandle> = create(&disk.store(), "s").await;
    handle.flush(&never()).await.unwrap();
    let mut ends = vec![disk.bytes("s").len()];
    for (first, count) in [(0, 1), (1, 3), (4, 2)] {
        append(&*handle, first, count).await;
        ends.push(disk.bytes("s").len());
    }
    ends
}

#[tokio::test]
async fn a_log_cut_anywhere_is_a_prefix_that_can_be_continued() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let ends = three_batches(&disk).await;
        let whole = disk.bytes("s");
        for cut in ends[0]..whole.len() {
            fs::write(disk.log("s"), &whole[..cut]).unwrap();
            let expected = match encoding {
                // Whole batches.
                Encoding::Zstd => match ends.iter().filter(|end| **end <= cut).count() {
                    1 => 0,
                    2 => 1,
                    _ => 4,
                },
                // Whole lines, the header aside.
                Encoding::None => memchr::memchr_iter(b'\n', &whole[..cut]).count() as u64 - 1,
            };
            let store = disk.store();
            assert_eq!(try_read(&store, "s").await.unwrap(), batch(0, expected), "cut to {cut}");
            let writer = open(&store, "s", Access::Write).await;
            append(&*writer, expected, 1).await;
            writer.close().await.unwrap();
            assert_eq!(try_read(&store, "s").await.unwrap(), batch(0, expected + 1));
        }
    }
}

#[tokio::test]
async fn a_flipped_bit_never_changes_an_event() {
    let disk = Disk::new(Encoding::Zstd);
    let ends = three_batches(&disk).await;
    let whole = disk.bytes("s");
    let store = disk.store();
    for at in 0..whole.len() {
        for bit in [0, 3, 7] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            fs::write(disk.log("s"), &bytes).unwrap();
            match try_read(&store, "s").await {
                Err(kind) => assert!(["corrupt", "format_unsupported"].contains(&kind)),
                // The size of a window changes nothing.
                Ok(events) if events.len() == 6 => assert_eq!(events, batch(0, 6)),
                // A frame that seems to go on for longer than the file is torn, if it is the last.
                Ok(events) => {
                    assert!(at >= ends[2], "byte {at} bit {bit} cut the log");
                    assert_eq!(events, batch(0, 4), "byte {at} bit {bit}");
                }
            }
        }
    }
}

#[tokio::test]
async fn zeros_at_the_end_are_cut_off() {
    for encoding in BOTH {
        for zeros in [1, 2, 511, 512, 4096, 100_000] {
            let disk = Disk::new(encoding);
            let store = disk.store();
            store_session(&store, "s", 3).await;
            let intact = disk.bytes("s");
            disk.add("s", &vec![0; zeros]);
            assert_eq!(try_read(&store, "s").await.unwrap(), batch(0, 3), "{zeros} zeros");
            let writer = open(&store, "s", Access::Write).await;
            append(&*writer, 3, 1).await;
            assert_eq!(read(&*writer).await, batch(0, 4));
            assert!(disk.bytes("s").starts_with(&intact));
            assert_eq!(
                disk.names("s"),
                [disk.log_name(), "session.lock", INDEX],
                "nothing to copy"
            );
        }
    }
}

/// The last batch of a log, with one sector of the file lost.
async fn with_lost_sector(disk: &Disk, sector: usize) -> (Vec<u8>, Vec<u8>) {
    let store = disk.store();
    store_session(&store, "s", 3).await;
    let intact = disk.bytes("s");
    let writer = open(&store, "s", Access::Write).await;
    writer.append(turn(3), &never()).await.unwrap();
    writer.close().await.unwrap();
    let mut bytes = disk.bytes("s");
    let start = (intact.len() / 512 + sector) * 512;
    assert!(bytes.len() > start + 512);
    bytes[start.max(intact.len())..start + 512].fill(0);
    fs::write(disk.log("s"), &bytes).unwrap();
    (intact, bytes)
}

#[tokio::test]
async fn a_batch_that_lost_a_sector_is_cut_off_whole() {
    for encoding in BOTH {
        for sector in 0..4 {
            let disk = Disk::new(encoding);
            let (intact, damaged) = with_lost_sector(&disk, sector).await;
            let store = disk.store();
            let events = try_read(&store, "s").await.unwrap();
            // The batch ends a turn, and is none the less no part of the log: it was never
            // acknowledged. In plain text, lines before the lost sector stand.
            let kept = match encoding {
                Encoding::Zstd => intact.len(),
                Encoding::None => {
                    let nul = damaged.iter().position(|byte| *byte == 0).unwrap();
                    damaged[..nul].iter().rposition(|byte| *byte == b'\n').unwrap() + 1
                }
            };
            let count = events.len() as u64;
            assert_eq!(events, [batch(0, 3), turn(3)].concat()[..events.len()]);
            assert!(encoding == Encoding::None || count == 3);
            let writer = open(&store, "s", Access::Write).await;
            append(&*writer, count, 1).await;
            assert_eq!(seqs(&read(&*writer).await), (0..=count).collect::<Vec<_>>());
            assert_eq!(disk.bytes("s")[..kept], damaged[..kept]);
            // Lines behind the sector were legible.
            if encoding == Encoding::None {
                let copy = disk.session_dir("s").join(format!("turnkeep.cut-{kept}"));
                assert_eq!(fs::read(copy).unwrap(), damaged[kept..]);
            }
        }
    }
}

#[tokio::test]
async fn a_batch_that_lost_the_part_of_a_sector_it_ends_in_is_cut_off() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        store_session(&store, "s", 3).await;
        let writer = open(&store, "s", Access::Write).await;
        writer.append(turn(3), &never()).await.unwrap();
        writer.close().await.unwrap();
        let mut bytes = disk.bytes("s");
        let last = bytes.len() / 512 * 512;
        assert!(last < bytes.len(), "it does end within a sector");
        bytes[last..].fill(0);
        fs::write(disk.log("s"), &bytes).unwrap();

        let events = try_read(&store, "s").await.unwrap();
        let count = events.len() as u64;
        assert_eq!(events, [batch(0, 3), turn(3)].concat()[..events.len()]);
        assert!(encoding == Encoding::None || count == 3);
        let writer = open(&store, "s", Access::Write).await;
        append(&*writer, count, 1).await;
        assert_eq!(seqs(&read(&*writer).await), (0..=count).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_lost_sector_before_an_intact_batch_is_corruption() {
    let disk = Disk::new(Encoding::Zstd);
    let (_, damaged) = with_lost_sector(&disk, 2).await;
    disk.add("s", &disk.encode("{\"type\":\"turn/start\",\"seq\":9,\"time\":1,\"data\":{}}\n"));
    let before = disk.bytes("s");
    let store = disk.store();
    assert_eq!(try_read(&store, "s").await.unwrap_err(), "corrupt");
    let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
    let fragment = format!("before an intact frame at byte {}", damaged.len());
    assert!(error.to_string().contains(&fragment), "{error}");
    assert_eq!(disk.bytes("s"), before);
}

#[tokio::test]
async fn an_incomplete_frame_before_an_intact_one_is_not_cut() {
    // Its blocks claim to go on past the end of the file; a reader that believes them would take
    // everything from here on for one torn frame.
    let disk = Disk::new(Encoding::Zstd);
    let ends = three_batches(&disk).await;
    let mut bytes = disk.bytes("s");
    bytes[ends[1] + 8] |= 0x7F;
    fs::write(disk.log("s"), &bytes).unwrap();
    let store = disk.store();
    assert_eq!(try_read(&store, "s").await.unwrap_err(), "corrupt");
    let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
    assert!(error.to_string().contains("incomplete frame at byte"), "{error}");
}

#[tokio::test]
async fn lines_that_do_not_continue_the_log_are_uncommitted_until_a_turn_ends() {
    let line = |event: &Event| format!("{}\n", event.text().as_str());
    let gap = line(&event_of("turn/start", 9, "{\"turn\":2}"));
    let end = line(&event_of("turn/end", 10, r#"{"turn":2,"reason":{"kind":"completed"}}"#));
    let disk = Disk::new(Encoding::None);
    let store = disk.store();
    for (name, tail, served) in [
        ("gap", gap.clone(), true),
        ("garbage", "garbage\n\n{}\n".to_owned(), true),
        ("torn", "{\"type\":\"turn/end\"".to_owned(), true),
        ("gap-and-end", gap.clone() + &end, false),
        ("garbage-and-end", "garbage\n".to_owned() + &end, false),
        ("end-itself", end.clone(), false),
    ] {
        store_session(&store, name, 3).await;
        let intact = disk.bytes(name);
        disk.add(name, tail.as_bytes());
        let read = try_read(&store, name).await;
        if !served {
            assert_eq!(read.unwrap_err(), "corrupt", "{name}");
            continue;
        }
        assert_eq!(read.unwrap(), batch(0, 3), "{name}");
        let writer = open(&store, name, Access::Write).await;
        append(&*writer, 3, 1).await;
        let copied = disk.names(name).contains(&format!("turnkeep.cut-{}", intact.len()));
        assert_eq!(copied, tail.contains('\n'), "{name}");
        assert_eq!(try_read(&store, name).await.unwrap(), batch(0, 4), "{name}");
    }
}

#[tokio::test]
async fn invalid_utf8_is_read_and_its_place_in_the_file_is_kept() {
    let disk = Disk::new(Encoding::None);
    let store = disk.store();
    store_session(&store, "s", 1).await;
    disk.add(
        "s",
        b"{\"type\":\"todo/write\",\"seq\":1,\"time\":1,\"data\":\"\xFF\xFE\xE2\x82\"}\r\n",
    );
    disk.add("s", b"{\"type\":\"torn");
    let events = try_read(&store, "s").await.unwrap();
    assert!(events[1].text().contains('\u{fffd}'));
    let before = disk.bytes("s");
    let writer = open(&store, "s", Access::Write).await;
    append(&*writer, 2, 1).await;
    assert_eq!(try_read(&store, "s").await.unwrap().len(), 3);
    let kept = before.len() - b"{\"type\":\"torn".len();
    assert_eq!(disk.bytes("s")[..kept], before[..kept]);
}

#[tokio::test]
async fn a_cut_that_drops_a_whole_record_is_copied_before_it_is_made() {
    let line = |event: &Event| format!("{}\n", event.text().as_str());
    let gap = line(&event_of("turn/start", 9, "{\"turn\":2}"));
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        let intact = disk.bytes("s");
        // What is legible of it is a record; and it cannot stay.
        let tail = match encoding {
            Encoding::Zstd => {
                let frame = disk.encode(&line(&event_of("turn/start", 3, "{\"turn\":2}")));
                frame[..frame.len() - 1].to_vec()
            }
            Encoding::None => gap.clone().into_bytes(),
        };
        disk.add("s", &tail);
        // Nobody cuts it who only reads, or opens, or flushes.
        assert_eq!(try_read(&store, "s").await.unwrap(), batch(0, 3));
        let writer = open(&store, "s", Access::Write).await;
        writer.flush(&never()).await.unwrap();
        let copy = disk.session_dir("s").join(format!("{CUT}{}", intact.len()));
        assert!(!copy.exists());
        faults.clear_log();
        append(&*writer, 3, 1).await;
        assert_eq!(fs::read(&copy).unwrap(), tail);
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o7777, 0o600);
        let log = faults.log();
        let at = |op: Op, part: &str| {
            let done = |(done, path): &(Op, std::path::PathBuf)| {
                *done == op && path.to_str().unwrap().contains(part)
            };
            log.iter().position(done).unwrap_or_else(|| panic!("{op:?} {part}: {log:?}"))
        };
        assert!(at(Op::SyncAll, CUT) < at(Op::Truncate, LOG), "durable before it is cut: {log:?}");
        // Once: what follows cuts nothing.
        append(&*writer, 4, 1).await;
        assert_eq!(disk.names("s").iter().filter(|name| name.starts_with(CUT)).count(), 1);
    }
}

#[tokio::test]
async fn a_cut_that_drops_no_whole_record_leaves_no_copy() {
    for encoding in BOTH {
        let whole = format!("{}\n", event_of("turn/start", 3, "{\"turn\":2}").text().as_str());
        let tails = match encoding {
            Encoding::Zstd => {
                vec![disk::pack(&whole)[..8].to_vec(), disk::pack(&whole)[..3].to_vec()]
            }
            Encoding::None => {
                vec![whole.as_bytes()[..whole.len() - 2].to_vec(), b"{".to_vec(), vec![0; 700]]
            }
        };
        for tail in tails {
            let (disk, _, store) = stored(encoding).await;
            disk.add("s", &tail);
            let writer = open(&store, "s", Access::Write).await;
            append(&*writer, 3, 1).await;
            assert!(!disk.names("s").iter().any(|name| name.starts_with(CUT)), "{tail:?}");
            assert_eq!(read(&*writer).await, batch(0, 4));
        }
    }
}

#[tokio::test]
async fn a_whole_last_frame_with_a_wrong_checksum_is_corruption_and_is_not_cut() {
    let disk = Disk::new(Encoding::Zstd);
    let ends = three_batches(&disk).await;
    let whole = disk.bytes("s");
    // One bit of the checksum, and one of what it is of.
    for at in [whole.len() - 1, whole.len() - 4, ends[2] + 20] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(disk.log("s"), &bytes).unwrap();
        let store = disk.store();
        assert_eq!(try_read(&store, "s").await.unwrap_err(), "corrupt", "byte {at}");
        let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
        let fragment = format!("frame at byte {} failed validation", ends[2]);
        assert!(error.to_string().contains(&fragment), "byte {at}: {error}");
        assert_eq!(disk.bytes("s"), bytes);
        assert!(!disk.names("s").iter().any(|name| name.starts_with(CUT)));
    }
}
