//! A reader of logs that is as plain as the rules are: it holds everything in memory, knows JSON as
//! trees, and unpacks with another implementation. It shares with ours the walk over the headers of a
//! frame, which is compared with that implementation by itself, and the check of message shapes.

use std::io::Read as _;

use ruzstd::decoding::{StreamingDecoder, errors::FrameDecoderError};
use serde_json::{Map, Value, json, value::RawValue};
use turnkeep_log::{Event, SessionId, Vocabulary, gate};
use turnkeep_store::jsonl::Encoding;

use crate::scan::{FrameScan, MAGIC, scan_frame};

const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum No {
    /// It is to be refused.
    Refused,
    /// This reader cannot tell: trees have no place for lone surrogates and numbers past the doubles.
    Unknown,
}

/// One line as a value.
pub fn parse(line: &str) -> Result<Value, No> {
    match serde_json::from_str(line) {
        Ok(value) => Ok(value),
        Err(_) if serde_json::from_str::<Box<RawValue>>(line).is_ok() => Err(No::Unknown),
        Err(_) => Err(No::Refused),
    }
}

fn integer(value: Option<&Value>) -> Result<i64, No> {
    let number = value.and_then(Value::as_f64).ok_or(No::Refused)?;
    if number.fract() != 0.0 || number.abs() > MAX_SAFE {
        return Err(No::Refused);
    }
    #[expect(clippy::cast_possible_truncation, reason = "a whole number within 2^53")]
    Ok(number as i64)
}

fn natural(value: Option<&Value>) -> Result<u64, No> {
    if value.and_then(Value::as_f64).is_some_and(f64::is_sign_negative) {
        return Err(No::Refused);
    }
    integer(value).and_then(|value| u64::try_from(value).map_err(|_| No::Refused))
}

fn ensure(holds: bool) -> Result<(), No> {
    if holds { Ok(()) } else { Err(No::Refused) }
}

/// The members of a header that matter.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    pub id: String,
    pub created_at: u64,
    pub cwd: Option<String>,
    pub depth: u64,
    pub seed: Option<u64>,
}

/// Reads a header line.
pub fn header(line: &str) -> Result<Header, No> {
    let value = parse(line)?;
    let members = value.as_object().ok_or(No::Refused)?;
    ensure(integer(members.get("version"))? == 0)?;
    ensure(members.get("type") == Some(&json!("session")))?;
    ensure(!members.contains_key("sandboxMode") && !members.contains_key("approvalPolicy"))?;
    let text = |name: &str| match members.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(No::Refused),
    };
    for name in ["parentSession", "agentPreset"] {
        text(name)?;
    }
    ensure(text("origin")?.is_none_or(|origin| origin == "subagent"))?;
    let id = text("id")?.filter(|id| !id.is_empty()).ok_or(No::Refused)?;
    let seed = members.get("seedLength").map(|seed| natural(Some(seed))).transpose()?;
    Ok(Header {
        id,
        created_at: natural(members.get("createdAt"))?,
        cwd: text("cwd")?,
        depth: natural(members.get("delegationDepth"))?,
        seed,
    })
}

/// The events that a line stands for, each as a value.
pub fn record(line: &str) -> Result<Vec<Value>, No> {
    let value = parse(line)?;
    let members = value.as_object().ok_or(No::Refused)?;
    let name = members.get("type").and_then(Value::as_str).ok_or(No::Refused)?;
    match name {
        "text-chunks" => row(members, "text-delta", "texts", "text"),
        "reasoning-chunks" => row(members, "reasoning-delta", "texts", "text"),
        "tool-call-chunks" => row(members, "tool-call-delta", "args", "argumentsDelta"),
        _ => {
            let seq = natural(members.get("seq"))?;
            integer(members.get("time"))?;
            ensure(members.contains_key("data"))?;
            let mut event = members.clone();
            if let Some(sources) = event.get_mut("sourceEventSeqs") {
                *sources = provenance(sources, seq)?;
            }
            Ok(vec![Value::Object(event)])
        }
    }
}

