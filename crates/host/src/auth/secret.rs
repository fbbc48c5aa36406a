//! Text that must not get out, and what is kept instead of it.

use std::fmt::{self, Write as _};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Text that must not get out: a password, a token, the id of a login.
///
/// It neither prints itself nor compares itself, since a comparison that ends at the first
/// difference tells by its time how much of a guess was right:
///
/// ```compile_fail,E0369
/// fn same(one: turnkeep_host::Secret, other: turnkeep_host::Secret) -> bool {
///     one == other
/// }
/// ```
///
/// ```compile_fail,E0277
/// fn shown(secret: turnkeep_host::Secret) -> String {
///     format!("{secret}")
/// }
/// ```
///
/// ```
/// let secret = turnkeep_host::Secret::new("hunter2".to_owned());
/// assert_eq!(format!("{secret:?}"), "Secret");
/// assert_eq!(secret.reveal(), "hunter2");
/// ```
#[derive(Clone)]
pub struct Secret(String);

/// The SHA-256 of a [`Secret`] of 256 random bits, which is as good as the secret to know it again
/// by, and of no use to whoever steals it. Compared in constant time only.
#[derive(Clone, Copy)]
pub(crate) struct Digest([u8; 32]);

impl Secret {
    /// Keeps a text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// 256 random bits as 43 characters of base64url, behind a prefix that says what it is.
    pub(crate) fn random(prefix: &str) -> Result<Self, getrandom::Error> {
        let mut bits = [0; 32];
        getrandom::fill(&mut bits)?;
        Ok(Self(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bits))))
    }

    /// The text, for the one place that it is meant for.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest(Sha256::digest(self.0.as_bytes()).into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret")
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Digest")
    }
}

impl Digest {
    /// Whether this is the same, found out in a time that does not depend on it.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// As files have it: 64 digits of lower-case hex.
    pub(super) fn to_hex(self) -> String {
        self.0.iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    pub(super) fn from_hex(hex: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if hex.len() != 64 || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
