//! What is done to a log: to its parts, to the lines in them, to how they are packed, to its bytes.

use proptest::{collection::vec, prelude::*, sample::Index};
use turnkeep_store::jsonl::Encoding;
use zstd_safe::{CCtx, CParameter};

use super::corpus::{Log, lines, logs};
use crate::scan::MAGIC;

/// Values that the format, JSON or a programmer may get wrong.
const VALUES: &[&str] = &[
    "null",
    "true",
    "0",
    "1",
    "2",
    "-0",
    "-1",
    "0.0",
    "1.5",
    "1e0",
    "1e999",
    "9007199254740991",
    "9007199254740992",
    "18446744073709551616",
    "\"\"",
    "\"a\"",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "[]",
    "{}",
    "[0]",
    "[0,1]",
    "[[0,1]]",
    "[[1,0]]",
    "[0,[1,3]]",
    "[[0,9007199254740991]]",
    "\"turn/end\"",
    "\"turn/start\"",
    "\"user/message\"",
    "\"assistant/chunk\"",
    "\"text-chunks\"",
    "\"tool-call-chunks\"",
    "\"text\\u002dchunks\"",
    "\"acme/x\"",
    "\"session\"",
    "\"subagent\"",
];

/// The same for members.
const MEMBERS: &[&str] = &[
    "\"ignorable\":true,",
    "\"ignorable\":1,",
    "\"surfaceOp\":\"append\",",
    "\"seedLength\":3,",
    "\"sourceEventSeqs\":[0],",
    "\"sourceEventSeqs\":[[0,2]],",
    "\"sourceEventSeqs\":[[1,2],0],",
    "\"sourceEventSeqs\":[0,[1,1],3],",
    "\"sourceEventSeqs\":[2,1,0],",
    "\"sourceEventSeqs\":[[0,1],[1,2]],",
    "\"seq\":0,",
    "\"s\\u0065q\":1,",
    "\"seq0\":0,",
    "\"time\":1,",
    "\"data\":1,",
    "\"dt\":[],",
    "\"texts\":[\"a\"],",
    "\"args\":[\"a\"],",
    "\"id\":\"s\",",
    "\"name\":\"n\",",
    "\"version\":1,",
    "\"version\":0,",
    "\"sandboxMode\":1,",
    "\"type\":\"turn/end\",",
    "\"\":0,",
    "\"extra\":{\"a\":[1]},",
];

/// The same for anything.
const FRAGMENTS: &[&str] = &[
    ",", ":", "\"", "\\", "{", "}", "[", "]", "\n", "\r\n", "\r", " ", "\t", "\0", "\u{feff}",
    "\u{2028}", "\u{1}", "é", "null", "1", "-", "e5", "\"a\":1,", "\"\\u\"",
];

/// A change of one line.
#[derive(Clone, Debug)]
pub struct Splice {
    at: Index,
    how: How,
    fragment: Index,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Next,
    First,
    Last,
}

#[derive(Clone, Copy, Debug)]
enum How {
    /// Some bytes are replaced by any fragment.
    Bytes(usize),
    /// The next name or plain value is replaced by a value.
    Value,
    /// A member is put first in the next object, or the outermost one, or last in that.
    Member(Place),
}

impl Splice {
    pub fn any() -> impl Strategy<Value = Self> {
        let how = prop_oneof![
            2 => (0..6_usize).prop_map(How::Bytes),
            4 => Just(How::Value),
            1 => Just(How::Member(Place::Next)),
            1 => Just(How::Member(Place::First)),
            3 => Just(How::Member(Place::Last)),
        ];
        (any::<Index>(), how, any::<Index>()).prop_map(|(at, how, fragment)| Self {
            at,
            how,
            fragment,
        })
    }

    pub fn apply(&self, text: &mut String) {
        let mut at = self.at.index(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let (at, mut end, from) = match self.how {
            How::Bytes(count) => (at, (at + count).min(text.len()), FRAGMENTS),
            How::Value => {
                let at = at + text[at..].find([':', ',', '[']).map_or(0, |ahead| ahead + 1);
                let token = &text[at..];
                let length = match token.strip_prefix('"') {
                    Some(rest) => rest.find('"').map(|end| end + 2),
                    None => token.find([',', ':', ']', '}', '[', '{', '"']),
                };
                (at, at + length.unwrap_or(0), VALUES)
            }
            How::Member(Place::Last) => {
                // With the comma before it.
                if let Some(end) = text.rfind('}') {
                    let member = MEMBERS[self.fragment.index(MEMBERS.len())];
                    text.insert_str(end, &format!(",{}", member.trim_end_matches(',')));
                }
                return;
            }
            How::Member(place) => {
                let at = if matches!(place, Place::First) { 0 } else { at };
                let at = at + text[at..].find('{').map_or(0, |ahead| ahead + 1);
                (at, at, MEMBERS)
            }
        };
        while !text.is_char_boundary(end) {
            end += 1;
        }
        text.replace_range(at..end, from[self.fragment.index(from.len())]);
    }
}

/// A change of the parts of a log, before they are packed.
#[derive(Clone, Debug)]
enum Regroup {
    Drop(Index),
    Repeat(Index),
    Swap(Index, Index),
    Join(Index),
    Split(Index, Index),
    Line(Index, Splice),
}

impl Regroup {
    fn any() -> impl Strategy<Value = Self> {
        let index = any::<Index>;
        prop_oneof![
            1 => index().prop_map(Self::Drop),
            1 => index().prop_map(Self::Repeat),
            1 => (index(), index()).prop_map(|(one, other)| Self::Swap(one, other)),
            1 => index().prop_map(Self::Join),
            2 => (index(), index()).prop_map(|(part, at)| Self::Split(part, at)),
            6 => (index(), Splice::any()).prop_map(|(part, splice)| Self::Line(part, splice)),
        ]
    }