/// A list of seqs and of first and last seqs, with all of them; as it is if there are no ranges.
fn provenance(stated: &Value, seq: u64) -> Result<Value, No> {
    let mut all = Vec::new();
    let mut ranges = false;
    for element in stated.as_array().ok_or(No::Refused)? {
        match element {
            Value::Array(ends) => {
                ranges = true;
                let [first, last] = &ends[..] else { return Err(No::Refused) };
                let (first, last) = (natural(Some(first))?, natural(Some(last))?);
                ensure(first <= last && last - first < seq)?;
                all.extend(first..=last);
            }
            seq => all.push(natural(Some(seq))?),
        }
    }
    ensure(all.len() as u64 <= seq)?;
    if !ranges {
        return Ok(stated.clone());
    }
    ensure(all.is_sorted_by(|before, after| before < after))?;
    Ok(json!(all))
}

fn row(members: &Map<String, Value>, kind: &str, list: &str, text: &str) -> Result<Vec<Value>, No> {
    let only = |members: &Map<String, Value>, names: &[&str]| {
        ensure(members.keys().all(|name| names.contains(&name.as_str())))
    };
    only(members, &["type", "seq0", "time0", "data"])?;
    let seq0 = natural(members.get("seq0"))?;
    let mut time = integer(members.get("time0"))?;
    let data = members.get("data").and_then(Value::as_object).ok_or(No::Refused)?;
    let is_call = kind == "tool-call-delta";
    let more: &[&str] = if is_call { &["id", "name"] } else { &[] };
    only(data, &[&["turn", "step", "index", "dt", list], more].concat())?;
    for name in ["turn", "step", "index"] {
        ensure(data.get(name).is_some_and(Value::is_number))?;
    }
    ensure(!is_call || data.get("id").is_some_and(Value::is_string))?;
    ensure(data.get("name").is_none_or(Value::is_string))?;
    let strings = data.get(list).and_then(Value::as_array).ok_or(No::Refused)?;
    let gaps = data.get("dt").and_then(Value::as_array).ok_or(No::Refused)?;
    ensure(strings.len() == gaps.len() + 1 && strings.iter().all(Value::is_string))?;
    let mut events = Vec::new();
    for (index, string) in strings.iter().enumerate() {
        if index > 0 {
            time += integer(gaps.get(index - 1))?;
            integer(Some(&json!(time)))?;
        }
        let seq = seq0 + index as u64;
        natural(Some(&json!(seq)))?;
        let mut chunk = Map::new();
        chunk.insert("type".to_owned(), json!(kind));
        chunk.insert("index".to_owned(), data["index"].clone());
        for name in ["id", "name"] {
            if let Some(value) = data.get(name) {
                chunk.insert(name.to_owned(), value.clone());
            }
        }
        chunk.insert(text.to_owned(), string.clone());
        let data = json!({"turn": data["turn"], "step": data["step"], "chunk": chunk});
        let kind = "assistant/chunk";
        events.push(json!({"type": kind, "seq": seq, "time": time, "data": data}));
    }
    Ok(events)
}

fn seq_of(event: &Value) -> u64 {
    natural(event.get("seq")).unwrap()
}

/// What is read of a log.
#[derive(Debug)]
pub struct Reading {
    pub header: Header,
    pub events: Vec<Value>,
}

/// Reads a whole log.
pub fn log(bytes: &[u8], encoding: Encoding, limit: usize) -> Result<Reading, No> {
    let (header, events) = match encoding {
        Encoding::Zstd => frames(bytes, limit)?,
        Encoding::None => plain(bytes)?,
    };
    let id = SessionId::new(&header.id).ok_or(No::Refused)?;
    let parsed: Vec<Event> =
        events.iter().map(|event| Event::parse(&event.to_string().into()).unwrap()).collect();
    gate::check(&id, &parsed, &Vocabulary::v0()).map_err(|_| No::Refused)?;
    Ok(Reading { header, events })
}

fn frames(bytes: &[u8], limit: usize) -> Result<(Header, Vec<Value>), No> {
    let mut at = 0;
    let mut texts = Vec::new();
    while at < bytes.len() {
        let Some((text, length)) = frame(&bytes[at..], limit)? else { break };
        ensure(text.len() <= limit)?;
        texts.push(String::from_utf8_lossy(&text).into_owned());
        at += length;
    }
    let tail = &bytes[at..];
    if !tail.is_empty() {
        for later in 1..tail.len() {
            if tail[later..].starts_with(&MAGIC) {
                ensure(frame(&tail[later..], limit)?.is_none())?;
            }
        }
        let cut_short = matches!(scan_frame(tail), FrameScan::Incomplete);
        ensure(cut_short || lost_sector(at, tail))?;
    }
    let mut texts = texts.into_iter();
    let first = texts.next().ok_or(No::Refused)?;
    let line = first.strip_suffix('\n').filter(|line| !line.contains('\n')).ok_or(No::Refused)?;
    let header = header(line)?;
    let mut events = Vec::new();
    for text in texts {
        for line in text.split_inclusive('\n') {
            for event in record(line.strip_suffix('\n').ok_or(No::Refused)?)? {
                ensure(seq_of(&event) == events.len() as u64)?;
                events.push(event);
            }
        }
    }
    Ok((header, events))
}

