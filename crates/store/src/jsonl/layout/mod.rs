//! Where everything is: names and paths, no file operation.

#[cfg(test)]
mod tests;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use turnkeep_log::{SessionHeader, SessionId};

pub(crate) use crate::segment::{decode_id, encode_id, project_key};

/// The lock file of a session directory.
const LOCK: &str = "session.lock";

/// Where deleted sessions wait; deeper than any reader looks for one.
const TRASH: &str = ".turnkeep-trash";

/// How the text of a log is stored. A root holds logs of one encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// As Zstandard frames, one for the header and one for each append: `session.jsonl.zstd`.
    Zstd,
    /// As it is: `session.jsonl`.
    None,
}

impl Encoding {
    /// The name of a log.
    pub(crate) fn log_name(self) -> &'static str {
        match self {
            Self::Zstd => "session.jsonl.zstd",
            Self::None => "session.jsonl",
        }
    }

    /// The setting that asks for it.
    pub(crate) fn setting(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::None => "none",
        }
    }

    /// The other one.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Zstd => Self::None,
            Self::None => Self::Zstd,
        }
    }
}

/// The tree of one root.
///
/// ```text
/// <root>/                                  0700
///   --<project key>--/                     0700   or `_no-cwd`
///     <encoded session id>/                0700
///       session.jsonl.zstd                 0600   encoding zstd
///       session.jsonl                      0600   encoding none
///       session.jsonl[.zstd].<12 hex>.tmp  0600   a log being made
///       session.lock                       0600   empty, never removed
///       turnkeep.cut-<offset>              0600   what a repair cut off
///       turnkeep.idx                       0600   an index of the log, made again when missing
///       session.vN.jsonl[.zstd]                   a newer format, N ≥ 1; never ours
///   .turnkeep-trash/<unix ms>/<project>/<session>/
/// ```
///
/// The project directory is for people: its name is made from the session's working directory and
/// may be shared by several. The session directory is for programs: its name is the session's id,
/// spelled so that no two ids share one. Nothing is ever put directly into the root or a project
/// directory, since older readers take a log they find there for one of an obsolete layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The tree below an absolute path.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The project directory of sessions that work in this directory.
    pub(crate) fn project_dir(&self, cwd: Option<&str>) -> PathBuf {
        self.root.join(project_key(cwd))
    }

    /// The directory that a session of this header belongs into.
    pub(crate) fn session_dir(&self, header: &SessionHeader) -> SessionDir {
        SessionDir(self.project_dir(header.cwd.as_deref()).join(encode_id(&header.id)))
    }

    /// The directory that a session of this id has inside a project directory.
    pub(crate) fn session_dir_in(&self, project: &OsStr, id: &SessionId) -> SessionDir {
        SessionDir(self.root.join(project).join(encode_id(id)))
    }

    /// Where deleted sessions wait.
    pub(crate) fn trash(&self) -> PathBuf {
        self.root.join(TRASH)
    }

    /// Whether a directory of the root may hold sessions.
    pub(crate) fn is_project(name: &OsStr) -> bool {
        name != TRASH
    }
}

/// One session's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionDir(PathBuf);

impl SessionDir {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn log(&self, encoding: Encoding) -> PathBuf {
        self.0.join(encoding.log_name())
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join(LOCK)
    }

    /// A name for a log while it is being made. `token` tells attempts apart.
    pub(crate) fn temporary(&self, encoding: Encoding, token: u64) -> PathBuf {
        self.0.join(format!("{}.{:012x}.tmp", encoding.log_name(), token & 0xffff_ffff_ffff))
    }

    /// The directory that a log is in.
    pub(crate) fn of_log(log: &Path) -> Option<Self> {
        log.parent().map(|dir| Self(dir.to_owned()))
    }

    /// The index of the log, which may be missing.
    pub(crate) fn index(&self) -> PathBuf {
        self.0.join("turnkeep.idx")
    }

    /// An index while it is being made.
    pub(crate) fn index_being_made(&self) -> PathBuf {
        self.0.join("turnkeep.idx.tmp")
    }

    /// Where what was cut off at this offset is kept; `attempt` 0 is the plain name, others are
    /// for cuts at an offset where there has been one before.
    pub(crate) fn cut(&self, offset: u64, attempt: u32) -> PathBuf {
        match attempt {
            0 => self.0.join(format!("turnkeep.cut-{offset}")),
            more => self.0.join(format!("turnkeep.cut-{offset}.{more}")),
        }
    }
}

/// What a file in a session directory is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Artifact {
    /// A log of the format that this store reads.
    Log(Encoding),
    /// A log of a later format.
    Newer(u64),
}

impl Artifact {
    /// `None` for a file that is no log.
    pub(crate) fn of(name: &OsStr) -> Option<Self> {
        let name = name.to_str()?;
        if let Some(encoding) = [Encoding::Zstd, Encoding::None]
            .into_iter()
            .find(|encoding| encoding.log_name() == name)
        {
            return Some(Self::Log(encoding));
        }
        let rest = name.strip_prefix("session.v")?;
        let digits = rest.strip_suffix(".jsonl.zstd").or_else(|| rest.strip_suffix(".jsonl"))?;
        let canonical =
            !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
        // A number too large for us is a later format all the same.
        (canonical && !digits.is_empty()).then(|| Self::Newer(digits.parse().unwrap_or(u64::MAX)))
    }
}

/// The session that a file in a project directory would be in the layout before version 0, which
/// had no session directories.
pub(crate) fn flat_log_id(name: &OsStr) -> Option<&str> {
    let name = name.to_str()?;
    name.strip_suffix(".jsonl.zstd").or_else(|| name.strip_suffix(".jsonl"))
}

/// The names that a log of this id has in the layout before version 0.
pub(crate) fn flat_log_names(id: &SessionId) -> [String; 2] {
    let segment = encode_id(id);
    [format!("{segment}.jsonl.zstd"), format!("{segment}.jsonl")]
}
