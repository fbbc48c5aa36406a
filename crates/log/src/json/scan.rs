//! The two walks over JSON text: one that checks, and one that only finds ends.

use std::ops::Range;

use memchr::memchr2;

/// The first thing in a text that is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {offset}")]
pub struct JsonError {
    /// Where it is, in bytes from the start of the text.
    pub offset: usize,
    problem: &'static str,
}

impl JsonError {
    fn new(offset: usize, problem: &'static str) -> Self {
        Self { offset, problem }
    }

    pub(super) fn trailing(offset: usize) -> Self {
        Self::new(offset, "text after the value")
    }

    fn end(offset: usize) -> Self {
        Self::new(offset, "unexpected end of the text")
    }
}

pub(super) fn skip_whitespace(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Skips white space, commas and colons: what stands between the parts of a checked container.
pub(super) fn skip_separators(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b':')) {
        at += 1;
    }
    at
}

/// Where the value that starts at `start` of a checked text ends.
pub(super) fn skip_value(bytes: &[u8], start: usize) -> usize {
    match bytes.get(start) {
        Some(b'"') => skip_string(bytes, start),
        Some(b'{') => skip_container(bytes, start, b'{', b'}'),
        Some(b'[') => skip_container(bytes, start, b'[', b']'),
        _ => skip_scalar(bytes, start),
    }
}

fn skip_scalar(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
    start + rest.iter().position(ends).unwrap_or(rest.len())
}

/// Where the next string or white space of a checked text starts.
pub(super) fn skip_plain(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let ends = |byte: &u8| matches!(byte, b'"' | b' ' | b'\t' | b'\n' | b'\r');
    start + rest.iter().position(ends).unwrap_or(rest.len())
}

fn skip_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(found) = quote_or_backslash(rest) else { return bytes.len() };
        at += found;
        if bytes.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
}

/// Where the first quote or backslash is.
///
/// Most strings are keys and ids, and long ones have an escape at each line's end: for distances
/// like these the search proper costs more to start than to run.
fn quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    const NEAR: usize = 32;
    let mut at = 0;
    while at < NEAR
        && let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>)
    {
        let word = u64::from_le_bytes(*chunk);
        let marks = marks_of(word, b'"') | marks_of(word, b'\\');
        if marks != 0 {
            return Some(at + (marks.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    memchr2(b'"', b'\\', bytes.get(at..)?).map(|found| at + found)
}

/// Only brackets of the container's own kind are counted: in checked text the others balance.
fn skip_container(bytes: &[u8], start: usize, open: u8, close: u8) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    // Between strings there is little to step over, so it is stepped over byte by byte.
    while let Some(&byte) = bytes.get(at) {
        if byte == b'"' {
            at = skip_string(bytes, at);
            continue;
        }
        at += 1;
        if byte == open {
            depth += 1;
        } else if byte == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at;
            }
        }
    }
    bytes.len()
}

/// Which containers are open, one bit each, set for an object. The innermost 64 take no memory
/// beyond the struct.
#[derive(Default)]
struct Nesting {
    depth: usize,
    innermost: u64,
    outer: Vec<u64>,
}

impl Nesting {
    fn open(&mut self, object: bool) {
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.innermost);
        }
        self.innermost = self.innermost << 1 | u64::from(object);
        self.depth += 1;
    }

    fn close(&mut self) {
        self.innermost >>= 1;
        self.depth = self.depth.saturating_sub(1);
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.innermost = self.outer.pop().unwrap_or_default();
        }
    }

    fn in_object(&self) -> bool {
        self.innermost & 1 == 1
    }
}

/// Checks the value that starts at `start` and says where it ends.
pub(super) fn check_value(bytes: &[u8], start: usize) -> Result<usize, JsonError> {
    let mut nesting = Nesting::default();
    let mut at = start;
    loop {
        at = match bytes.get(at) {
            Some(b'{') => {
                let first = skip_whitespace(bytes, at + 1);
                nesting.open(true);
                if bytes.get(first) == Some(&b'}') {
                    first
                } else {
                    at = check_colon(bytes, check_key(bytes, first)?)?;
                    continue;
                }
            }
            Some(b'[') => {
                let first = skip_whitespace(bytes, at + 1);
                nesting.open(false);
                if bytes.get(first) == Some(&b']') {
                    first
                } else {
                    at = first;
                    continue;
                }
            }
            Some(&byte) => check_scalar(bytes, at, byte)?,
            None => return Err(JsonError::end(at)),
        };
        // A value has ended, or an empty container is about to.
        loop {
            if nesting.depth == 0 {
                return Ok(at);
            }
            at = skip_whitespace(bytes, at);
            let in_object = nesting.in_object();
            match bytes.get(at) {
                Some(b',') => {
                    at = skip_whitespace(bytes, at + 1);
                    if in_object {
                        at = check_colon(bytes, check_key(bytes, at)?)?;
                    }
                    break;
                }
                Some(b'}') if in_object => nesting.close(),
                Some(b']') if !in_object => nesting.close(),
                Some(_) => return Err(JsonError::new(at, "expected a comma or the end")),
                None => return Err(JsonError::end(at)),
            }
            at += 1;
        }
    }
}

