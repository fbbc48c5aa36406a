//! The password: one line of a file, as it is or hashed.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use argon2::{
    Argon2, PasswordHash, PasswordHasher as _, PasswordVerifier as _,
    password_hash::{PasswordHashString, SaltString},
};
use thiserror::Error;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use super::{file, secret::Secret};

/// How many passwords are looked at together: each costs a core for a while, and 19 MiB.
const AT_A_TIME: usize = 2;

/// How long a password waits for its turn.
const TURN: Duration = Duration::from_secs(5);

/// Others may not read it.
const READABLE_BY_OTHERS: u32 = 0o077;

/// Others may not put another one in its place.
pub(super) const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The most memory that looking at a password may take, in KiB.
const MAX_MEMORY_KIB: u32 = 1 << 20;

/// The most memory that may be gone over in all its passes, in KiB: some seconds of a core. A file
/// with more would have its owner wait for a login that does not come.
const MAX_WORK_KIB: u64 = 1 << 22;

/// The longest password, in bytes. A login has to hold it, however it is escaped there.
const MAX_BYTES: usize = 512;

/// A shorter line is no hash, however it begins.
const MIN_OTHER_HASH: usize = 24;

/// How hashes of other kinds begin that people keep in such files.
const OTHER_HASHES: [&str; 12] = [
    "$1$", "$2a$", "$2b$", "$2x$", "$2y$", "$5$", "$6$", "$7$", "$y$", "$gy$", "$scrypt$",
    "$pbkdf2",
];

/// Why there is no password.
#[derive(Debug, Error)]
pub enum PasswordError {
    /// The file cannot be read.
    #[error("cannot read the password file {}: {source}", .file.display())]
    Read {
        /// The file named.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file is open to others.
    #[error(
        "the password file {0} may be {1} by others than its owner (mode {2:04o}); \
         `chmod 600 {0}`",
        .file.display(), .access, .mode
    )]
    Mode {
        /// The file named.
        file: PathBuf,
        /// `read` or `written`.
        access: &'static str,
        /// Its permissions.
        mode: u32,
    },
    /// The first line is empty.
    #[error("the password file {} has no password in its first line", .file.display())]
    Empty {
        /// The file named.
        file: PathBuf,
    },
    /// The first line is longer than a login may be.
    #[error(
        "the password in the first line of the file {} has more than {MAX_BYTES} bytes, which no \
         login can hold",
        .file.display()
    )]
    Long {
        /// The file named.
        file: PathBuf,
    },
    /// The first line looks like a hash, and is none that can be worked with.
    #[error(
        "the first line of the password file {} is no argon2id hash that can be used: {problem}; \
         `argon2` or `mkpasswd` makes one, or write the password itself",
        .file.display()
    )]
    Hash {
        /// The file named.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// There is nothing to make a salt of.
    #[error("the system gives no random numbers: {0}")]
    Random(#[source] getrandom::Error),
}

/// What a password is compared with, and by what right it takes the machine's time.
#[derive(Debug)]
pub(crate) struct Password {
    hash: PasswordHashString,
    turns: Semaphore,
}

/// Nobody got round to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

impl Password {
    /// Reads the first line of a file. A password that stands there as it is gets hashed at once:
    /// what is in memory afterwards is the same either way, and so is the time that a wrong one
    /// takes.
    pub(crate) fn read(path: &Path) -> Result<Self, PasswordError> {
        let file = || path.to_owned();
        let file::Read { text, mode, .. } =
            file::read(path).map_err(|source| PasswordError::Read { file: file(), source })?;
        // Some editors begin a file with a mark that nobody types.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let line = text.lines().next().unwrap_or_default();
        let is_hash = is_hash(line);
        let (forbidden, access) =
            if is_hash { (WRITABLE_BY_OTHERS, "written") } else { (READABLE_BY_OTHERS, "read") };
        if mode & forbidden != 0 {
            return Err(PasswordError::Mode { file: file(), access, mode });
        }
        if line.is_empty() {
            return Err(PasswordError::Empty { file: file() });
        }
        if !is_hash && line.len() > MAX_BYTES {
            return Err(PasswordError::Long { file: file() });
        }
        let hash = if is_hash {
            usable(line.trim_end())
        } else {
            let salt = salt().map_err(PasswordError::Random)?;
            let hashed = salt.and_then(|salt| {
                Argon2::default().hash_password(line.as_bytes(), &salt).map(|hash| hash.serialize())
            });
            hashed.map_err(|error| error.to_string())
        };
        let hash = hash.map_err(|problem| PasswordError::Hash { file: file(), problem })?;
        Ok(Self { hash, turns: Semaphore::new(AT_A_TIME) })
    }

    /// Whether this is the password, found out away from the tasks that serve others.
    pub(crate) async fn is(&self, guess: Secret) -> Result<bool, Busy> {
        let turn = timeout_at(Instant::now() + TURN, self.turns.acquire()).await;
        let _turn = turn.map_err(|_| Busy)?.map_err(|_| Busy)?;
        let hash = self.hash.clone();
        let looking = tokio::task::spawn_blocking(move || {
            Argon2::default().verify_password(guess.reveal().as_bytes(), &hash.password_hash())
        });
        Ok(matches!(looking.await, Ok(Ok(()))))
    }
}

/// Whether a line is a hash, of whichever kind. One that is of no use must not be taken for the
/// password: whoever knows the hash would be let in, and whoever knows the password would not.
fn is_hash(line: &str) -> bool {
    let is_other = || OTHER_HASHES.iter().any(|kind| line.starts_with(kind));
    line.starts_with("$argon2") || line.len() >= MIN_OTHER_HASH && is_other()
}

/// A hash whose cost is in bounds.
fn usable(line: &str) -> Result<PasswordHashString, String> {
    if !line.starts_with("$argon2") {
        return Err("it is of another kind".to_owned());
    }
    let hash = PasswordHash::new(line).map_err(|error| error.to_string())?;
    if hash.algorithm.as_str() != "argon2id" {
        return Err(format!("it is of the kind {}", hash.algorithm));
    }
    let params = argon2::Params::try_from(&hash).map_err(|error| error.to_string())?;
    if params.m_cost() > MAX_MEMORY_KIB {
        return Err("it takes more than 1 GiB of memory".to_owned());
    }
    if u64::from(params.m_cost()) * u64::from(params.t_cost()) > MAX_WORK_KIB {
        return Err("it takes too long: more than 4 GiB of memory over all its passes".to_owned());
    }
    if hash.salt.is_none() || hash.hash.is_none() {
        return Err("it is cut short".to_owned());
    }
    Ok(hash.serialize())
}

fn salt() -> Result<Result<SaltString, argon2::password_hash::Error>, getrandom::Error> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits)?;
    Ok(SaltString::encode_b64(&bits))
}

#[cfg(test)]
#[path = "password_tests.rs"]
mod tests;