fn plain(bytes: &[u8]) -> Result<(Header, Vec<Value>), No> {
    let feed = bytes.iter().position(|byte| *byte == b'\n').ok_or(No::Refused)?;
    let header = header(&String::from_utf8_lossy(&bytes[..feed]))?;
    let mut rest = &bytes[feed + 1..];
    if let Some(nul) = rest.iter().position(|byte| *byte == 0) {
        let line = rest[..nul].iter().rposition(|byte| *byte == b'\n').map_or(0, |feed| feed + 1);
        if lost_sector(feed + 1 + line, &rest[line..]) {
            rest = &rest[..line];
        }
    }
    let mut events = Vec::new();
    let mut holds = true;
    for line in rest.split_inclusive(|byte| *byte == b'\n') {
        let Some(line) = line.strip_suffix(b"\n") else { break };
        match record(&String::from_utf8_lossy(line)) {
            Err(No::Unknown) => return Err(No::Unknown),
            Err(No::Refused) => holds = false,
            Ok(record) => {
                holds &= seq_of(&record[0]) == events.len() as u64;
                // Damage before the end of a turn is damage to what was acknowledged.
                ensure(holds || record.iter().all(|event| event["type"] != "turn/end"))?;
                if holds {
                    events.extend(record);
                }
            }
        }
    }
    Ok((header, events))
}

/// Whether bytes from `offset` to the end of a file hold a sector, or all there is of one, that is
/// zero.
fn lost_sector(offset: usize, bytes: &[u8]) -> bool {
    let mut sectors = std::collections::BTreeMap::<usize, bool>::new();
    for (index, byte) in bytes.iter().enumerate() {
        *sectors.entry((offset + index) / 512).or_insert(true) &= *byte == 0;
    }
    sectors.values().any(|zero| *zero)
}

/// The text and the length of the frame that bytes begin with, if there is a whole and good one.
pub fn next_frame(bytes: &[u8], limit: usize) -> Option<(Vec<u8>, usize)> {
    frame(bytes, limit).unwrap_or(None)
}

fn frame(bytes: &[u8], limit: usize) -> Result<Option<(Vec<u8>, usize)>, No> {
    // Two bits of the descriptor are reserved; the implementation minds one.
    if bytes.get(4).is_some_and(|descriptor| descriptor & 0b1_1000 != 0) {
        return Ok(None);
    }
    let mut rest = bytes;
    let mut decoder = match StreamingDecoder::new(&mut rest) {
        Ok(decoder) => decoder,
        // Larger than it unpacks with; ours does not need such a window in memory.
        Err(FrameDecoderError::WindowSizeTooBig { .. }) => return Err(No::Unknown),
        Err(_) => return Ok(None),
    };
    let most = limit.saturating_add(1) as u64;
    let mut text = Vec::new();
    if decoder.by_ref().take(most).read_to_end(&mut text).is_err() {
        // Without a checksum, what is damaged may still unpack, to something, with one of the two.
        let unchecked = bytes.get(4).is_some_and(|descriptor| descriptor & 0b100 == 0);
        let whole = matches!(scan_frame(bytes), FrameScan::Complete(_));
        return if unchecked && whole { Err(No::Unknown) } else { Ok(None) };
    }
    if text.len() > limit {
        return Ok(Some((text, bytes.len())));
    }
    let decoder = decoder.into_frame_decoder();
    let stated = decoder.get_checksum_from_data();
    let sound = stated.is_none_or(|stated| Some(stated) == decoder.get_calculated_checksum());
    let size = decoder.content_size();
    let length = bytes.len() - rest.len();
    Ok((sound && (size == 0 || size == text.len() as u64)).then_some((text, length)))
}