/// Checks the object that starts at `start`, hands out where each of its members' key (quotes
/// included) and value stand, and says where the object ends.
pub(super) fn check_members(
    bytes: &[u8],
    start: usize,
    mut member: impl FnMut(Range<usize>, Range<usize>),
) -> Result<usize, JsonError> {
    let mut at = skip_whitespace(bytes, start + 1);
    if bytes.get(at) == Some(&b'}') {
        return Ok(at + 1);
    }
    loop {
        let key = at..check_key(bytes, at)?;
        let value_start = check_colon(bytes, key.end)?;
        let value = value_start..check_value(bytes, value_start)?;
        at = skip_whitespace(bytes, value.end);
        member(key, value);
        match bytes.get(at) {
            Some(b',') => at = skip_whitespace(bytes, at + 1),
            Some(b'}') => return Ok(at + 1),
            Some(_) => return Err(JsonError::new(at, "expected a comma or the end")),
            None => return Err(JsonError::end(at)),
        }
    }
}

fn check_key(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    match bytes.get(at) {
        Some(b'"') => check_string(bytes, at),
        Some(_) => Err(JsonError::new(at, "expected a key")),
        None => Err(JsonError::end(at)),
    }
}

/// Where the value after the colon starts.
fn check_colon(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    let at = skip_whitespace(bytes, at);
    if bytes.get(at) == Some(&b':') {
        Ok(skip_whitespace(bytes, at + 1))
    } else {
        Err(JsonError::new(at, "expected a colon"))
    }
}

fn check_scalar(bytes: &[u8], at: usize, first: u8) -> Result<usize, JsonError> {
    match first {
        b'"' => check_string(bytes, at),
        b'-' | b'0'..=b'9' => check_number(bytes, at),
        b't' => check_word(bytes, at, b"true"),
        b'f' => check_word(bytes, at, b"false"),
        b'n' => check_word(bytes, at, b"null"),
        _ => Err(JsonError::new(at, "expected a value")),
    }
}

fn check_word(bytes: &[u8], at: usize, word: &[u8]) -> Result<usize, JsonError> {
    if bytes.get(at..).unwrap_or_default().starts_with(word) {
        Ok(at + word.len())
    } else {
        Err(JsonError::new(at, "expected a value"))
    }
}

fn skip_digits(bytes: &[u8], mut at: usize) -> Result<usize, JsonError> {
    if !bytes.get(at).is_some_and(u8::is_ascii_digit) {
        return Err(JsonError::new(at, "expected a digit"));
    }
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    Ok(at)
}

fn check_number(bytes: &[u8], mut at: usize) -> Result<usize, JsonError> {
    if bytes.get(at) == Some(&b'-') {
        at += 1;
    }
    if bytes.get(at) == Some(&b'0') {
        at += 1;
    } else {
        at = skip_digits(bytes, at)?;
    }
    if bytes.get(at) == Some(&b'.') {
        at = skip_digits(bytes, at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        at = skip_digits(bytes, at)?;
    }
    Ok(at)
}

fn check_string(bytes: &[u8], start: usize) -> Result<usize, JsonError> {
    let mut at = start + 1;
    loop {
        at = skip_unescaped(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => match bytes.get(at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                Some(b'u') => {
                    let digits = bytes.get(at + 2..at + 6).unwrap_or_default();
                    if digits.len() != 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
                        return Err(JsonError::new(at, "bad unicode escape"));
                    }
                    at += 6;
                }
                _ => return Err(JsonError::new(at, "bad escape")),
            },
            Some(_) => return Err(JsonError::new(at, "control character in a string")),
            None => return Err(JsonError::new(start, "unterminated string")),
        }
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Marks bytes of a word below `limit` by their high bit.
///
/// A byte below `n` borrows from its high bit in `word − n·ONES`. A borrow can mark later bytes
/// wrongly, never earlier ones, so the first mark is exact.
fn marks_below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGHS
}

/// Marks bytes of a word that are `byte`; the first mark is exact.
fn marks_of(word: u64, byte: u8) -> u64 {
    marks_below(word ^ (ONES * u64::from(byte)), 1)
}

/// Where the first quote, backslash or control character from `at` on stands, looked for eight
/// bytes at a time.
fn skip_unescaped(bytes: &[u8], mut at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let (words, tail) = rest.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        let marks = marks_of(word, b'"') | marks_of(word, b'\\') | marks_below(word, 0x20);
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    at + tail.iter().position(special).unwrap_or(tail.len())
}