    fn apply(&self, parts: &mut Vec<String>) {
        let count = parts.len();
        if count == 0 {
            return;
        }
        match self {
            Self::Drop(at) => drop(parts.remove(at.index(count))),
            Self::Repeat(at) => {
                let part = parts[at.index(count)].clone();
                parts.insert(at.index(count), part);
            }
            Self::Swap(one, other) => parts.swap(one.index(count), other.index(count)),
            Self::Join(at) => {
                let at = at.index(count);
                if at + 1 < count {
                    let next = parts.remove(at + 1);
                    parts[at] += &next;
                }
            }
            Self::Split(part, at) => {
                let part = part.index(count);
                let lines: Vec<_> = parts[part].split_inclusive('\n').collect();
                let (before, after) = lines.split_at(at.index(lines.len() + 1));
                let (before, after) = (before.concat(), after.concat());
                parts[part] = before;
                parts.insert(part + 1, after);
            }
            Self::Line(part, splice) => splice.apply(&mut parts[part.index(count)]),
        }
    }
}

/// How frames are packed, all of which other writers may do.
#[derive(Clone, Copy, Debug)]
struct Packing {
    checksum: bool,
    size: bool,
    how: Blocks,
}

#[derive(Clone, Copy, Debug)]
enum Blocks {
    /// By the library, at this level.
    Packed(i32),
    /// By hand: blocks of so many bytes as they are, or as a run where all are the same.
    Plain(usize),
}

impl Packing {
    fn any() -> impl Strategy<Value = Self> {
        let how = prop_oneof![
            3 => (-1..6).prop_map(Blocks::Packed),
            1 => (1..300_usize).prop_map(Blocks::Plain),
        ];
        let parts = (prop::bool::weighted(0.8), prop::bool::weighted(0.2), how);
        parts.prop_map(|(checksum, size, how)| Self { checksum, size, how })
    }

    fn pack(self, text: &str) -> Vec<u8> {
        let level = match self.how {
            Blocks::Packed(level) => level,
            Blocks::Plain(most) => return self.pack_by_hand(text.as_bytes(), most),
        };
        let mut context = CCtx::create();
        context.set_parameter(CParameter::ChecksumFlag(self.checksum)).unwrap();
        context.set_parameter(CParameter::ContentSizeFlag(self.size)).unwrap();
        context.set_parameter(CParameter::CompressionLevel(level)).unwrap();
        let mut frame = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
        context.compress2(&mut frame, text.as_bytes()).unwrap();
        frame
    }

    fn pack_by_hand(self, text: &[u8], most: usize) -> Vec<u8> {
        let mut frame = MAGIC.to_vec();
        let size = if self.size { 0b1000_0000 } else { 0 };
        frame.extend([size | if self.checksum { 0b100 } else { 0 }, 0x58]);
        if self.size {
            frame.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        }
        let mut blocks = text.chunks(most).peekable();
        if blocks.peek().is_none() {
            frame.extend([1, 0, 0]);
        }
        while let Some(block) = blocks.next() {
            let last = usize::from(blocks.peek().is_none());
            let is_run = block.iter().all(|byte| *byte == block[0]);
            let header = block.len() << 3 | usize::from(is_run) << 1 | last;
            frame.extend(&header.to_le_bytes()[..3]);
            frame.extend(if is_run { &block[..1] } else { block });
        }
        if self.checksum {
            frame.extend(&xxhash_rust::xxh64::xxh64(text, 0).to_le_bytes()[..4]);
        }
        frame
    }
}

/// A change of the bytes of a log.
#[derive(Clone, Debug)]
enum Edit {
    Flip(Index, u8),
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Delete(Index, usize),
    Truncate(Index),
    Copy(Index, usize, Index),
    Zero(Index, usize),
    Append(Vec<u8>),
    /// Zeros to the next sector and further, as a power cut leaves them.
    AppendZeros(usize),
    Frame(Index),
}

impl Edit {
    fn any() -> impl Strategy<Value = Self> {
        let index = any::<Index>;
        let bytes = || vec(any::<u8>(), 1..40);
        prop_oneof![
            3 => (index(), 0..8_u8).prop_map(|(at, bit)| Self::Flip(at, bit)),
            3 => (index(), any::<u8>()).prop_map(|(at, byte)| Self::Set(at, byte)),
            1 => (index(), bytes()).prop_map(|(at, bytes)| Self::Insert(at, bytes)),
            1 => (index(), 1..600_usize).prop_map(|(at, length)| Self::Delete(at, length)),
            4 => index().prop_map(Self::Truncate),
            1 => (index(), 1..600_usize, index()).prop_map(|(at, length, to)| Self::Copy(at, length, to)),
            2 => (index(), 1..1200_usize).prop_map(|(at, length)| Self::Zero(at, length)),
            1 => bytes().prop_map(Self::Append),
            2 => (1..1500_usize).prop_map(Self::AppendZeros),
            1 => index().prop_map(Self::Frame),
        ]
    }

