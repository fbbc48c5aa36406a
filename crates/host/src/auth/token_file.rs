//! The file of API tokens: who has been given one, and what for.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    file::{self, Stamp},
    password::WRITABLE_BY_OTHERS,
    scope::Scope,
    secret::{Digest, Secret},
};

/// What every token starts with, so that scanners for leaked secrets know one.
pub(super) const PREFIX: &str = "tk_";

/// The version of the file that is written and read.
const VERSION: u32 = 1;

/// How long a name may be, in characters.
const MAX_NAME: usize = 64;

/// A token as the file knows it: everything but the token itself, which nobody can get back.
#[derive(Clone, Debug)]
pub struct ApiToken {
    /// What it was called by whoever made it.
    pub name: String,
    /// What it allows.
    pub scope: Scope,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
    /// When it ends by itself, if it does.
    pub expires_at: Option<i64>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<i64>,
    pub(super) digest: Digest,
}

/// Whether a token lets anyone in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenState {
    /// It does.
    Live,
    /// Its time is over.
    Expired,
    /// It was revoked.
    Revoked,
}

/// A file of API tokens. One that is not there yet holds none.
///
/// It is JSON, replaced whole by every change under a lock beside it, so that two commands at a
/// time lose nothing and a reader never sees half of it:
///
/// ```json
/// {"version":1,"tokens":[{"name":"ci","scope":"read","sha256":"…","created":1700000000000,
///   "expires":null,"revoked":null}]}
/// ```
///
/// Of a token, 256 random bits behind `tk_`, only the SHA-256 is kept: nothing slower is needed
/// where there is nothing to guess.
#[derive(Clone, Debug)]
pub struct TokenFile {
    path: PathBuf,
}

/// Why the file of tokens is of no use, or does not take a change.
#[derive(Debug, Error)]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("cannot read the token file {}: {source}", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It cannot be written. What it held it still holds.
    #[error("cannot write the token file {}: {source}", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Others could let themselves in.
    #[error(
        "the token file {0} may be written by others than its owner (mode {1:04o}); \
         `chmod 600 {0}`",
        .file.display(), .mode
    )]
    Mode {
        /// The file.
        file: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It holds something else than tokens.
    #[error("{} is no token file: {problem}", .file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A name that a token cannot have.
    #[error("a token's name has 1 to {MAX_NAME} characters, none of them a control character")]
    Name,
    /// There is a live token of that name.
    #[error(
        "there is a token `{name}`; revoke it with `turnkeep token revoke {name}`, or choose \
         another name"
    )]
    Exists {
        /// The name.
        name: String,
    },
    /// There is no token of that name to revoke.
    #[error("there is no token `{name}` to revoke; `turnkeep token ls` lists them")]
    NoSuchToken {
        /// The name.
        name: String,
    },
    /// There is nothing to make a token of.
    #[error("the system gives no random numbers: {0}")]
    Random(#[source] getrandom::Error),
}

impl TokenFileError {
    /// The stable word for what went wrong, as in [`kinds`](crate::kinds).
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::Write { .. } | Self::Random(_) => "io",
            Self::Mode { .. } | Self::Malformed { .. } | Self::Name => "usage",
            Self::Exists { .. } => "token_exists",
            Self::NoSuchToken { .. } => "no_such_token",
        }
    }
}

#[derive(Debug, Deserialize, Serialize)]
struct Stored {
    version: u32,
    tokens: Vec<StoredToken>,
}

#[derive(Debug, Deserialize, Serialize)]
struct StoredToken {
    name: String,
    scope: String,
    sha256: String,
    created: i64,
    expires: Option<i64>,
    revoked: Option<i64>,
}

impl ApiToken {
    /// Whether it lets anyone in at a time, in milliseconds since 1970.
    #[must_use]
    pub fn state(&self, now: i64) -> TokenState {
        match (self.revoked_at, self.expires_at) {
            (Some(_), _) => TokenState::Revoked,
            (None, Some(end)) if end <= now => TokenState::Expired,
            _ => TokenState::Live,
        }
    }
}

impl TokenState {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl TokenFile {
    /// The file at this path, whether it exists or not.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Every token, the oldest first, those that have ended included.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is open to others, or holds something else.
    pub fn list(&self) -> Result<Vec<ApiToken>, TokenFileError> {
        Ok(self.read()?.0)
    }

