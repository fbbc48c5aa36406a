//! The slim projection and the reduced summary, over values, one rule after the other.

use super::{Js, utf16};
use crate::{Parts, Projection};

/// What a record's parts become: `None` where one is left out, else the value and whether it is
/// another one than before.
pub(crate) struct Projected {
    pub(crate) parts: Vec<Option<(Js, bool)>>,
    /// The whole record.
    pub(crate) record: Js,
}

pub(crate) fn project(projection: Projection, record: &Js) -> Projected {
    let info = record.get("info").map(reduce);
    let user = info.as_ref().is_some_and(is_user);
    let parts: Vec<_> = match record.get("parts") {
        Some(Js::Array(parts)) => {
            parts.iter().map(|part| project_part(projection, user, part)).collect()
        }
        _ => Vec::new(),
    };
    let mut record = record.clone();
    if let Some(info) = &info {
        record.set(&utf16("info"), info.clone());
    }
    if let Some(Js::Array(_)) = record.get("parts") {
        let kept = parts.iter().flatten().map(|(part, _)| part.clone()).collect();
        record.set(&utf16("parts"), Js::Array(kept));
    }
    Projected { parts, record }
}

fn is_user(info: &Js) -> bool {
    match info.get("clientRole") {
        Some(Js::String(role)) => *role == utf16("user"),
        _ => info.get("role").is_some_and(|role| role.is("user")),
    }
}

fn project_part(projection: Projection, user: bool, part: &Js) -> Option<(Js, bool)> {
    let is = |kind: &str| part.get("type").is_some_and(|value| value.is(kind));
    if !projection.reasoning && is("reasoning") {
        return None;
    }
    let slim = match projection.parts {
        Parts::Slim if is("file") => Some(file(part)),
        Parts::Slim if is("tool") && !user => Some(tool(part)),
        Parts::Slim if is("reasoning") && !user => Some(reasoning(part)),
        Parts::Full | Parts::Slim => None,
    };
    Some(slim.map_or((part.clone(), false), |slim| (slim, true)))
}

/// An object literal under construction.
struct Out(Vec<(Vec<u16>, Js)>);

impl Out {
    fn set(&mut self, key: &str, value: Option<Js>) {
        if let Some(value) = value {
            self.0.push((utf16(key), value));
        }
    }

    fn copy(&mut self, from: &Js, keys: &[&str]) {
        for key in keys {
            self.set(key, from.get(key).cloned());
        }
    }

    fn set_unless_empty(&mut self, key: &str, value: Out) {
        if !value.0.is_empty() {
            self.set(key, Some(Js::Object(value.0)));
        }
    }
}

fn tool(part: &Js) -> Js {
    let mut out = Out(Vec::new());
    out.copy(part, &["id", "sessionID", "messageID", "callID", "tool"]);
    let mut child = Out(Vec::new());
    child_session(part.get("metadata"), &mut child);
    out.set_unless_empty("metadata", child);
    out.set("type", Some("tool".into()));
    if let Some(state @ (Js::Object(_) | Js::Array(_))) = part.get("state") {
        let mut slim = Out(Vec::new());
        slim.copy(state, &["status", "title", "time"]);
        slim.set_unless_empty("input", input(state.get("input")));
        slim.set_unless_empty("metadata", metadata(state.get("metadata")));
        out.set("state", Some(Js::Object(slim.0)));
    }
    out.set("slim", Some(Js::Bool(true)));
    Js::Object(out.0)
}

fn input(input: Option<&Js>) -> Out {
    let mut out = Out(Vec::new());
    let keys = "path filePath file_path pattern glob include exclude query target command offset \
                limit description subagent_type subagentType agent subagent name id";
    for key in keys.split(' ') {
        let value = match input.and_then(|input| input.get(key)) {
            Some(Js::Number(number)) if number.is_finite() => Some(Js::Number(*number)),
            value => trimmed(value).map(cut),
        };
        out.set(key, value);
    }
    out
}

fn child_session(metadata: Option<&Js>, out: &mut Out) {
    let id = |key| trimmed(metadata.and_then(|metadata| metadata.get(key)));
    let (lower, upper) = (id("sessionId"), id("sessionID"));
    let upper = upper.filter(|upper| Some(upper) != lower.as_ref());
    out.set("sessionId", lower);
    out.set("sessionID", upper);
}

