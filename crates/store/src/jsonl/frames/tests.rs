use std::io::Read as _;

use super::{
    DecodeError, Decoder, Frame, FrameScan, MAGIC, encode_frame, encode_hitched, scan_frame,
};

const LIMIT: u64 = 1 << 30;

fn decode(bytes: &[u8]) -> Result<String, DecodeError> {
    let FrameScan::Complete(frame) = scan_frame(bytes) else { panic!("no complete frame") };
    Decoder::new(LIMIT).unwrap().decode(bytes, frame).map(|text| text.to_string())
}

/// A frame put together by hand: descriptor, the header fields after it, blocks, what follows.
fn frame(descriptor: u8, fields: &[u8], blocks: &[(u8, u32, &[u8])], rest: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.push(descriptor);
    bytes.extend_from_slice(fields);
    for (index, (kind, size, content)) in blocks.iter().enumerate() {
        let last = u32::from(index + 1 == blocks.len());
        let header = last | u32::from(*kind) << 1 | size << 3;
        bytes.extend_from_slice(&header.to_le_bytes()[..3]);
        bytes.extend_from_slice(content);
    }
    bytes.extend_from_slice(rest);
    bytes
}

#[test]
fn what_we_write_has_the_documented_bytes() {
    let text = "{\"type\":\"session\"}\n";
    let bytes = encode_frame(text).unwrap();
    assert_eq!(bytes[..5], [0x28, 0xB5, 0x2F, 0xFD, 0x04]);
    assert!(bytes[5] <= 0x58);
    let large = encode_frame(&"x".repeat(8 << 20)).unwrap();
    assert_eq!(large[4..6], [0x04, 0x58]);
    assert_eq!(decode(&bytes).unwrap(), text);
    let checksum = u32::try_from(xxhash_rust::xxh64::xxh64(text.as_bytes(), 0) & 0xffff_ffff);
    assert_eq!(bytes[bytes.len() - 4..], checksum.unwrap().to_le_bytes());
}

#[test]
fn another_implementation_reads_what_we_write() {
    let texts = ["\n".to_owned(), "line\n".repeat(100_000), format!("{}\n", "é😀".repeat(99))];
    let encoders = [encode_frame, encode_hitched];
    for (text, encode) in texts.iter().flat_map(|text| encoders.map(|encode| (text, encode))) {
        let bytes = encode(text).unwrap();
        let mut decoder = ruzstd::decoding::StreamingDecoder::new(bytes.as_slice()).unwrap();
        let mut read = String::new();
        decoder.read_to_string(&mut read).unwrap();
        assert_eq!(&read, text);
    }
}

#[test]
fn a_hitched_frame_is_told_by_its_first_block() {
    for text in ["\n".to_owned(), "x".repeat(8 << 20)] {
        let (plain, hitched) = (encode_frame(&text).unwrap(), encode_hitched(&text).unwrap());
        assert_eq!(hitched, [&plain[..6], &[0, 0, 0], &plain[6..]].concat());
        assert_eq!(decode(&hitched).unwrap(), text);
        let is_hitched =
            |bytes| matches!(scan_frame(bytes), FrameScan::Complete(frame) if frame.hitched);
        assert!(is_hitched(&hitched) && !is_hitched(&plain));
    }
}

#[test]
fn every_kind_of_frame_header_is_understood() {
    let raw: &[(u8, u32, &[u8])] = &[(0, 2, b"a\n")];
    let variants = [
        ("window", frame(0b0000_0000, &[0x58], raw, &[])),
        ("single segment, 1 byte of size", frame(0b0010_0000, &[2], raw, &[])),
        ("2 bytes of size", frame(0b0110_0000, &(2u16.wrapping_sub(256)).to_le_bytes(), raw, &[])),
        ("4 bytes of size", frame(0b1010_0000, &2u32.to_le_bytes(), raw, &[])),
        ("8 bytes of size", frame(0b1110_0000, &2u64.to_le_bytes(), raw, &[])),
        ("window and size", frame(0b1000_0000, &[0x58, 2, 0, 0, 0], raw, &[])),
        ("two blocks", frame(0, &[0x58], &[(0, 1, b"a"), (0, 1, b"\n")], &[])),
    ];
    for (name, bytes) in variants {
        let FrameScan::Complete(found) = scan_frame(&bytes) else { panic!("{name}") };
        assert_eq!(found.len, bytes.len(), "{name}");
        // A two-byte size counts from 256, which a two-byte content cannot have.
        if !name.starts_with("2 bytes") {
            assert_eq!(decode(&bytes).unwrap(), "a\n", "{name}");
        }
        for cut in 0..bytes.len() {
            assert_eq!(scan_frame(&bytes[..cut]), FrameScan::Incomplete, "{name} cut to {cut}");
        }
        let mut followed = bytes.clone();
        followed.extend_from_slice(b"anything");
        assert_eq!(scan_frame(&followed), FrameScan::Complete(found), "{name}");
    }
}

