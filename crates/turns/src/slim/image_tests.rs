use super::{Dimensions, dimensions};

fn size_of(bytes: &[u8]) -> Option<(u32, u32)> {
    dimensions(bytes.len(), bytes.iter().copied())
        .map(|Dimensions { width, height }| (width, height))
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
    [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".as_slice(), &sides].concat()
}

/// A JPEG with these segments before its frame header.
fn jpeg(segments: &[(u8, u16)], frame: u8, width: u16, height: u16) -> Vec<u8> {
    let mut bytes = vec![0xFF, 0xD8];
    for &(marker, length) in segments {
        bytes.extend([0xFF, marker]);
        bytes.extend(length.to_be_bytes());
        bytes.extend(vec![0xFF; usize::from(length) - 2]);
    }
    bytes.extend([0xFF, frame, 0, 11, 8]);
    bytes.extend([height.to_be_bytes(), width.to_be_bytes()].concat());
    bytes
}

fn webp(chunk: &[u8]) -> Vec<u8> {
    [b"RIFF\0\0\0\0WEBP".as_slice(), chunk].concat()
}

#[test]
fn png_needs_24_bytes_and_no_chunk_name() {
    assert_eq!(size_of(&png(2, 3)), Some((2, 3)));
    assert_eq!(size_of(&png(u32::MAX, 1)), Some((u32::MAX, 1)));
    assert_eq!(size_of(&png(2, 3)[..23]), None);
    assert_eq!(size_of(&png(0, 3)), None);
    let mut odd = png(2, 3);
    odd[4..16].fill(0);
    assert_eq!(size_of(&odd), Some((2, 3)));
}

#[test]
fn gif_needs_10_bytes() {
    assert_eq!(size_of(b"GIF89a\x07\0\x05\0"), Some((7, 5)));
    assert_eq!(size_of(b"GIFxyz\0\x01\x05\0"), Some((256, 5)));
    assert_eq!(size_of(b"GIF89a\x07\0\x05"), None);
    assert_eq!(size_of(b"GIF"), None);
    assert_eq!(size_of(b""), None);
    assert_eq!(size_of(b"GIF89a\x07\0\0\0"), None);
}

#[test]
fn jpeg_is_followed_to_its_frame_header() {
    assert_eq!(size_of(&jpeg(&[(0xE0, 4)], 0xC2, 9, 4)), Some((9, 4)));
    // Metadata blocks are as long as they like.
    let deep: Vec<_> = (0..4).map(|_| (0xE1, u16::MAX)).collect();
    assert_eq!(size_of(&jpeg(&deep, 0xC0, 640, 480)), Some((640, 480)));
    for frame in [0xC1, 0xC3, 0xC5, 0xC7, 0xC9, 0xCB, 0xCD, 0xCF] {
        assert_eq!(size_of(&jpeg(&[], frame, 1, 2)), Some((1, 2)), "{frame:x}");
    }
    for other in [0xC4, 0xC8, 0xCC, 0xD9, 0xDA] {
        assert_eq!(size_of(&jpeg(&[], other, 1, 2)), None, "{other:x}");
    }
    // The header has to be whole, and markers in a row: a filler in between is no marker.
    let whole = jpeg(&[], 0xC0, 1, 2);
    assert_eq!(size_of(&whole[..whole.len() - 1]), None);
    assert_eq!(size_of(b"\xFF\xD8\xFF\xFF\xC0\0\x0b\x08\0\x04\0\x09\x01\x01\x11\0"), None);
    assert_eq!(size_of(b"\xFF\xD8\0\xFF\xC0\0\x0b\x08\0\x04\0\x09"), None);
    // Markers without a segment, and a segment that does not even hold its own length.
    assert_eq!(size_of(b"\xFF\xD8\xFF\x01\xFF\xD0\xFF\xC0\0\x0b\x08\0\x04\0\x09"), Some((9, 4)));
    assert_eq!(size_of(b"\xFF\xD8\xFF\xE0\0\x01\xFF\xC0\0\x0b\x08\0\x04\0\x09"), None);
    assert_eq!(size_of(b"\xFF\xD8\xFF\xE0\0\x02\xFF\xC0\0\x0b\x08\0\x04\0\x09"), Some((9, 4)));
}

#[test]
fn webp_has_three_kinds_of_header() {
    let extended = webp(b"VP8X\0\0\0\0\0\0\0\0\xff\x0f\0\xff\x07\0");
    assert_eq!(size_of(&extended), Some((4096, 2048)));
    assert_eq!(size_of(&extended[..29]), None);
    let widest = webp(b"VP8X\0\0\0\0\0\0\0\0\xff\xff\xff\0\0\0");
    assert_eq!(size_of(&widest), Some((1 << 24, 1)));
    let lossless = webp(b"VP8L\0\0\0\0\x2f\x63\x40\x0c\0\0\0\0\0\0");
    assert_eq!(size_of(&lossless), Some((100, 50)));
    // 25 bytes would do, but a header that short is none.
    assert_eq!(size_of(&lossless[..29]), None);
    assert_eq!(size_of(&webp(b"VP8L\0\0\0\0\x2e\x63\x40\x0c\0\0\0\0\0\0")), None);
    let lossy = webp(b"VP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x40\xc1\xf0\0");
    assert_eq!(size_of(&lossy), Some((320, 240)));
    assert_eq!(size_of(&webp(b"VP8 \0\0\0\0\0\0\0\x9d\x01\x2b\x40\xc1\xf0\0")), None);
    assert_eq!(size_of(&webp(b"VP8 \0\0\0\0\0\0\0\x9d\x01\x2a\0\xc0\xf0\0")), None);
    let mut wave = extended;
    wave[8..12].copy_from_slice(b"WAVE");
    assert_eq!(size_of(&wave), None);
}

#[test]
fn nothing_is_asked_for_beyond_the_frame_header() {
    let bytes = jpeg(&[(0xE0, 16)], 0xC0, 1, 2);
    let asked = std::cell::Cell::new(0);
    let endless = (0..).map(|at: usize| {
        asked.set(asked.get().max(at + 1));
        bytes.get(at).copied().unwrap_or(0)
    });
    assert_eq!(dimensions(usize::MAX, endless), Some(Dimensions { width: 1, height: 2 }));
    assert!(asked.get() <= bytes.len().max(super::HEAD), "{}", asked.get());
}