fn metadata(metadata: Option<&Js>) -> Out {
    let mut out = Out(Vec::new());
    let Some(metadata) = metadata else { return out };
    child_session(Some(metadata), &mut out);

    let mut files = Vec::new();
    let mut sums = (None, None);
    if let Some(Js::Array(elements)) = metadata.get("files") {
        for file in elements {
            let (entry, counts) = entry(file, file.get("filePath"));
            if entry.0.is_empty() {
                continue;
            }
            files.push(Js::Object(entry.0));
            if counts.0.is_some() || counts.1.is_some() {
                sums.0 = Some(sums.0.unwrap_or(0.0) + counts.0.unwrap_or(0.0));
                sums.1 = Some(sums.1.unwrap_or(0.0) + counts.1.unwrap_or(0.0));
            }
        }
    }
    if !files.is_empty() {
        out.set("files", Some(Js::Array(files)));
    }

    let mut single = (None, None);
    if let Some(filediff) = metadata.get("filediff") {
        let file = filediff.get("file").filter(|file| matches!(file, Js::String(_)));
        let (entry, counts) = entry(filediff, file.or(filediff.get("filePath")));
        if !entry.0.is_empty() {
            let mut slim = Out(Vec::new());
            slim.set("file", file.cloned());
            slim.0.extend(entry.0);
            out.set("filediff", Some(Js::Object(slim.0)));
            single = counts;
        }
    }

    let mut counts = counts(metadata);
    if counts == (None, None) {
        counts = sums;
    }
    out.set("additions", counts.0.or(single.0).map(Js::Number));
    out.set("deletions", counts.1.or(single.1).map(Js::Number));
    out.set("name", trimmed(metadata.get("name")).map(cut));
    out
}

type Pair = (Option<f64>, Option<f64>);

fn entry(file: &Js, file_path: Option<&Js>) -> (Out, Pair) {
    let mut out = Out(Vec::new());
    out.set("relativePath", trimmed(file.get("relativePath")));
    out.set("filePath", trimmed(file_path));
    if out.0.is_empty() {
        out.set("path", trimmed(file.get("path")));
    }
    let counts = counts(file);
    out.set("additions", counts.0.map(Js::Number));
    out.set("deletions", counts.1.map(Js::Number));
    (out, counts)
}

fn counts(of: &Js) -> Pair {
    let mut patch = (None, None);
    let text =
        [of.get("patch"), of.get("diff")].into_iter().flatten().find_map(|text| match text {
            Js::String(text) => Some(text),
            _ => None,
        });
    if let Some(text) = text {
        let lines: Vec<_> = text.split(|&unit| unit == 10).collect();
        let starting = |sign: &str, header: &str| {
            let is_line = |line: &&&[u16]| {
                line.starts_with(&utf16(sign)) && !line.starts_with(&utf16(header))
            };
            f64::from(u32::try_from(lines.iter().filter(is_line).count()).unwrap())
        };
        let (added, deleted) = (starting("+", "+++"), starting("-", "---"));
        if added != 0.0 || deleted != 0.0 {
            patch = (Some(added), Some(deleted));
        }
    }
    (stated(of.get("additions")).or(patch.0), stated(of.get("deletions")).or(patch.1))
}

fn stated(value: Option<&Js>) -> Option<f64> {
    let number = match value? {
        Js::Number(number) => *number,
        Js::String(units) => {
            let text = String::from_utf16_lossy(units);
            let text = text.trim_start_matches(is_space);
            let (sign, digits) = match text.chars().next() {
                Some('-') => (-1.0, &text[1..]),
                Some('+') => (1.0, &text[1..]),
                _ => (1.0, text),
            };
            let end = digits.find(|char: char| !char.is_ascii_digit()).unwrap_or(digits.len());
            sign * digits[..end].parse::<f64>().ok()?
        }
        _ => return None,
    };
    // The sum turns a negative zero into zero.
    number.is_finite().then(|| number.trunc().max(0.0) + 0.0)
}

fn is_space(char: char) -> bool {
    "\u{9}\u{a}\u{b}\u{c}\u{d} \u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\
     \u{2006}\u{2007}\u{2008}\u{2009}\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}"
        .contains(char)
}