    fn apply(&self, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        if length == 0 {
            return;
        }
        match self {
            Self::Flip(at, bit) => bytes[at.index(length)] ^= 1 << bit,
            Self::Set(at, byte) => bytes[at.index(length)] = *byte,
            Self::Insert(at, new) => {
                let at = at.index(length);
                bytes.splice(at..at, new.iter().copied()).for_each(drop);
            }
            Self::Delete(at, count) => {
                let at = at.index(length);
                bytes.drain(at..(at + count).min(length));
            }
            Self::Truncate(at) => bytes.truncate(at.index(length + 1)),
            Self::Copy(at, count, to) => {
                let at = at.index(length);
                let copy = bytes[at..(at + count).min(length)].to_vec();
                let to = to.index(length + 1);
                bytes.splice(to..to, copy).for_each(drop);
            }
            Self::Zero(at, count) => {
                let at = at.index(length);
                bytes[at..(at + count).min(length)].fill(0);
            }
            Self::Append(new) => bytes.extend_from_slice(new),
            Self::AppendZeros(count) => bytes.resize(length + count, 0),
            Self::Frame(at) => {
                let log = &logs()[at.index(logs().len())];
                let part = &log.parts[at.index(log.parts.len())];
                let plain = Packing { checksum: true, size: false, how: Blocks::Packed(3) };
                bytes.extend(plain.pack(part));
            }
        }
    }
}

/// A log of the corpus, and what is done to it.
#[derive(Clone, Debug)]
pub struct Mutant {
    log: usize,
    regroups: Vec<Regroup>,
    packing: Packing,
    edits: Vec<Edit>,
}

impl Mutant {
    /// Of a log in this encoding.
    pub fn any(encoding: Encoding) -> impl Strategy<Value = Self> {
        let of: Vec<usize> =
            (0..logs().len()).filter(|at| logs()[*at].encoding == encoding).collect();
        let log = any::<Index>().prop_map(move |at| of[at.index(of.len())]);
        let regroups = vec(Regroup::any(), 0..4);
        (log, regroups, Packing::any(), vec(Edit::any(), 0..4))
            .prop_map(|(log, regroups, packing, edits)| Self { log, regroups, packing, edits })
    }

    pub fn log(&self) -> &'static Log {
        &logs()[self.log]
    }

    pub fn bytes(&self) -> Vec<u8> {
        let log = self.log();
        let mut parts = log.parts.clone();
        self.regroups.iter().for_each(|regroup| regroup.apply(&mut parts));
        let mut bytes: Vec<u8> = match log.encoding {
            Encoding::None => parts.concat().into_bytes(),
            Encoding::Zstd => parts.iter().flat_map(|part| self.packing.pack(part)).collect(),
        };
        bytes.extend_from_slice(&log.tail);
        self.edits.iter().for_each(|edit| edit.apply(&mut bytes));
        bytes
    }
}

/// A line of the corpus, changed here and there; or any text at all.
pub fn line() -> impl Strategy<Value = String> {
    let of_fragments = vec(any::<Index>(), 0..12).prop_map(|fragments| {
        let all = [FRAGMENTS, VALUES, MEMBERS].concat();
        fragments.iter().map(|at| all[at.index(all.len())]).collect()
    });
    let of_bytes =
        vec(any::<u8>(), 0..60).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    prop_oneof![12 => like(|_| true), 3 => of_fragments, 1 => of_bytes]
}

/// A header of the corpus, changed here and there.
pub fn header() -> impl Strategy<Value = String> {
    like(|line| line.starts_with("{\"type\":\"session\""))
}

fn like(wanted: impl Fn(&str) -> bool) -> impl Strategy<Value = String> {
    let lines: Vec<_> = lines().iter().filter(|line| wanted(line)).collect();
    (any::<Index>(), vec(Splice::any(), 0..4)).prop_map(move |(line, splices)| {
        let mut text = lines[line.index(lines.len())].clone();
        for splice in &splices {
            splice.apply(&mut text);
        }
        text
    })
}
