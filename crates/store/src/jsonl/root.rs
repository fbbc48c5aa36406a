//! The root of a store: what every operation needs to know, and the directories.

use std::{
    io,
    path::{Path, PathBuf, absolute},
    sync::{Arc, OnceLock},
};

use turnkeep_log::Vocabulary;

use super::{
    JsonlOptions, discover,
    fs::{EntryKind, FileStat, Fs},
    layout::{Encoding, Layout},
    memo::Memo,
};
use crate::{
    Durability,
    error::{BadRoot, IoFailure, StoreError},
};

/// Permission bits that let someone else in.
pub(crate) const WRITABLE_BY_OTHERS: u32 = 0o022;

/// One root and how its logs are read and written.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) layout: Layout,
    pub(crate) encoding: Encoding,
    pub(crate) max_frame_bytes: u64,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) pack_chunks: bool,
    /// What was read last.
    pub(crate) memo: Memo,
    /// What the rules are by which this store reads logs, once an index wanted to know.
    pub(crate) rules: OnceLock<u64>,
    pub(crate) durability: Durability,
    /// Set once no log of the other encoding was found.
    pub(crate) unmixed: OnceLock<()>,
    /// Set once the directories above the root were synced.
    pub(crate) anchored: OnceLock<()>,
}

impl Root {
    /// Looks at the root, which need not exist, and settles its encoding.
    pub(crate) fn open(options: JsonlOptions, fs: Arc<dyn Fs>) -> Result<Self, StoreError> {
        let path = resolve(options.root)?;
        let found = match look_at(&*fs, &path)? {
            Some(()) if options.compression.detects() => discover::first_encoding(&*fs, &path)
                .map_err(|source| cannot("read", &path, source))?,
            _ => None,
        };
        Ok(Self {
            fs,
            layout: Layout::new(path),
            encoding: options.compression.resolve(found),
            max_frame_bytes: options.max_frame_bytes,
            vocabulary: options.vocabulary,
            pack_chunks: options.pack_chunks,
            memo: Memo::default(),
            rules: OnceLock::new(),
            durability: options.durability,
            unmixed: OnceLock::new(),
            anchored: OnceLock::new(),
        })
    }

    /// Makes a directory below the root, and the root, as far as they are missing, durably.
    pub(crate) fn make_session_dir(&self, session: &Path) -> io::Result<()> {
        let root = self.layout.root();
        self.make_root(root)?;
        let below: Vec<&Path> = session.ancestors().take_while(|path| *path != root).collect();
        for path in below.into_iter().rev() {
            self.make_dir(path)?;
            // Also when it was there: whoever made it may not have come to this.
            self.fs.sync_dir(path.parent().unwrap_or(root))?;
        }
        Ok(())
    }

    /// Makes the way to a session that is there durable. Whoever made it may not have come to that.
    pub(crate) fn sync_session_dir(&self, session: &Path) -> io::Result<()> {
        let root = self.layout.root();
        for path in session.ancestors().take_while(|path| *path != root) {
            self.fs.sync_dir(path)?;
        }
        self.fs.sync_dir(root)?;
        self.anchor(root)
    }

    /// Makes the root's own entry durable, and those of the directories above it, once. Where that
    /// is not for us to do, it was not for us to make them either.
    fn anchor(&self, root: &Path) -> io::Result<()> {
        if self.anchored.get().is_some() {
            return Ok(());
        }
        for path in root.ancestors().skip(1) {
            match self.fs.sync_dir(path) {
                Err(error) if is_none_of_ours(&error) => break,
                synced => synced?,
            }
        }
        self.anchored.get_or_init(|| ());
        Ok(())
    }

    fn make_root(&self, root: &Path) -> io::Result<()> {
        let mut missing = Vec::new();
        let there = 'there: {
            for path in root.ancestors() {
                match self.fs.stat(path) {
                    Ok(stat) => break 'there Some(stat),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(path),
                    Err(error) => return Err(error),
                }
            }
            None
        };
        for path in missing.iter().rev() {
            self.make_dir(path)?;
        }
        self.anchor(root)?;
        let stat = match there {
            Some(stat) if missing.is_empty() => stat,
            _ => self.fs.stat(root)?,
        };
        match unusable(root, &stat) {
            Some(problem) => Err(io::Error::new(io::ErrorKind::PermissionDenied, problem)),
            None => Ok(()),
        }
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        match self.fs.create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }
}

/// Whether a directory may not be opened, or is on a file system that cannot sync it.
fn is_none_of_ours(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::Unsupported
            | io::ErrorKind::ReadOnlyFilesystem
    )
}

fn resolve(root: PathBuf) -> Result<PathBuf, StoreError> {
    absolute(&root).map_err(|error| BadRoot { root, problem: error.to_string() }.into())
}

/// Whether the root is there; an error when it is, and cannot be one.
fn look_at(fs: &dyn Fs, root: &Path) -> Result<Option<()>, StoreError> {
    let stat = match fs.stat(root) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(cannot("look at", root, source)),
    };
    if let Some(problem) = unusable(root, &stat) {
        return Err(BadRoot { root: root.to_owned(), problem }.into());
    }
    fs.read_dir(root).map_err(|source| cannot("read", root, source))?;
    Ok(Some(()))
}

fn unusable(root: &Path, stat: &FileStat) -> Option<String> {
    if stat.kind != EntryKind::Dir {
        return Some(
            "it is not a directory; name a directory, or a path where one can be made".into(),
        );
    }
    (stat.mode & WRITABLE_BY_OTHERS != 0).then(|| {
        let mode = stat.mode;
        let root = root.display();
        format!(
            "others than its owner may write to it (mode {mode:04o}); \
             run `chmod go-w {root}`, or name another directory"
        )
    })
}

fn cannot(doing: &str, root: &Path, source: io::Error) -> StoreError {
    IoFailure { context: format!("cannot {doing} the store's root {}", root.display()), source }
        .into()
}