fn trimmed(value: Option<&Js>) -> Option<Js> {
    let Js::String(units) = value? else { return None };
    let is_space = |unit: &u16| char::from_u32((*unit).into()).is_some_and(is_space);
    let start = units.iter().position(|unit| !is_space(unit))?;
    let end = units.iter().rposition(|unit| !is_space(unit))?;
    Some(Js::String(units[start..=end].to_vec()))
}

fn cut(value: Js) -> Js {
    match value {
        Js::String(units) => Js::String(units.into_iter().take(240).collect()),
        other => other,
    }
}

fn reasoning(part: &Js) -> Js {
    let mut out = Out(Vec::new());
    out.copy(part, &["id", "sessionID", "messageID"]);
    out.set("type", Some("reasoning".into()));
    out.copy(part, &["time"]);
    out.set("slim", Some(Js::Bool(true)));
    Js::Object(out.0)
}

fn file(part: &Js) -> Js {
    let mut out = Out(Vec::new());
    out.copy(part, &["id", "sessionID", "messageID"]);
    out.set("type", Some("file".into()));
    for key in ["mime", "filename"] {
        out.set(key, part.get(key).filter(|value| matches!(value, Js::String(_))).cloned());
    }
    let stored = |key: &str, least: f64| {
        [Some(part), part.get("metadata")]
            .into_iter()
            .flatten()
            .find_map(|holder| integer(holder.get(key)?).filter(|number| *number >= least))
    };
    let data = match part.get("url") {
        Some(Js::String(url)) => decode(url),
        _ => None,
    };
    let length = data.as_ref().map(|data| f64::from(u32::try_from(data.len()).unwrap()));
    let header = data.as_deref().and_then(image);
    out.set("size", stored("size", 0.0).map(Js::Number));
    out.set("byteSize", length.or_else(|| stored("byteSize", 0.0)).map(Js::Number));
    out.set("width", stored("width", 1.0).or(header.map(|size| size.0)).map(Js::Number));
    out.set("height", stored("height", 1.0).or(header.map(|size| size.1)).map(Js::Number));
    out.set("slim", Some(Js::Bool(true)));
    Js::Object(out.0)
}

fn integer(value: &Js) -> Option<f64> {
    let number = match value {
        Js::Number(number) => *number,
        Js::String(units) => {
            let text = String::from_utf16(units).ok()?;
            if text.is_empty() || text.chars().any(|char| !char.is_ascii_digit()) {
                return None;
            }
            text.parse().unwrap()
        }
        _ => return None,
    };
    (number.is_finite() && number.fract() == 0.0).then_some(number)
}

/// The bytes of a data URL.
fn decode(url: &[u16]) -> Option<Vec<u8>> {
    let rest = url.strip_prefix(utf16("data:").as_slice())?;
    let comma = rest.iter().position(|&unit| unit == u16::from(b','))?;
    let header = String::from_utf16_lossy(&rest[..comma]).to_ascii_lowercase();
    let header = header.trim_matches(is_space);
    let body = &rest[comma + 1..];
    if header == "base64" || header.ends_with(";base64") {
        Some(decode_base64(body))
    } else {
        decode_percent(body)
    }
}

