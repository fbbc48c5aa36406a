//! The images of the made-up sessions: a settings page, drawn in blocks of colour.

use std::{fmt::Write as _, fs, io, io::Write as _, path::Path};

use flate2::{Compression, Crc, write::ZlibEncoder};
use sha2::{Digest as _, Sha256};

/// A PNG, and what a log says of it.
#[derive(Debug)]
pub(crate) struct Picture {
    /// What a person called it.
    pub(crate) name: &'static str,
    /// In pixels.
    pub(crate) width: u32,
    /// In pixels.
    pub(crate) height: u32,
    /// The file.
    pub(crate) png: Vec<u8>,
    digest: String,
}

/// The colours of a theme, as red, green and blue. A pixel is the place of its colour in here.
type Palette = [[u8; 3]; 6];

const GROUND: u8 = 0;
const CARD: u8 = 1;
const RULE: u8 = 2;
const INK: u8 = 3;
const FAINT: u8 = 4;
const ACCENT: u8 = 5;

const LIGHT: Palette = [
    [0xf4, 0xf2, 0xee],
    [0xff, 0xff, 0xff],
    [0xdd, 0xd8, 0xcf],
    [0x2b, 0x2a, 0x28],
    [0xa4, 0x9d, 0x92],
    [0x2f, 0x6f, 0x62],
];
const DARK: Palette = [
    [0x17, 0x18, 0x1a],
    [0x22, 0x24, 0x27],
    [0x3a, 0x3d, 0x42],
    [0xe6, 0xe3, 0xdc],
    [0x7d, 0x80, 0x86],
    [0x6f, 0xc2, 0xae],
];

/// The page on a phone, where its table is too wide.
pub(crate) fn phone() -> io::Result<Picture> {
    Picture::of("settings-phone.png", &page(390, 844, 1, 640), &LIGHT)
}

/// The page as it was meant.
pub(crate) fn design() -> io::Result<Picture> {
    Picture::of("settings-design.png", &page(1280, 800, 1, 1232), &LIGHT)
}

/// The page on a phone in its dark theme, where the table fits.
pub(crate) fn dark() -> io::Result<Picture> {
    Picture::of("settings-dark.png", &page(780, 1688, 2, 342), &DARK)
}

impl Picture {
    fn of(name: &'static str, page: &Canvas, palette: &Palette) -> io::Result<Self> {
        let png = encode(page, palette)?;
        let digest = Sha256::digest(&png).iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        Ok(Self { name, width: page.width, height: page.height, png, digest })
    }

    /// The name that a log has for it.
    pub(crate) fn id(&self) -> String {
        format!("sha256:{}", self.digest)
    }

    /// Writes it to where a host looks for it below this directory.
    pub(crate) fn write_below(&self, attachments: &Path) -> io::Result<()> {
        let bucket = self.digest.get(..2).unwrap_or_default();
        let folder = attachments.join("v1/objects").join(bucket);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(&self.digest), &self.png)
    }
}

/// Pixels, row by row from the top.
struct Canvas {
    width: u32,
    height: u32,
    scale: u32,
    pixels: Vec<u8>,
}

impl Canvas {
    /// Fills a box, as far as it is on the canvas. A unit is as many pixels as the scale says.
    fn fill(&mut self, (left, top): (u32, u32), (width, height): (u32, u32), colour: u8) {
        let pixels = |units: u32| (units * self.scale) as usize;
        let (left, top, width, height) = (pixels(left), pixels(top), pixels(width), pixels(height));
        let rows = self.pixels.chunks_exact_mut(self.width as usize);
        for row in rows.skip(top).take(height) {
            row.iter_mut().skip(left).take(width).for_each(|pixel| *pixel = colour);
        }
    }
}