    /// Makes a token, which is returned this once. One of the same name that has ended is forgotten.
    ///
    /// # Errors
    ///
    /// A live token of that name, a name that cannot be, or a file that does not take it.
    pub fn create(
        &self,
        name: &str,
        scope: Scope,
        expires_at: Option<i64>,
    ) -> Result<Secret, TokenFileError> {
        let length = name.chars().count();
        if length == 0 || length > MAX_NAME || name.chars().any(char::is_control) {
            return Err(TokenFileError::Name);
        }
        let _lock = self.lock()?;
        let mut tokens = self.list()?;
        let now = now();
        let has_name = |token: &ApiToken| token.name == name;
        if tokens.iter().any(|token| has_name(token) && token.state(now) == TokenState::Live) {
            return Err(TokenFileError::Exists { name: name.to_owned() });
        }
        tokens.retain(|token| !has_name(token));
        let secret = Secret::random(PREFIX).map_err(TokenFileError::Random)?;
        tokens.push(ApiToken {
            name: name.to_owned(),
            scope,
            created_at: now,
            expires_at,
            revoked_at: None,
            digest: secret.digest(),
        });
        self.write(&tokens)?;
        Ok(secret)
    }

    /// Ends a token. It stays in the list as revoked.
    ///
    /// # Errors
    ///
    /// No token of that name that is not revoked yet, or a file that does not take it.
    pub fn revoke(&self, name: &str) -> Result<(), TokenFileError> {
        let _lock = self.lock()?;
        let mut tokens = self.list()?;
        let found =
            tokens.iter_mut().find(|token| token.name == name && token.revoked_at.is_none());
        let Some(token) = found else {
            return Err(TokenFileError::NoSuchToken { name: name.to_owned() });
        };
        token.revoked_at = Some(now());
        self.write(&tokens)
    }

    /// The tokens, and what to tell by whether they have changed.
    pub(super) fn read(&self) -> Result<(Vec<ApiToken>, Option<Stamp>), TokenFileError> {
        let file = || self.path.clone();
        let file::Read { text, mode, stamp } = match file::read(&self.path) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), None)),
            Err(source) => return Err(TokenFileError::Read { file: file(), source }),
        };
        if mode & WRITABLE_BY_OTHERS != 0 {
            return Err(TokenFileError::Mode { file: file(), mode });
        }
        let tokens = parse(&text);
        let tokens =
            tokens.map_err(|problem| TokenFileError::Malformed { file: file(), problem })?;
        Ok((tokens, Some(stamp)))
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(suffix);
        name.into()
    }

    /// Keeps other commands out until it is dropped.
    fn lock(&self) -> Result<File, TokenFileError> {
        let locked = || {
            if let Some(folder) = self.folder() {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            let lock = private().create(true).truncate(false).open(self.beside(".lock"))?;
            lock.lock()?;
            Ok(lock)
        };
        locked().map_err(|source| TokenFileError::Write { file: self.path.clone(), source })
    }

    /// Puts a whole new file in the place of the old one.
    fn write(&self, tokens: &[ApiToken]) -> Result<(), TokenFileError> {
        let stored = Stored { version: VERSION, tokens: tokens.iter().map(stored).collect() };
        let written = || {
            let text = serde_json::to_string_pretty(&stored)?;
            let next = self.beside(".new");
            // Whoever was stopped here before has left one.
            let mut file = private().create(true).truncate(true).open(&next)?;
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&next, &self.path)?;
            File::open(self.folder().unwrap_or(Path::new(".")))?.sync_all()
        };
        written().map_err(|source| TokenFileError::Write { file: self.path.clone(), source })
    }

    fn folder(&self) -> Option<&Path> {
        self.path.parent().filter(|folder| !folder.as_os_str().is_empty())
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

fn parse(text: &str) -> Result<Vec<ApiToken>, String> {
    // What serde_json says repeats a part of the text when a value is of the wrong type.
    let stored: Stored = serde_json::from_str(text)
        .map_err(|error| format!("line {} is not as it should be", error.line().max(1)))?;
    if stored.version != VERSION {
        return Err(format!("it is of version {}, not {VERSION}", stored.version));
    }
    let tokens = stored.tokens.into_iter().enumerate().map(|(at, token)| {
        let scope = token.scope.parse().map_err(|error| format!("token {}: {error}", at + 1))?;
        let digest = Digest::from_hex(&token.sha256)
            .ok_or_else(|| format!("token {} has no SHA-256 of 64 digits", at + 1))?;
        Ok(ApiToken {
            name: token.name,
            scope,
            created_at: token.created,
            expires_at: token.expires,
            revoked_at: token.revoked,
            digest,
        })
    });
    tokens.collect()
}

fn stored(token: &ApiToken) -> StoredToken {
    StoredToken {
        name: token.name.clone(),
        scope: token.scope.as_str().to_owned(),
        sha256: token.digest.to_hex(),
        created: token.created_at,
        expires: token.expires_at,
        revoked: token.revoked_at,
    }
}

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "token_file_tests.rs"]
mod tests;
