use proptest::prelude::*;

use super::{Block, Blocks};

const MAX: usize = 1 << 10;

/// The blocks in these pieces of a stream, and how many were left out.
fn blocks(pieces: &[&[u8]]) -> (Vec<Block>, u64) {
    let (mut reader, mut found) = (Blocks::new(MAX), Vec::new());
    for piece in pieces {
        reader.read(piece, |block| found.push(block));
    }
    (found, reader.too_large())
}

fn data(stream: &str) -> Vec<String> {
    blocks(&[stream.as_bytes()]).0.into_iter().map(|block| block.data).collect()
}

#[test]
fn a_block_ends_with_an_empty_line_however_lines_end() {
    for end in ["\n", "\r\n", "\r"] {
        let stream = ["data: a", "", "data:b", "", ""].join(end);
        assert_eq!(data(&stream), ["a", "b"], "{end:?}");
    }
    assert_eq!(data("data: a\r\n\ndata: b\n\r\n"), ["a", "b"]);
}

#[test]
fn lines_of_data_are_joined() {
    assert_eq!(data("data: {\ndata:  \"a\":1\ndata\ndata: }\n\n"), ["{\n \"a\":1\n\n}"]);
}

#[test]
fn what_is_no_data_is_no_block() {
    assert_eq!(data(": comment\n\nevent: a\n\nid: 1\n\nretry: 5\n\nother: x\n\n"), [""; 0]);
    assert_eq!(data(": c\nevent: a\ndata: x\nwhatever\n\n"), ["x"]);
    assert_eq!(data("data: not whole"), [""; 0]);
    assert_eq!(data("data: not whole\n"), [""; 0]);
}

#[test]
fn an_id_holds_until_the_next_one() {
    let stream = b"id: evt-1\r\ndata: a\r\n\r\ndata: b\r\n\r\nid\ndata: c\n\nid: x\0y\ndata: d\n\n";
    let ids: Vec<_> = blocks(&[stream]).0.into_iter().map(|block| block.id).collect();
    let id = |id: &str| Some(id.to_owned());
    assert_eq!(ids, [id("evt-1"), id("evt-1"), id(""), id("")]);
}

#[test]
fn a_byte_order_mark_is_none_of_the_data() {
    assert_eq!(data("\u{feff}data: a\n\n\u{feff}data: b\n\n"), ["a"]);
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    let (found, _) = blocks(&[b"data: \xff\xfe\n\n"]);
    assert_eq!(found[0].data, "\u{fffd}\u{fffd}");
}

#[test]
fn a_block_that_is_too_large_is_left_out_and_the_next_is_read() {
    let large = "x".repeat(MAX + 1);
    let many = "data: x\n".repeat(MAX);
    for large in [format!("data: {large}\n\n"), format!("{large}\n\n"), format!("{many}\n")] {
        let stream = format!("data: a\n\n{large}data: b\n\n");
        for step in [1, 7, MAX, stream.len()] {
            let pieces: Vec<_> = stream.as_bytes().chunks(step).collect();
            let (found, too_large) = blocks(&pieces);
            let data: Vec<_> = found.into_iter().map(|block| block.data).collect();
            assert_eq!((data, too_large), (vec!["a".to_owned(), "b".to_owned()], 1));
        }
    }
}

#[test]
fn what_is_too_large_is_not_kept() {
    let mut reader = Blocks::new(MAX);
    for _ in 0..10_000 {
        reader.read(&[b'x'; 100], |_| panic!("there is no block"));
        assert!(reader.line.capacity() <= 2 * MAX);
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => Just("\n"), 4 => Just("\r\n"), 4 => Just("\r"), 3 => Just("data: "), 2 => Just("data"),
        2 => Just("id: 7"), 1 => Just(":"), 1 => Just(" "), 1 => Just("\u{feff}"), 1 => Just("é🦀"),
        1 => Just("event: x"),
    ];
    let piece = prop_oneof![9 => piece.prop_map(str::to_owned), 1 => Just("y".repeat(700))];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn it_does_not_matter_where_bytes_are_split(
        stream in pieces(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let bytes = stream.as_bytes();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let mut rest = bytes;
        let mut split = Vec::new();
        for cut in cuts {
            let (piece, after) = rest.split_at(cut - (bytes.len() - rest.len()));
            split.push(piece);
            rest = after;
        }
        split.push(rest);
        prop_assert_eq!(blocks(&split), blocks(&[bytes]));
        let each: Vec<_> = bytes.chunks(1).collect();
        prop_assert_eq!(blocks(&each), blocks(&[bytes]));
    }
}