#[test]
fn runs_raw_blocks_and_many_blocks_unpack() {
    let bytes = frame(0, &[0x58], &[(1, 5, b"x"), (0, 1, b"\n")], &[]);
    assert_eq!(
        scan_frame(&bytes),
        FrameScan::Complete(Frame {
            len: bytes.len(),
            unpacked: 6,
            checksum: false,
            hitched: false
        })
    );
    assert_eq!(decode(&bytes).unwrap(), "xxxxx\n");

    let numbers: Vec<_> = (0..200_000).map(|number| number.to_string()).collect();
    let text = numbers.join("\n");
    let bytes = encode_frame(&text).unwrap();
    assert_eq!(decode(&bytes).unwrap(), text);
}

#[test]
fn what_is_no_frame_is_told_from_what_is_incomplete() {
    assert_eq!(scan_frame(b""), FrameScan::Incomplete);
    assert_eq!(scan_frame(b"abc"), FrameScan::Incomplete);
    assert_eq!(scan_frame(b"abcd"), FrameScan::Invalid("invalid frame magic"));
    assert_eq!(scan_frame(&[0; 4096]), FrameScan::Invalid("invalid frame magic"));
    // A skippable frame has another magic: nobody writes them, so it is damage.
    assert_eq!(
        scan_frame(&[0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0]),
        FrameScan::Invalid("invalid frame magic")
    );
    for bit in [3, 4] {
        let bytes = frame(1 << bit, &[0x58], &[(0, 0, b"")], &[]);
        assert_eq!(scan_frame(&bytes), FrameScan::Invalid("reserved frame-header bit"));
    }
    let bytes = frame(0, &[0x58], &[(3, 0, b"")], &[]);
    assert_eq!(scan_frame(&bytes), FrameScan::Invalid("reserved block type"));
}

#[test]
fn the_checksum_is_verified() {
    let mut bytes = encode_frame("one\ntwo\n").unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert!(matches!(decode(&bytes), Err(DecodeError::Invalid(_))));
    // Without a checksum nothing is there to fail.
    assert_eq!(decode(&frame(0, &[0x58], &[(0, 2, b"a\n")], &[])).unwrap(), "a\n");
}

#[test]
fn a_frame_that_needs_a_dictionary_is_refused() {
    // The dictionary's number takes one, two or four bytes.
    for (flag, number) in [(0b01, &[7][..]), (0b10, &[7, 0]), (0b11, &[7, 0, 0, 0])] {
        let window = [&[0x58], number].concat();
        let bytes = frame(flag, &window, &[(0, 2, b"a\n")], &[]);
        let FrameScan::Complete(found) = scan_frame(&bytes) else { panic!("{flag}") };
        assert_eq!(found.len, bytes.len(), "{flag}");
        assert!(matches!(decode(&bytes), Err(DecodeError::Invalid(_))), "{flag}");
    }
}

#[test]
fn a_frame_over_the_limit_is_refused_and_one_at_it_is_not() {
    let text = "x".repeat(1 << 20);
    let bytes = encode_frame(&text).unwrap();
    let FrameScan::Complete(frame) = scan_frame(&bytes) else { panic!() };
    let decode = |limit| Decoder::new(limit).unwrap().decode(&bytes, frame);
    assert_eq!(decode(1 << 20).unwrap().len(), 1 << 20);
    assert_eq!(decode((1 << 20) - 1).unwrap_err(), DecodeError::TooLarge);
    assert_eq!(decode(0).unwrap_err(), DecodeError::TooLarge);
    // One decoder goes on after a refusal.
    let mut decoder = Decoder::new(100).unwrap();
    assert_eq!(decoder.decode(&bytes, frame).unwrap_err(), DecodeError::TooLarge);
    let small = encode_frame("small\n").unwrap();
    let FrameScan::Complete(frame) = scan_frame(&small) else { panic!() };
    assert_eq!(&*decoder.decode(&small, frame).unwrap(), "small\n");
}

#[test]
fn invalid_utf8_is_replaced() {
    let bytes = frame(0, &[0x58], &[(0, 4, b"a\xFFb\n")], &[]);
    assert_eq!(decode(&bytes).unwrap(), "a\u{fffd}b\n");
}

#[test]
fn a_broken_frame_tells_whether_it_holds_a_line() {
    let lines = encode_frame(&"{\"type\":\"x\"}\n".repeat(3)).unwrap();
    let mut decoder = Decoder::new(LIMIT).unwrap();
    assert!(decoder.salvages_a_line(&lines[..lines.len() - 1]));
    assert!(!decoder.salvages_a_line(&lines[..8]));
    assert!(!decoder.salvages_a_line(b""));
    assert!(!decoder.salvages_a_line(&[0; 600]));
    let one = encode_frame("no line feed").unwrap();
    assert!(!decoder.salvages_a_line(&one));
}
