use super::{Tail, TailKind, has_lost_sector, judge_frames, zeroed_lines};
use crate::jsonl::frames::{Decoder, encode_frame, encode_hitched};

fn judge(offset: u64, bytes: &[u8], problem: Option<&str>) -> Result<Tail, String> {
    let mut decoder = Decoder::new(1 << 20).unwrap();
    judge_frames(offset, bytes, problem, &mut decoder).map_err(|error| error.problem)
}

#[test]
fn a_sector_is_lost_only_as_a_whole() {
    let lost = |offset, bytes: &[u8]| has_lost_sector(offset, bytes);
    assert!(lost(0, &[0]));
    assert!(lost(700, &[0; 3]));
    assert!(!lost(0, b""));
    assert!(!lost(0, b"a"));

    let with = |before: usize, zeros: usize, after: usize| {
        [vec![1; before], vec![0; zeros], vec![1; after]].concat()
    };
    // One sector, aligned in the file.
    assert!(lost(0, &with(512, 512, 1)));
    assert!(!lost(0, &with(512, 511, 1)));
    assert!(!lost(1, &with(512, 512, 1)));
    assert!(lost(1, &with(511, 512, 1)));
    // 512 zeros that lie across two sectors.
    assert!(!lost(0, &with(100, 512, 1000)));
    // The rest of a sector at the beginning of the tail.
    assert!(lost(500, &with(0, 12, 40)));
    assert!(!lost(500, &with(0, 11, 40)));
    // The part of a sector at its end.
    assert!(lost(0, &with(512, 400, 0)));
    assert!(lost(512, &with(512, 1, 0)));
    assert!(!lost(512, &with(513, 400, 0)));
}

#[test]
fn an_incomplete_frame_is_torn() {
    let frame = encode_frame("{\"a\":1}\n").unwrap();
    for cut in 1..frame.len() {
        let tail = judge(100, &frame[..cut], None).unwrap();
        assert_eq!(tail.kind, TailKind::Torn, "cut to {cut}");
    }
    assert!(judge(100, &frame[..frame.len() - 1], None).unwrap().legible);
    assert!(!judge(100, &frame[..6], None).unwrap().legible);
}

#[test]
fn zeros_are_torn_and_garbage_is_damage() {
    let zeroed = Tail { kind: TailKind::Zeroed, legible: false };
    assert_eq!(judge(9, &[0; 4096], Some("invalid frame magic")), Ok(zeroed));
    assert_eq!(judge(9, &[0; 3], None), Ok(zeroed));
    assert_eq!(
        judge(9, b"garbage!", Some("invalid frame magic at byte 9")),
        Err("invalid frame magic at byte 9".to_owned())
    );
}

#[test]
fn a_complete_frame_with_a_lost_sector_is_torn() {
    let noise: Vec<_> = (0u32..4000).map(|n| n.wrapping_mul(2_654_435_761).to_string()).collect();
    let mut frame = encode_frame(&noise.join("\n")).unwrap();
    frame[1024..1536].fill(0);
    let problem = Some("frame failed validation");
    assert_eq!(judge(512, &frame, problem).unwrap().kind, TailKind::Zeroed);
    // The same zeros one byte off the sector are no lost sector.
    assert_eq!(judge(513, &frame, problem), Err("frame failed validation".to_owned()));
}

#[test]
fn nothing_is_torn_that_a_good_frame_follows() {
    let good = encode_frame("{\"a\":1}\n").unwrap();
    let torn = [&good[..good.len() - 1], &good].concat();
    let at = 100 + good.len() - 1;
    assert_eq!(
        judge(100, &torn, None),
        Err(format!("incomplete frame at byte 100, before an intact frame at byte {at}"))
    );
    let zeroed = [&[0; 1024][..], &good].concat();
    assert!(judge(0, &zeroed, Some("invalid frame magic")).is_err());
    // A magic number alone is no frame.
    let lookalike = [&[0; 1024][..], &good[..7]].concat();
    assert_eq!(judge(0, &lookalike, Some("invalid frame magic")).unwrap().kind, TailKind::Zeroed);
}

