//! The keys that continuations are signed with.

use std::fmt;

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The least length of a key, in bytes: that of what it signs with.
pub const MIN_KEY_BYTES: usize = 32;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The keys of a host: the first one signs, and what any of them signed is believed.
///
/// One random key per process is enough for a host by itself: its continuations end with it. Keys
/// from a file let them survive a restart and be taken up by another host, and a new key in front
/// of the old one replaces that without breaking a round under way.
#[derive(Clone)]
pub struct KeyRing {
    signing: Hmac<Sha256>,
    older: Vec<Hmac<Sha256>>,
}

/// Why there are no keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRingError {
    /// There is no key at all.
    #[error("no key, write one base64 key a line, such as `openssl rand -base64 32` prints")]
    NoKey,
    /// A line is not base64.
    #[error("line {line} is no base64, write one base64 key a line")]
    NotBase64 {
        /// The line, from 1.
        line: usize,
    },
    /// A key is shorter than [`MIN_KEY_BYTES`].
    #[error("the key in line {line} is shorter than {MIN_KEY_BYTES} bytes, take a longer one")]
    TooShort {
        /// The line, from 1.
        line: usize,
    },
}

impl KeyRing {
    /// The ring of one key, at least [`MIN_KEY_BYTES`] long.
    ///
    /// # Errors
    ///
    /// [`KeyRingError::TooShort`].
    pub fn new(key: &[u8]) -> Result<Self, KeyRingError> {
        Ok(Self { signing: keyed(key, 1)?, older: Vec::new() })
    }

    /// Reads a file of keys: one a line, in base64 of either alphabet, padded or not; blank lines
    /// do not count.
    ///
    /// # Errors
    ///
    /// [`KeyRingError`], naming the line.
    pub fn parse(text: &str) -> Result<Self, KeyRingError> {
        let lines = text.lines().zip(1..).map(|(text, line)| (text.trim(), line));
        let mut keys = lines.filter(|(text, _)| !text.is_empty()).map(|(text, line)| {
            let text = text.replace('-', "+").replace('_', "/");
            let key = BASE64.decode(text).map_err(|_| KeyRingError::NotBase64 { line })?;
            keyed(&key, line)
        });
        let signing = keys.next().ok_or(KeyRingError::NoKey)??;
        Ok(Self { signing, older: keys.collect::<Result<_, _>>()? })
    }

    pub(super) fn sign(&self, text: &str) -> impl AsRef<[u8]> + use<> {
        let mut mac = self.signing.clone();
        mac.update(text.as_bytes());
        mac.finalize().into_bytes()
    }

    /// Whether one of the keys made `mac` of `text`. How long that takes tells nothing about how
    /// much of `mac` is right.
    pub(super) fn has_signed(&self, text: &str, mac: &[u8]) -> bool {
        let mut keys = std::iter::once(&self.signing).chain(&self.older);
        keys.any(|key| key.clone().chain_update(text.as_bytes()).verify_slice(mac).is_ok())
    }
}

impl fmt::Debug for KeyRing {
    /// Says how many keys there are, and nothing about them.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("KeyRing").field("keys", &(self.older.len() + 1)).finish_non_exhaustive()
    }
}

fn keyed(key: &[u8], line: usize) -> Result<Hmac<Sha256>, KeyRingError> {
    let too_short = KeyRingError::TooShort { line };
    if key.len() < MIN_KEY_BYTES {
        return Err(too_short);
    }
    Hmac::new_from_slice(key).map_err(|_| too_short)
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
