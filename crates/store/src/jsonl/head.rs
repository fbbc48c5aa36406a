//! The first line of a log, read alone.

use turnkeep_log::{HeaderError, SessionHeader, SessionId};

use super::{
    bytes::FileBytes,
    failure::{LogFailure, Subject},
    frames::{DecodeError, Decoder, FrameScan, scan_frame},
    fs::{File, FileStat},
    layout::Encoding,
    root::Root,
};

/// How much is read at once: most headers are far shorter, and a listing reads one a session.
const STEP: usize = 8 << 10;

/// What the first line of a log says.
#[derive(Debug)]
pub(crate) enum Head {
    /// A header.
    Header(SessionHeader),
    /// The header of another format.
    Foreign {
        /// Whether it is a later one.
        newer: bool,
        /// What it means to whoever wants to read the log.
        failure: LogFailure,
    },
    /// The log ends before its first line does.
    Unfinished,
}

impl Head {
    /// Reads the header of an open log, whose size was taken, and nothing behind it.
    pub(crate) fn read(
        root: &Root,
        id: &SessionId,
        subject: Subject<'_>,
        file: &dyn File,
        stat: &FileStat,
    ) -> Result<Self, LogFailure> {
        let mut bytes = FileBytes::new(file, stat.size, STEP);
        let Some(line) = first_line(root, subject, &mut bytes)? else {
            return Ok(Self::Unfinished);
        };
        match SessionHeader::parse(&line, Some(id)) {
            Ok(header) => Ok(Self::Header(header)),
            Err(error @ HeaderError::Unsupported { newer, .. }) => {
                Ok(Self::Foreign { newer, failure: subject.header(&error) })
            }
            Err(error) => Err(subject.header(&error)),
        }
    }

    /// The header, if there is one yet and it is one we read.
    pub(crate) fn header(self) -> Result<Option<SessionHeader>, LogFailure> {
        match self {
            Self::Header(header) => Ok(Some(header)),
            Self::Foreign { failure, .. } => Err(failure),
            Self::Unfinished => Ok(None),
        }
    }
}

fn first_line(
    root: &Root,
    subject: Subject<'_>,
    bytes: &mut FileBytes<'_>,
) -> Result<Option<String>, LogFailure> {
    let mut least = 1;
    loop {
        let cannot_read = |source| subject.io("read", source);
        bytes.fill(0, least).map_err(cannot_read)?;
        let held = bytes.held();
        let found = match root.encoding {
            Encoding::None => memchr::memchr(b'\n', held)
                .and_then(|feed| held.get(..feed))
                .map(|line| String::from_utf8_lossy(line).into_owned()),
            Encoding::Zstd => match scan_frame(held) {
                FrameScan::Incomplete => None,
                FrameScan::Invalid(problem) => {
                    return Err(subject.corrupt(&format!("{problem} at byte 0")));
                }
                FrameScan::Complete(frame) => {
                    let mut decoder = Decoder::new(root.max_frame_bytes).map_err(cannot_read)?;
                    let text = decoder
                        .decode(held, frame)
                        .map_err(|error| decode_failure(root, subject, 0, error))?;
                    Some(header_line(&text, subject)?.to_owned())
                }
            },
        };
        if found.is_some() || bytes.reaches_end() {
            return Ok(found);
        }
        if held.len() as u64 >= root.max_frame_bytes {
            return Err(too_large(root, subject, 0));
        }
        least = held.len() + 1;
    }
}

/// What is said of a log that ends before its first line does.
pub(crate) fn headerless(subject: Subject<'_>, encoding: Encoding) -> LogFailure {
    subject.corrupt(match encoding {
        Encoding::Zstd => "empty or header-less Zstandard session log",
        Encoding::None => "empty or header-less session log",
    })
}

/// The line that the first frame consists of.
pub(crate) fn header_line<'t>(text: &'t str, subject: Subject<'_>) -> Result<&'t str, LogFailure> {
    text.strip_suffix('\n')
        .filter(|line| !line.contains('\n'))
        .ok_or_else(|| subject.corrupt("first frame is not exactly one header line"))
}

/// What it means that a complete frame cannot be unpacked, when nothing more is to be found out.
pub(crate) fn decode_failure(
    root: &Root,
    subject: Subject<'_>,
    offset: u64,
    error: DecodeError,
) -> LogFailure {
    match error {
        DecodeError::Invalid(_) if offset == 0 => subject.corrupt("header frame failed validation"),
        DecodeError::Invalid(_) => subject.corrupt(&frame_failed(offset)),
        DecodeError::TooLarge => too_large(root, subject, offset),
        DecodeError::NoMemory => subject.io("unpack", std::io::ErrorKind::OutOfMemory.into()),
    }
}

pub(crate) fn frame_failed(offset: u64) -> String {
    format!("frame at byte {offset} failed validation")
}

fn too_large(root: &Root, subject: Subject<'_>, offset: u64) -> LogFailure {
    subject.unsupported(format!(
        "session \"{}\": the frame at byte {offset} unpacks to more than {} bytes; \
         raise `max_frame_bytes` to read it",
        subject.id, root.max_frame_bytes
    ))
}
