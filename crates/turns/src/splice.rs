//! Rewriting pieces of a JSON text and leaving the rest of it as it is.

use turnkeep_log::json::Json;

use crate::normalize;

/// A text being copied with some of its pieces replaced, front to back.
///
/// Nothing is copied until the first replacement, so a text that turns out to need none costs
/// nothing.
pub(crate) struct Splice<'a, 'o> {
    text: &'a str,
    out: &'o mut String,
    /// Where in the text the next byte to be copied is; `None` before the first replacement.
    copied: Option<usize>,
}

impl<'a, 'o> Splice<'a, 'o> {
    pub(crate) fn new(text: &'a str, out: &'o mut String) -> Self {
        Self { text, out, copied: None }
    }

    /// Leaves out the bytes from `start` to `end`, and returns where what stands for them goes.
    pub(crate) fn replace(&mut self, start: usize, end: usize) -> &mut String {
        self.skip(start, end)
    }

    /// Returns where what comes in between at this place goes.
    pub(crate) fn insert(&mut self, at: usize) -> &mut String {
        self.skip(at, at)
    }

    fn skip(&mut self, start: usize, end: usize) -> &mut String {
        let copied = self.copied.unwrap_or_default();
        self.out.push_str(self.text.get(copied..start).unwrap_or_default());
        self.copied = Some(end);
        self.out
    }

    /// Copies the rest. When nothing was replaced, appends nothing and says no.
    pub(crate) fn finish(self) -> bool {
        let Some(copied) = self.copied else { return false };
        self.out.push_str(self.text.get(copied..).unwrap_or_default());
        true
    }
}

/// An object to be rewritten repeats a key that the rewriting depends on.
pub(crate) struct RepeatedKey;

/// Rewrites a value in place of itself; appends nothing and says no when there is nothing to
/// rewrite.
///
/// `rewrite` may take for granted that the keys it looks for stand once. Where it finds that they
/// do not, it is run again on the text JavaScript would make of the value, where they do.
pub(crate) fn rewritten(
    value: Json<'_>,
    out: &mut String,
    rewrite: impl Fn(Json<'_>, &mut Splice<'_, '_>) -> Result<(), RepeatedKey>,
) -> bool {
    let length = out.len();
    let mut splice = Splice::new(value.text(), out);
    if rewrite(value, &mut splice).is_ok() {
        return splice.finish();
    }
    out.truncate(length);
    let mut normal = String::new();
    normalize::write(value, &mut normal);
    Json::parse(&normal).is_ok_and(|value| {
        let mut splice = Splice::new(value.text(), out);
        rewrite(value, &mut splice).is_ok() && splice.finish()
    })
}

/// Notes what a key has; an error when it has been met before.
pub(crate) fn set_once<T>(slot: &mut Option<T>, value: T) -> Result<(), RepeatedKey> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(RepeatedKey),
    }
}
