use std::fs;

use super::{Ending, STEP, Seal};
use crate::jsonl::{
    frames::{FrameScan, encode_frame, scan_frame},
    fs::{Fs as _, OpenMode, OsFs},
    layout::Encoding,
};

/// Whether a seal holds in a file of these bytes.
fn holds(seal: Ending, bytes: &[u8]) -> bool {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    seal.holds(&*OsFs.open(file.path(), OpenMode::Read).unwrap()).unwrap()
}

#[test]
fn a_seal_holds_until_its_bytes_change() {
    let step = usize::try_from(STEP).unwrap();
    for length in [1, step - 1, step, step + 1, 3 * step + 5] {
        let bytes: Vec<u8> = (0..=250u8).cycle().take(length + 20).collect();
        let ending =
            Ending { record: Seal::of(10, &bytes[10..20]), tail: Seal::of(20, &bytes[20..]) };
        assert!(holds(ending, &bytes));
        for at in [10, 19, 20, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(!holds(ending, &changed), "{length} bytes, changed at {at}");
        }
        assert!(!holds(ending, &bytes[..bytes.len() - 1]), "cut short");
        let mut before = bytes.clone();
        before[9] ^= 1;
        assert!(holds(ending, &before), "only the end is sealed");
    }
}

#[test]
fn a_last_line_is_sealed_with_its_line_feed() {
    assert_eq!(Seal::of_last_line(7, b"{}\n{\"a\":1}\n"), Seal::of(10, b"{\"a\":1}\n"));
    assert_eq!(Seal::of_last_line(7, b"{\"a\":1}\n"), Seal::of(7, b"{\"a\":1}\n"));
    assert_eq!(Seal::of_last_line(7, b""), Seal::of(7, b""));
}

#[test]
fn a_frame_is_sealed_by_its_checksum_or_as_a_whole() {
    let frame = encode_frame("{\"a\":1}\n").unwrap();
    let FrameScan::Complete(found) = scan_frame(&frame) else { panic!("no frame") };
    let checksum = Seal::of(100 + frame.len() as u64 - 4, &frame[frame.len() - 4..]);
    assert_eq!(Seal::of_frame(100, &frame, found), checksum);
    assert_eq!(Seal::of_written(Encoding::Zstd, 100, &frame), checksum);

    // One raw block of a byte, in a single segment, without a checksum.
    let bare = [0x28, 0xB5, 0x2F, 0xFD, 0x20, 1, 9, 0, 0, b'\n', 99];
    let FrameScan::Complete(found) = scan_frame(&bare) else { panic!("no frame") };
    assert_eq!(Seal::of_frame(5, &bare, found), Seal::of(5, &bare[..10]));
}
