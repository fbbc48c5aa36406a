//! Reading an event stream: bytes to blocks, wherever the bytes are split.

/// One block that carries data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The stream's last id, as far as it has named any.
    pub(super) id: Option<String>,
    /// The data, its lines joined.
    pub(super) data: String,
}

/// A reader of one event stream, by the rules of HTML: lines end with CR, LF or both, a block ends
/// with an empty line, and one without data is no event.
#[derive(Debug)]
pub(super) struct Blocks {
    max_bytes: usize,
    /// The line that is not whole yet.
    line: Vec<u8>,
    is_first_line: bool,
    /// A CR has ended the last line; an LF right behind it belongs to it.
    after_cr: bool,
    id: Option<String>,
    data: String,
    has_data: bool,
    /// How long the block is so far.
    bytes: usize,
    /// How long the line is so far, which may be more than is kept of it.
    line_bytes: usize,
    too_large: u64,
}

impl Blocks {
    /// A reader at the start of a stream. A block of more than `max_bytes` is left out.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            line: Vec::new(),
            is_first_line: true,
            after_cr: false,
            id: None,
            data: String::new(),
            has_data: false,
            bytes: 0,
            line_bytes: 0,
            too_large: 0,
        }
    }

    /// How many blocks were left out so far.
    pub(super) fn too_large(&self) -> u64 {
        self.too_large
    }

    /// The stream's last id, as far as it has named any.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Reads on, and hands out the blocks that end in these bytes.
    pub(super) fn read(&mut self, mut bytes: &[u8], mut found: impl FnMut(Block)) {
        if bytes.is_empty() {
            return;
        }
        if self.after_cr {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(at) = memchr::memchr2(b'\r', b'\n', bytes) {
            let (line, rest) = bytes.split_at(at);
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
            self.grow(line);
            let line = std::mem::take(&mut self.line);
            self.end_line(&line, &mut found);
            // The room of a line is used for the next.
            self.line = line;
            self.line.clear();
            self.line.shrink_to(64 << 10);
        }
        self.grow(bytes);
    }

    /// What is too large is not kept.
    fn grow(&mut self, more: &[u8]) {
        self.bytes = self.bytes.saturating_add(more.len());
        self.line_bytes = self.line_bytes.saturating_add(more.len());
        if self.is_too_large() {
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(more);
        }
    }

    fn is_too_large(&self) -> bool {
        self.bytes > self.max_bytes
    }

    fn end_line(&mut self, mut line: &[u8], found: &mut impl FnMut(Block)) {
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        let line_bytes = std::mem::take(&mut self.line_bytes);
        if self.is_too_large() {
            if line_bytes == 0 {
                self.too_large += 1;
                self.end_block();
            }
            return;
        }
        if line.is_empty() {
            let has_data = self.has_data;
            let data = self.end_block();
            if has_data {
                found(Block { id: self.id.clone(), data });
            }
            return;
        }
        let (field, value) = match memchr::memchr(b':', line) {
            // A comment.
            Some(0) => return,
            Some(colon) => {
                let (field, value) = line.split_at(colon);
                let value = value.get(1..).unwrap_or_default();
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(&String::from_utf8_lossy(value));
            }
            b"id" if !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            _ => {}
        }
    }

    fn end_block(&mut self) -> String {
        (self.has_data, self.bytes) = (false, 0);
        std::mem::take(&mut self.data)
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
