//! One spelling for all texts that say the same.

use turnkeep_log::json::Json;

use crate::normalize;

/// Appends `value` as JavaScript prints it after parsing it and sorting the keys of every object
/// (`JSON.stringify` after `Object.keys(…).sort()`, level by level). Texts that mean the same come
/// out the same, whatever wrote them.
///
/// Keys are in the order of their UTF-16 code units, except that those which JavaScript takes for
/// array indices come first, by number: no object of its can have them in another order.
///
/// A few dozen bytes are held for each value in the text, which may be two bytes long there. When
/// there are more than `most`, nothing is appended and the answer is `false`.
pub fn write(value: Json<'_>, most: usize, out: &mut String) -> bool {
    normalize::write_sorted(value, most, out)
}

#[cfg(test)]
#[path = "canonical_tests.rs"]
mod tests;