fn decode_base64(body: &[u16]) -> Vec<u8> {
    let alphabet = utf16("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
    let mut bits = Vec::new();
    for &unit in body.iter().take_while(|&&unit| unit != u16::from(b'=')) {
        let unit = match char::from_u32(unit.into()) {
            Some('-') => u16::from(b'+'),
            Some('_') => u16::from(b'/'),
            _ => unit,
        };
        if let Some(value) = alphabet.iter().position(|&known| known == unit) {
            bits.extend((0..6).rev().map(|bit| value >> bit & 1));
        }
    }
    let byte = |bits: &[usize]| bits.iter().fold(0, |byte, bit| byte << 1 | bit);
    bits.chunks_exact(8).map(|bits| u8::try_from(byte(bits)).unwrap()).collect()
}

fn decode_percent(body: &[u16]) -> Option<Vec<u8>> {
    let text = String::from_utf16_lossy(body);
    let mut bytes = Vec::new();
    let mut rest = text.as_str();
    while let Some(char) = rest.chars().next() {
        if char != '%' {
            bytes.extend(char.to_string().bytes());
            rest = &rest[char.len_utf8()..];
            continue;
        }
        // A run of escapes has to be UTF-8 by itself.
        let mut run = Vec::new();
        while let Some(escape) = rest.strip_prefix('%') {
            let digits = escape.get(..2).filter(|d| d.chars().all(|d| d.is_ascii_hexdigit()))?;
            run.push(u8::from_str_radix(digits, 16).unwrap());
            rest = &escape[2..];
        }
        bytes.extend(String::from_utf8(run).ok()?.bytes());
    }
    Some(bytes)
}

fn image(data: &[u8]) -> Option<(f64, f64)> {
    let be = |at: usize, count: usize| {
        data[at..at + count].iter().fold(0_u32, |sum, &byte| sum << 8 | u32::from(byte))
    };
    let le = |at: usize, count: usize| {
        data[at..at + count].iter().rev().fold(0_u32, |sum, &byte| sum << 8 | u32::from(byte))
    };
    if data.len() < 10 {
        return None;
    }
    let (width, height) = if be(0, 4) == 0x8950_4E47 && data.len() >= 24 {
        (be(16, 4), be(20, 4))
    } else if data.starts_with(b"GIF") {
        (le(6, 2), le(8, 2))
    } else if be(0, 2) == 0xFFD8 {
        jpeg(data)?
    } else if data.starts_with(b"RIFF") && &data[8..10] == b"WE" && data.len() >= 30 {
        if &data[10..12] != b"BP" {
            return None;
        }
        match &data[12..16] {
            b"VP8X" => (le(24, 3) + 1, le(27, 3) + 1),
            b"VP8 " if data[23..26] == [0x9D, 0x01, 0x2A] => {
                (le(26, 2) & 0x3FFF, le(28, 2) & 0x3FFF)
            }
            b"VP8L" if data[20] == 0x2F => {
                ((le(21, 4) & 0x3FFF) + 1, (le(21, 4) >> 14 & 0x3FFF) + 1)
            }
            _ => return None,
        }
    } else {
        return None;
    };
    (width > 0 && height > 0).then(|| (width.into(), height.into()))
}

fn jpeg(data: &[u8]) -> Option<(u32, u32)> {
    let be = |at: usize| u32::from(data[at]) << 8 | u32::from(data[at + 1]);
    let mut offset = 2;
    while offset + 8 < data.len() {
        if data[offset] != 0xFF {
            return None;
        }
        let marker = data[offset + 1];
        if marker == 0xD8 || marker == 0x01 || (0xD0..=0xD9).contains(&marker) {
            offset += 2;
            continue;
        }
        if be(offset + 2) < 2 {
            return None;
        }
        if (0xC0..=0xCF).contains(&marker) && ![0xC4, 0xC8, 0xCC].contains(&marker) {
            return Some((be(offset + 7), be(offset + 5)));
        }
        offset += 2 + usize::try_from(be(offset + 2)).unwrap();
    }
    None
}

/// An owner whose summary's diffs are reduced.
pub(crate) fn reduce(owner: &Js) -> Js {
    let Some(summary @ Js::Object(_)) = owner.get("summary") else { return owner.clone() };
    let Some(diffs) = summary.get("diffs") else { return owner.clone() };
    let reduced: Vec<_> = match diffs {
        Js::Array(diffs) => diffs
            .iter()
            .filter(|diff| matches!(diff, Js::Object(_)))
            .map(|diff| {
                let mut out = Out(Vec::new());
                out.copy(diff, &["file", "status", "additions", "deletions"]);
                Js::Object(out.0)
            })
            .collect(),
        _ => Vec::new(),
    };
    let count = reduced.len();
    let mut summary = summary.clone();
    summary.set(&utf16("diffs"), Js::Array(reduced));
    summary.set(&utf16("diffCount"), Js::Number(f64::from(u32::try_from(count).unwrap())));
    summary.set(&utf16("hasDiffs"), Js::Bool(count > 0));
    let mut owner = owner.clone();
    owner.set(&utf16("summary"), summary);
    owner
}
