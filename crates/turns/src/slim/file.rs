//! File parts: what is attached, how big it is, and not a byte of it.

use turnkeep_log::json::{Json, write_number};

use super::{data_url::DataUrl, image};
use crate::object::ObjectWriter;

/// What a slim file part keeps, besides the ids every part has.
#[derive(Clone, Copy, Default)]
pub(super) struct FileFields<'a> {
    pub(super) mime: Option<Json<'a>>,
    pub(super) filename: Option<Json<'a>>,
    pub(super) url: Option<Json<'a>>,
    /// The sizes the part itself states.
    pub(super) own: Sizes<'a>,
    /// The sizes its metadata states, for what the part itself does not.
    pub(super) stored: Sizes<'a>,
}

/// Sizes as they are stated.
#[derive(Clone, Copy, Default)]
pub(super) struct Sizes<'a> {
    pub(super) size: Option<Json<'a>>,
    pub(super) byte_size: Option<Json<'a>>,
    pub(super) width: Option<Json<'a>>,
    pub(super) height: Option<Json<'a>>,
}

impl<'a> Sizes<'a> {
    /// Where the value of a key that states a size belongs.
    pub(super) fn slot(&mut self, key: &str) -> Option<&mut Option<Json<'a>>> {
        Some(match key {
            "size" => &mut self.size,
            "byteSize" => &mut self.byte_size,
            "width" => &mut self.width,
            "height" => &mut self.height,
            _ => return None,
        })
    }
}

impl FileFields<'_> {
    /// Writes `mime`, `filename`, `size`, `byteSize`, `width` and `height`, each if it is known.
    ///
    /// `byteSize` is what a data URL decodes to, never the length of its text; other URLs say
    /// nothing. A stated width or height wins over the one in the image's header.
    pub(super) fn write(&self, object: &mut ObjectWriter<'_>) {
        let (own, stored) = (self.own, self.stored);
        let data = self.url.and_then(Json::as_str).and_then(DataUrl::parse);
        let size = length(own.size, stored.size);
        let byte_size = match data {
            #[expect(clippy::cast_precision_loss, reason = "no text is 2^53 bytes long")]
            Some(data) => Some(data.byte_len() as f64),
            None => length(own.byte_size, stored.byte_size),
        };
        let mut width = side(own.width, stored.width);
        let mut height = side(own.height, stored.height);
        if width.is_none() || height.is_none() {
            let image = data.and_then(|data| image::dimensions(data.byte_len(), data.bytes()));
            width = width.or(image.map(|image| image.width.into()));
            height = height.or(image.map(|image| image.height.into()));
        }

        let is_string = |value: &Json<'_>| value.as_str().is_some();
        object.copy("mime", self.mime.filter(is_string));
        object.copy("filename", self.filename.filter(is_string));
        let numbers =
            [("size", size), ("byteSize", byte_size), ("width", width), ("height", height)];
        for (key, number) in numbers {
            if let Some(number) = number {
                write_number(object.key(key), number);
            }
        }
    }
}

/// The first of two values that states a length.
fn length(own: Option<Json<'_>>, stored: Option<Json<'_>>) -> Option<f64> {
    [own, stored].into_iter().flatten().filter_map(integer).find(|&length| length >= 0.0)
}

/// The first of two values that states the side of an image.
fn side(own: Option<Json<'_>>, stored: Option<Json<'_>>) -> Option<f64> {
    [own, stored].into_iter().flatten().filter_map(integer).find(|&side| side > 0.0)
}

/// An integer, or a string of nothing but digits.
fn integer(value: Json<'_>) -> Option<f64> {
    let number: f64 = match value.as_str() {
        None => value.as_f64()?,
        Some(string) => {
            let digits = string.decode()?;
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse().ok()).flatten()?
        }
    };
    (number.is_finite() && number.fract() == 0.0).then_some(number)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