/// Tails that cost the square of their length, or more, when every frame in them is looked at.
#[test]
fn a_tail_full_of_frames_is_damage_and_soon_found_to_be() {
    const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
    let cases: [(&str, &[u8]); 4] = [
        // Each frame goes on through all that follow it, and ends nowhere.
        ("endless", &[0, 0x58, 0x30, 0, 0]),
        ("a run of 128 KiB each, with a wrong checksum", &[4, 0x58, 3, 0, 0x10, b'x', 1, 2, 3, 4]),
        // A frame without content and with a wrong checksum.
        ("empty", &[4, 0x58, 1, 0, 0, 1, 2, 3, 4]),
        ("a dictionary", &[1, 0x58, 7, 1, 0, 0]),
    ];
    for (name, rest) in cases {
        let frame = [&MAGIC[..], rest].concat();
        let mut bytes = vec![b'!'];
        bytes.extend(frame.iter().cycle().take(4 << 20));
        for problem in [None, Some("invalid frame magic at byte 100")] {
            let started = std::time::Instant::now();
            let problem = judge(100, &bytes, problem).unwrap_err();
            let took = started.elapsed();
            assert!(took < std::time::Duration::from_secs(2), "{name}: {took:?}");
            assert!(
                problem.contains("too much that may be a frame to look at"),
                "{name}: {problem}"
            );
        }
        // Also when a sector is missing, which is torn as long as all of it could be looked at.
        bytes.extend_from_slice(&[0; 1024]);
        assert!(judge(100, &bytes, None).is_err(), "{name}");
    }
}

/// What was given up on above is found when there is little before it.
#[test]
fn a_good_frame_is_found_behind_many_that_are_none() {
    let good = encode_frame("{\"a\":1}\n").unwrap();
    let bad = [0x28, 0xB5, 0x2F, 0xFD, 4, 0x58, 1, 0, 0, 1, 2, 3, 4].repeat(10_000);
    let bytes = [b"!", &bad[..], &good].concat();
    let at = 1 + bad.len();
    assert_eq!(
        judge(0, &bytes, Some("invalid frame magic at byte 0")),
        Err(format!("invalid frame magic at byte 0, before an intact frame at byte {at}"))
    );
}

#[test]
fn lines_are_zeroed_from_the_line_of_the_first_nul() {
    let mut bytes = b"{\"seq\":0}\n{\"seq\":1".to_vec();
    assert_eq!(zeroed_lines(0, &bytes), None);
    bytes.extend_from_slice(&[0; 100]);
    assert_eq!(zeroed_lines(0, &bytes), None);
    bytes.extend_from_slice(&[0; 1000]);
    assert_eq!(zeroed_lines(0, &bytes), Some(10));
    bytes.extend_from_slice(b"\n{\"seq\":2}\n");
    assert_eq!(zeroed_lines(0, &bytes), Some(10));
    // From the end of a line on, all zero.
    assert_eq!(zeroed_lines(0, b"{}\n\0\0\0"), Some(3));
    assert_eq!(zeroed_lines(0, b"{}\n\0\0\0}\n"), None);
}

#[test]
fn a_frame_written_before_its_predecessors_were_synced_proves_nothing() {
    let (good, hitched) =
        (encode_frame("{\"a\":1}\n").unwrap(), encode_hitched("{\"a\":1}\n").unwrap());
    let magic = Some("invalid frame magic");
    // What a power cut leaves of several batches that were not synced.
    let lost = [&[0; 1024][..], &hitched, &hitched].concat();
    let tail = judge(0, &lost, magic).unwrap();
    assert_eq!(tail, Tail { kind: TailKind::Zeroed, legible: true });
    let torn = [&lost[..], &hitched[..9]].concat();
    assert_eq!(judge(0, &torn, magic).unwrap().kind, TailKind::Zeroed);
    // One that was synced behind them proves that they were, too.
    let synced = [&lost[..], &good, &hitched].concat();
    let problem = format!("invalid frame magic, before an intact frame at byte {}", lost.len());
    assert_eq!(judge(0, &synced, magic), Err(problem));
    // And no power cut leaves anything but zeros.
    let damaged = [&good[..good.len() - 1], &hitched].concat();
    assert!(judge(0, &damaged, None).unwrap_err().contains("before an intact frame"));
    let garbage = [b"garbage!", &hitched[..]].concat();
    assert!(judge(0, &garbage, magic).unwrap_err().contains("before an intact frame"));
}

#[test]
fn many_batches_behind_a_lost_one_are_passed_in_little_time() {
    let batch = "{\"type\":\"todo/write\",\"data\":{}}\n".repeat(100);
    let hitched = encode_hitched(&batch).unwrap();
    let bytes = [vec![0; 1024], hitched.repeat((8 << 20) / hitched.len())].concat();
    let started = std::time::Instant::now();
    assert_eq!(judge(0, &bytes, Some("invalid frame magic")).unwrap().kind, TailKind::Zeroed);
    let took = started.elapsed();
    assert!(took < std::time::Duration::from_secs(10), "{took:?}");
}