/// A page of settings: a bar, a few switches, and a table of this width.
fn page(width: u32, height: u32, scale: u32, table: u32) -> Canvas {
    let pixels = vec![GROUND; (width * height) as usize];
    let mut canvas = Canvas { width, height, scale, pixels };
    let across = width / scale;
    canvas.fill((0, 0), (across, 56), CARD);
    canvas.fill((0, 56), (across, 1), RULE);
    canvas.fill((24, 22), (96, 12), INK);
    canvas.fill((across - 48, 18), (24, 20), ACCENT);
    for row in 0..4 {
        let top = 80 + row * 60;
        canvas.fill((24, top), (across - 48, 48), CARD);
        canvas.fill((40, top + 14), (90 + row * 17, 8), INK);
        canvas.fill((40, top + 28), (150 - row * 11, 6), FAINT);
        let colour = if row % 2 == 0 { ACCENT } else { RULE };
        canvas.fill((across - 80, top + 14), (40, 20), colour);
    }
    canvas.fill((24, 336), (120, 10), INK);
    for row in 0..10 {
        let top = 364 + row * 40;
        canvas.fill((24, top), (table, 39), CARD);
        canvas.fill((24, top + 39), (table, 1), RULE);
        for column in 0..4 {
            let left = 40 + column * table / 4;
            let colour = if row == 0 { INK } else { FAINT };
            canvas.fill((left, top + 16), (table / 8 + (row * 7 + column * 5) % 23, 8), colour);
        }
    }
    canvas
}

/// The canvas as a PNG whose pixels are places in a palette.
fn encode(canvas: &Canvas, palette: &Palette) -> io::Result<Vec<u8>> {
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = [canvas.width.to_be_bytes(), canvas.height.to_be_bytes()].concat();
    // Eight bits a pixel, with a palette; the only compression and filters there are; every row once.
    header.extend([8, 3, 0, 0, 0]);
    chunk(&mut png, *b"IHDR", &header)?;
    chunk(&mut png, *b"PLTE", palette.as_flattened())?;
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::default());
    for row in canvas.pixels.chunks_exact(canvas.width as usize) {
        // No filter: the rows of flat colours pack well as they are.
        rows.write_all(&[0])?;
        rows.write_all(row)?;
    }
    chunk(&mut png, *b"IDAT", &rows.finish()?)?;
    chunk(&mut png, *b"IEND", &[])?;
    Ok(png)
}

fn chunk(png: &mut Vec<u8>, name: [u8; 4], data: &[u8]) -> io::Result<()> {
    let length = u32::try_from(data.len()).map_err(io::Error::other)?;
    let mut sum = Crc::new();
    sum.update(&name);
    sum.update(data);
    png.extend(length.to_be_bytes());
    png.extend(name);
    png.extend(data);
    png.extend(sum.sum().to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::{Crc, read::ZlibDecoder};

    use super::{dark, design, phone};

    /// The chunks of a PNG, every checksum looked at.
    fn chunks(png: &[u8]) -> Vec<(&[u8], &[u8])> {
        let mut rest = png.strip_prefix(b"\x89PNG\r\n\x1a\n").unwrap();
        let mut chunks = Vec::new();
        while !rest.is_empty() {
            let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
            let (name, data) = (&rest[4..8], &rest[8..8 + length]);
            let mut sum = Crc::new();
            sum.update(&rest[4..8 + length]);
            assert_eq!(sum.sum().to_be_bytes(), rest[8 + length..12 + length]);
            chunks.push((name, data));
            rest = &rest[12 + length..];
        }
        chunks
    }

    #[test]
    fn pictures_are_whole_and_as_large_as_they_say() {
        for picture in [phone(), design(), dark()].map(Result::unwrap) {
            let chunks = chunks(&picture.png);
            let names: Vec<_> = chunks.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [b"IHDR", b"PLTE", b"IDAT", b"IEND"]);
            let size = [picture.width.to_be_bytes(), picture.height.to_be_bytes()].concat();
            assert_eq!(chunks[0].1[..8], size);
            let mut rows = Vec::new();
            ZlibDecoder::new(chunks[2].1).read_to_end(&mut rows).unwrap();
            assert_eq!(rows.len(), ((picture.width + 1) * picture.height) as usize);
            let colours = u8::try_from(chunks[1].1.len() / 3).unwrap();
            let all: std::collections::BTreeSet<_> = rows.iter().copied().collect();
            assert_eq!(all, (0..colours).collect(), "every colour is seen, and no other");
        }
    }
}
