//! The API tokens as requests meet them: looked up in the file as it is now.

use std::sync::{Arc, Mutex, PoisonError};

use super::{
    file::Stamp,
    scope::Scope,
    secret::Digest,
    token_file::{ApiToken, TokenFile, TokenFileError, TokenState, now},
};

/// The tokens of a file, read again whenever it is another one.
#[derive(Debug)]
pub(crate) struct Tokens {
    file: TokenFile,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    from: From,
    tokens: Arc<[ApiToken]>,
    is_complained_of: bool,
}

/// Which file tokens are from.
#[derive(Debug, Default, PartialEq, Eq)]
enum From {
    /// None was read yet, or could be.
    #[default]
    Nowhere,
    /// There was none.
    Missing,
    /// This one.
    File(Stamp),
}

impl From {
    fn file(stamp: Option<Stamp>) -> Self {
        stamp.map_or(Self::Missing, Self::File)
    }
}

/// What a token turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It allows this much.
    Live(Scope),
    /// It did once. Whoever holds it has not guessed it.
    Ended,
    /// Nobody was given it.
    Unknown,
}

impl Tokens {
    pub(crate) fn new(file: TokenFile) -> Self {
        Self { file, held: Mutex::default() }
    }

    /// Whether anybody could get in with a token.
    pub(crate) fn any_live(&self) -> Result<bool, TokenFileError> {
        let now = now();
        Ok(self.file.list()?.iter().any(|token| token.state(now) == TokenState::Live))
    }

    /// Looks a token up. All are compared, so that the time does not tell which it is.
    pub(crate) fn find(&self, digest: &Digest) -> Found {
        let (tokens, now) = (self.current(), now());
        let mut found = Found::Unknown;
        for token in tokens.iter().filter(|token| token.digest.matches(digest)) {
            found = match token.state(now) {
                TokenState::Live => Found::Live(token.scope),
                TokenState::Expired | TokenState::Revoked => Found::Ended,
            };
        }
        found
    }

    /// The tokens of the file as it is. One that cannot be read has none: rather nobody gets in
    /// than somebody whose token was revoked.
    fn current(&self) -> Arc<[ApiToken]> {
        let there = Stamp::of(self.file.path()).map_or(From::Nowhere, From::file);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if there != From::Nowhere && held.from == there {
            return Arc::clone(&held.tokens);
        }
        match self.file.read() {
            Ok((tokens, stamp)) => {
                *held = Held {
                    from: From::file(stamp),
                    tokens: tokens.into(),
                    is_complained_of: false,
                };
            }
            Err(error) => {
                if !held.is_complained_of {
                    let kind = error.kind();
                    tracing::error!(kind, "the token file cannot be used; no token is good");
                }
                *held = Held { is_complained_of: true, ..Held::default() };
            }
        }
        Arc::clone(&held.tokens)
    }
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
