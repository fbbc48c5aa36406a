//! A jsonl store on a real directory, and its files.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use tempfile::TempDir;
use turnkeep_store::jsonl::{Compression, Encoding, JsonlOptions, JsonlStore, fs::Fs};

/// The project directory of `/work/proj`.
pub const PROJECT: &str = "--work-proj--";

/// The index beside a log.
pub const INDEX: &str = "turnkeep.idx";

/// A directory that is gone with the test.
pub struct Disk {
    pub dir: TempDir,
    pub encoding: Encoding,
}

pub const BOTH: [Encoding; 2] = [Encoding::Zstd, Encoding::None];

impl Disk {
    pub fn new(encoding: Encoding) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), encoding }
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("sessions")
    }

    pub fn options(&self) -> JsonlOptions {
        JsonlOptions { compression: compression(self.encoding), ..JsonlOptions::new(self.root()) }
    }

    pub fn store(&self) -> JsonlStore {
        JsonlStore::open(self.options()).unwrap()
    }

    pub fn store_on(&self, fs: Arc<dyn Fs>) -> JsonlStore {
        JsonlStore::open_on(self.options(), fs).unwrap()
    }

    pub fn log_name(&self) -> &'static str {
        log_name(self.encoding)
    }

    /// The directory of a session in `/work/proj` whose id needs no escapes.
    pub fn session_dir(&self, session: &str) -> PathBuf {
        self.root().join(PROJECT).join(session)
    }

    pub fn log(&self, session: &str) -> PathBuf {
        self.session_dir(session).join(self.log_name())
    }

    /// Lays a log into the root as it is.
    pub fn lay(&self, session: &str, bytes: &[u8]) {
        lay(&self.log(session), bytes);
    }

    pub fn bytes(&self, session: &str) -> Vec<u8> {
        fs::read(self.log(session)).unwrap()
    }

    /// The names in a session's directory, in order.
    pub fn names(&self, session: &str) -> Vec<String> {
        names(&self.session_dir(session))
    }

    /// Adds bytes to the end of a log, as a writer does that was interrupted.
    pub fn add(&self, session: &str, bytes: &[u8]) {
        let mut log = self.bytes(session);
        log.extend_from_slice(bytes);
        fs::write(self.log(session), log).unwrap();
    }

    /// The text of a log, whatever its encoding.
    pub fn text(&self, session: &str) -> String {
        let bytes = self.bytes(session);
        match self.encoding {
            Encoding::None => String::from_utf8(bytes).unwrap(),
            Encoding::Zstd => unpack(&bytes),
        }
    }

    /// Lines, encoded as one append would encode them.
    pub fn encode(&self, lines: &str) -> Vec<u8> {
        match self.encoding {
            Encoding::None => lines.as_bytes().to_vec(),
            Encoding::Zstd => pack(lines),
        }
    }
}

pub fn compression(encoding: Encoding) -> Compression {
    match encoding {
        Encoding::Zstd => Compression::Zstd,
        Encoding::None => Compression::None,
    }
}

pub fn log_name(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Zstd => "session.jsonl.zstd",
        Encoding::None => "session.jsonl",
    }
}

pub fn lay(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

pub fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Unpacks a log with an implementation of the format that shares nothing with ours.
pub fn unpack(mut bytes: &[u8]) -> String {
    use std::io::Read as _;
    let mut text = Vec::new();
    while !bytes.is_empty() {
        let mut frame = ruzstd::decoding::StreamingDecoder::new(&mut bytes).unwrap();
        frame.read_to_end(&mut text).unwrap();
        assert_eq!(
            frame.decoder.get_checksum_from_data(),
            frame.decoder.get_calculated_checksum(),
            "checksum"
        );
    }
    String::from_utf8(text).unwrap()
}

/// Packs a text into a frame like those of other writers: with a checksum, without a size.
pub fn pack(text: &str) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    context.set_parameter(zstd_safe::CParameter::ChecksumFlag(true)).unwrap();
    context.set_parameter(zstd_safe::CParameter::ContentSizeFlag(false)).unwrap();
    let mut frame = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
    context.compress2(&mut frame, text.as_bytes()).unwrap();
    frame
}
