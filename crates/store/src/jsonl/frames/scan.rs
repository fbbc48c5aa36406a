//! Where a frame ends, from its headers alone.

/// What every frame starts with.
pub(crate) const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// How many bytes of checksum a frame ends with, if it has one.
pub(crate) const CHECKSUM: usize = 4;

/// The empty block that a frame begins with which was written behind bytes that were not synced yet.
///
/// Such a frame proves nothing about what lies before it. After a power cut it may be there, and
/// they may not; any other frame is only written when all before it is on disk. To who unpacks it
/// the block means nothing, and no encoder begins a frame with one.
pub(crate) const HITCH: [u8; 3] = [0, 0, 0];

/// The most that one compressed block unpacks to.
const LARGEST_BLOCK: usize = 128 << 10;

/// What a run of bytes starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameScan {
    /// A frame that ends within the bytes. Its content has not been looked at.
    Complete(Frame),
    /// A frame that the bytes end inside of.
    Incomplete,
    /// No frame, and why.
    Invalid(&'static str),
}

/// A complete frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// How many bytes it takes.
    pub(crate) len: usize,
    /// How many bytes it unpacks to at most.
    pub(crate) unpacked: usize,
    /// Whether it ends with a checksum.
    pub(crate) checksum: bool,
    /// Whether it says that it was written behind bytes that were not synced yet: see [`HITCH`].
    pub(crate) hitched: bool,
}

/// Finds the end of the frame that `bytes` starts with.
///
/// A frame is laid out as follows (RFC 8878, section 3.1.1), all numbers little-endian:
///
/// | bytes | what |
/// |---|---|
/// | 4 | magic |
/// | 1 | descriptor: content-size flag (bits 6–7), single segment (5), reserved (3), checksum (2), dictionary-id flag (0–1) |
/// | 0–1 | window descriptor, unless single segment |
/// | 0, 1, 2, 4 | dictionary id |
/// | 0, 1, 2, 4, 8 | content size |
/// | n × (3 + size) | blocks: last (bit 0), type (1–2), size (3–23), then that many bytes, or one for a run |
/// | 0, 4 | checksum |
///
/// Bit 4 of the descriptor, which the RFC leaves unused, must be zero as well: the readers this
/// format is shared with refuse it.
pub(crate) fn scan_frame(bytes: &[u8]) -> FrameScan {
    let mut blocks = usize::MAX;
    scan_frame_within(bytes, &mut blocks).unwrap_or(FrameScan::Incomplete)
}

/// The same, looking at no more than so many blocks, which are counted down; `None` when that was
/// too few to tell. A block may take three bytes, so that a scan of foreign bytes can be long.
pub(crate) fn scan_frame_within(bytes: &[u8], blocks: &mut usize) -> Option<FrameScan> {
    let mut rest = Cursor { bytes, at: 0 };
    match rest.header() {
        Ok(checksum) => rest.blocks(checksum, blocks),
        Err(ended) => Some(ended),
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], FrameScan> {
        let end = self.at.checked_add(count).ok_or(FrameScan::Incomplete)?;
        let taken = self.bytes.get(self.at..end).ok_or(FrameScan::Incomplete)?;
        self.at = end;
        Ok(taken)
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn byte(&mut self) -> Result<u8, FrameScan> {
        self.take(1).map(|taken| taken.first().copied().unwrap_or_default())
    }

    /// Reads up to the first block; whether a checksum follows the last one.
    fn header(&mut self) -> Result<bool, FrameScan> {
        if self.take(4)? != MAGIC {
            return Err(FrameScan::Invalid("invalid frame magic"));
        }
        let descriptor = self.byte()?;
        if descriptor & 0b1_1000 != 0 {
            return Err(FrameScan::Invalid("reserved frame-header bit"));
        }
        let single_segment = descriptor & 0b10_0000 != 0;
        let window = usize::from(!single_segment);
        let dictionary = match descriptor & 0b11 {
            0 => 0,
            1 => 1,
            2 => 2,
            _ => 4,
        };
        let content_size = match descriptor >> 6 {
            0 => usize::from(single_segment),
            1 => 2,
            2 => 4,
            _ => 8,
        };
        self.take(window + dictionary + content_size)?;
        Ok(descriptor & 0b100 != 0)
    }

    fn blocks(&mut self, checksum: bool, most: &mut usize) -> Option<FrameScan> {
        let mut unpacked: usize = 0;
        let hitched = self.rest().starts_with(&HITCH);
        loop {
            *most = most.checked_sub(1)?;
            let (last, block) = match self.block() {
                Ok(read) => read,
                Err(ended) => return Some(ended),
            };
            unpacked = unpacked.saturating_add(block);
            if last {
                break;
            }
        }
        if checksum && self.take(CHECKSUM).is_err() {
            return Some(FrameScan::Incomplete);
        }
        Some(FrameScan::Complete(Frame { len: self.at, unpacked, checksum, hitched }))
    }

    /// Reads one block; whether it is the last, and how much it unpacks to at most.
    fn block(&mut self) -> Result<(bool, usize), FrameScan> {
        let header = self.take(3)?;
        let header = header.iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte));
        let (last, kind, size) = (header & 1 == 1, header >> 1 & 0b11, header >> 3);
        let (stored, unpacked) = match kind {
            0 => (size, size),
            1 => (1, size),
            2 => (size, LARGEST_BLOCK),
            _ => return Err(FrameScan::Invalid("reserved block type")),
        };
        self.take(stored)?;
        Ok((last, unpacked))
    }
}
