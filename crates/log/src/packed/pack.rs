//! Writing the rows of one append batch.

use std::fmt::Write as _;

use super::row::Tag;
use crate::{
    event::Event,
    json::{Json, MAX_SAFE_INTEGER, write_number, write_units},
};

/// A shorter run is not worth a row, and other writers leave it alone too.
const SHORTEST_RUN: usize = 3;

/// The lines of one append batch, one per event.
#[must_use]
pub fn lines(events: &[Event]) -> String {
    let mut out = String::with_capacity(events.iter().map(|event| event.text().len() + 1).sum());
    for event in events {
        push_line(&mut out, event);
    }
    out
}

/// The lines of one append batch, runs of three or more streamed deltas packed into rows.
///
/// A run goes on while seqs are consecutive and turn, step, block index, call id and tool name
/// stay the same. Events of any other shape or spelling are lines of their own, all in order.
#[must_use]
pub fn pack_batch(events: &[Event]) -> String {
    let mut out = String::new();
    let mut run: Option<Run<'_>> = None;
    for event in events {
        let delta = Delta::of(event);
        if let (Some(run), Some(delta)) = (&mut run, &delta)
            && run.goes_on_with(event, delta)
        {
            run.events.push(event);
            run.strings.push(delta.string);
            continue;
        }
        if let Some(run) = run.take() {
            run.write(&mut out);
        }
        match delta {
            Some(delta) => run = Some(Run::start(event, &delta)),
            None => push_line(&mut out, event),
        }
    }
    if let Some(run) = run {
        run.write(&mut out);
    }
    out
}

fn push_line(out: &mut String, event: &Event) {
    out.push_str(event.text());
    out.push('\n');
}

/// Consecutive deltas of one block.
struct Run<'a> {
    block: Block<'a>,
    events: Vec<&'a Event>,
    strings: Vec<&'a str>,
}

impl<'a> Run<'a> {
    fn start(event: &'a Event, delta: &Delta<'a>) -> Self {
        Self { block: delta.block, events: vec![event], strings: vec![delta.string] }
    }

    fn goes_on_with(&self, event: &Event, delta: &Delta<'a>) -> bool {
        self.block == delta.block
            && self.events.last().is_some_and(|last| {
                event.seq() == last.seq().plus(1)
                    && event.time().abs_diff(last.time()) <= MAX_SAFE_INTEGER
            })
    }

    fn write(&self, out: &mut String) {
        match self.events.first() {
            Some(first) if self.events.len() >= SHORTEST_RUN => self.write_row(out, first),
            _ => self.events.iter().for_each(|event| push_line(out, event)),
        }
    }

    fn write_row(&self, out: &mut String, first: &Event) {
        let Block { tag, turn, step, index, call } = self.block;
        let (name, seq0, time0) = (tag.name(), first.seq(), first.time());
        let _ = write!(
            out,
            r#"{{"type":"{name}","seq0":{seq0},"time0":{time0},"data":{{"turn":{turn},"step":{step},"index":{index},"dt":["#
        );
        let gaps = self.events.iter().zip(self.events.iter().skip(1));
        for (at, (before, after)) in gaps.enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(out, "{comma}{}", after.time() - before.time());
        }
        out.push(']');
        if let Some((id, name)) = call {
            let _ = write!(out, r#","id":{id}"#);
            if let Some(name) = name {
                let _ = write!(out, r#","name":{name}"#);
            }
        }
        let _ = write!(out, r#","{}":["#, tag.list_key());
        for (at, string) in self.strings.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(string);
        }
        out.push_str("]}}\n");
    }
}

/// What the members of a run have in common, spelled as in each of them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Block<'a> {
    tag: Tag,
    turn: &'a str,
    step: &'a str,
    index: &'a str,
    /// The id, and the tool's name where it is there.
    call: Option<(&'a str, Option<&'a str>)>,
}

/// An event that a member of a row unpacks to, byte for byte.
struct Delta<'a> {
    block: Block<'a>,
    string: &'a str,
}

impl<'a> Delta<'a> {
    fn of(event: &'a Event) -> Option<Self> {
        let mut text = Cursor { rest: event.text() };
        text.skip(r#"{"type":"assistant/chunk","seq":"#)?;
        text.number()?;
        text.skip(r#","time":"#)?;
        text.number()?;
        text.skip(r#","data":{"turn":"#)?;
        let turn = text.number()?;
        text.skip(r#","step":"#)?;
        let step = text.number()?;
        text.skip(r#","chunk":{"type":""#)?;
        let tag = Tag::ALL.into_iter().find(|tag| text.skip(tag.chunk_type()).is_some())?;
        text.skip(r#"","index":"#)?;
        let index = text.number()?;
        let call = match tag {
            Tag::Text | Tag::Reasoning => None,
            Tag::ToolCall => {
                text.skip(r#","id":"#)?;
                let id = text.string()?;
                let name = match text.skip(r#","name":"#) {
                    Some(()) => Some(text.string()?),
                    None => None,
                };
                Some((id, name))
            }
        };
        text.skip(",\"")?;
        text.skip(tag.string_key())?;
        text.skip("\":")?;
        let string = text.string()?;
        text.skip("}}}")?;
        let block = Block { tag, turn, step, index, call };
        text.rest.is_empty().then_some(Self { block, string })
    }
}

/// Walks a text that should have exactly one spelling.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn skip(&mut self, expected: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    fn value(&mut self) -> Option<Json<'a>> {
        let value = Json::first_in(self.rest);
        self.rest = self.rest.get(value.text().len()..)?;
        Some(value)
    }

    /// A number as JavaScript prints it: a reader that re-encodes must come to the same digits.
    fn number(&mut self) -> Option<&'a str> {
        let value = self.value()?;
        let text = value.text();
        // Every run of up to 15 digits is exact in a double and printed in full.
        if text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(text);
        }
        let mut printed = String::new();
        write_number(&mut printed, value.as_f64()?);
        (printed == text).then_some(text)
    }

    /// A string as `JSON.stringify` escapes it.
    fn string(&mut self) -> Option<&'a str> {
        let literal = self.value()?;
        let string = literal.as_str()?;
        if string.plain().is_none() {
            let mut printed = String::new();
            write_units(&mut printed, string.units());
            if printed != literal.text() {
                return None;
            }
        }
        Some(literal.text())
    }
}
