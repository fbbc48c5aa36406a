//! Reading one packed row.

use std::fmt::Write as _;

use crate::{
    envelope::Members,
    event::{Event, MAX_EVENT_BYTES, Span},
    id::Seq,
    json::{Json, JsonStr, Kind, MAX_SAFE_INTEGER},
    records::RecordError,
    text::Text,
};

/// The three kinds of packed row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Text,
    Reasoning,
    ToolCall,
}

impl Tag {
    pub(super) const ALL: [Self; 3] = [Self::Text, Self::Reasoning, Self::ToolCall];

    /// The kind of row that a `type` names.
    pub(crate) fn of(event_type: JsonStr<'_>) -> Option<Self> {
        let name = event_type.decode()?;
        Self::ALL.into_iter().find(|tag| name == tag.name())
    }

    /// The row's own `type`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "text-chunks",
            Self::Reasoning => "reasoning-chunks",
            Self::ToolCall => "tool-call-chunks",
        }
    }

    /// The `type` of its members' chunks.
    pub(super) fn chunk_type(self) -> &'static str {
        match self {
            Self::Text => "text-delta",
            Self::Reasoning => "reasoning-delta",
            Self::ToolCall => "tool-call-delta",
        }
    }

    /// What the row calls its list of strings.
    pub(super) fn list_key(self) -> &'static str {
        match self {
            Self::Text | Self::Reasoning => "texts",
            Self::ToolCall => "args",
        }
    }

    /// What a chunk calls its string.
    pub(super) fn string_key(self) -> &'static str {
        match self {
            Self::Text | Self::Reasoning => "text",
            Self::ToolCall => "argumentsDelta",
        }
    }
}

/// A checked packed row: the literals of the line it was read from.
pub(crate) struct Row<'a> {
    tag: Tag,
    seq0: u64,
    time0: i64,
    turn: Json<'a>,
    step: Json<'a>,
    index: Json<'a>,
    call: Option<Call<'a>>,
    dt: Json<'a>,
    strings: Json<'a>,
    count: usize,
}

/// Which tool call a run of argument deltas belongs to.
#[derive(Clone, Copy)]
struct Call<'a> {
    id: Json<'a>,
    name: Option<Json<'a>>,
}

/// The members of a row's `data`, as found.
#[derive(Default)]
struct Data<'a> {
    turn: Option<Json<'a>>,
    step: Option<Json<'a>>,
    index: Option<Json<'a>>,
    dt: Option<Json<'a>>,
    id: Option<Json<'a>>,
    name: Option<Json<'a>>,
    texts: Option<Json<'a>>,
    args: Option<Json<'a>>,
    others: bool,
}

impl<'a> Data<'a> {
    fn find(data: Json<'a>) -> Option<Self> {
        let mut found = Self::default();
        for member in data.members()? {
            let key = member.key.decode();
            let slot = match key.as_deref() {
                Some("turn") => &mut found.turn,
                Some("step") => &mut found.step,
                Some("index") => &mut found.index,
                Some("dt") => &mut found.dt,
                Some("id") => &mut found.id,
                Some("name") => &mut found.name,
                Some("texts") => &mut found.texts,
                Some("args") => &mut found.args,
                _ => {
                    found.others = true;
                    continue;
                }
            };
            *slot = Some(member.value);
        }
        Some(found)
    }
}

/// What a member costs besides its text: the event, its place while it is unpacked, and the room
/// that growing lists keep.
const MEMBER_BYTES: usize = 256;

impl<'a> Row<'a> {
    /// Checks the row whose `type` is `tag`: exactly its own members, everything of the right
    /// kind, and seqs and times that stay safe integers up to its last member.
    pub(crate) fn read(tag: Tag, members: &Members<'a>) -> Result<Self, RecordError> {
        let bad = |problem| RecordError::Row { problem };
        let foreign = [
            members.seq,
            members.time,
            members.ignorable,
            members.surface_op,
            members.source_event_seqs,
        ];
        if members.others || foreign.iter().any(Option::is_some) {
            return Err(bad("has a member that rows do not have"));
        }
        let seq0 = members.seq0.and_then(Json::as_natural);
        let time0 = members.time0.and_then(Json::as_safe_integer);
        let data = members.data.and_then(Data::find).ok_or(bad("has no data object"))?;
        let text_row = tag != Tag::ToolCall;
        let foreign = if text_row {
            data.id.is_some() || data.name.is_some() || data.args.is_some()
        } else {
            data.texts.is_some()
        };
        if data.others || foreign {
            return Err(bad("has a data member that rows of its kind do not have"));
        }
        let number = |value: Option<Json<'a>>| {
            value.filter(|value| value.kind() == Kind::Number).ok_or(bad("lacks a number"))
        };
        let string = |value: &Json<'_>| value.kind() == Kind::String;
        let call = if text_row {
            None
        } else {
            let id = data.id.filter(string).ok_or(bad("has no call id"))?;
            if !data.name.as_ref().is_none_or(string) {
                return Err(bad("has a tool name that is not a string"));
            }
            Some(Call { id, name: data.name })
        };
        let strings = if text_row { data.texts } else { data.args };
        let strings = strings.ok_or(bad("has no list of strings"))?;
        let mut row = Self {
            tag,
            seq0: seq0.ok_or(bad("has no seq0 that is a non-negative safe integer"))?,
            time0: time0.ok_or(bad("has no time0 that is a safe integer"))?,
            turn: number(data.turn)?,
            step: number(data.step)?,
            index: number(data.index)?,
            call,
            dt: data.dt.ok_or(bad("has no list of time gaps"))?,
            strings,
            count: 0,
        };
        row.count = row.check_lists()?;
        Ok(row)
    }

    /// How many members the row has.
    fn check_lists(&self) -> Result<usize, RecordError> {
        let bad = |problem| RecordError::Row { problem };
        let mut count = 0_usize;
        for string in self.strings.elements().ok_or(bad("has no list of strings"))? {
            if string.kind() != Kind::String {
                return Err(bad("has a member that is not a string"));
            }
            count += 1;
        }
        let mut gaps = 0_usize;
        let mut time = self.time0;
        for gap in self.dt.elements().ok_or(bad("has no list of time gaps"))? {
            let gap = gap.as_safe_integer().ok_or(bad("has a time gap that is not an integer"))?;
            time += gap;
            if time.unsigned_abs() > MAX_SAFE_INTEGER {
                return Err(bad("reaches a time that is not a safe integer"));
            }
            gaps += 1;
        }
        if count == 0 || gaps != count - 1 {
            return Err(bad("does not have one time gap less than strings"));
        }
        if self.seq0.saturating_add(gaps as u64) > MAX_SAFE_INTEGER {
            return Err(bad("reaches a seq that is not a safe integer"));
        }
        Ok(count)
    }

    /// The seq of the first member.
    pub(crate) fn first_seq(&self) -> Seq {
        Seq(self.seq0)
    }

    /// Appends the members to `out`. All of them share one text; what it and they take of memory is
    /// taken from `room`.
    ///
    /// # Errors
    ///
    /// [`RecordError::TooLong`] when there is not enough room. Ids and names stand in the row once
    /// and in each member again, so a small row can stand for a lot of text.
    pub(crate) fn unpack(&self, room: &mut usize, out: &mut Vec<Event>) -> Result<(), RecordError> {
        let head = self.head();
        // The longest seq and time, with their sign.
        let envelope = r#"{"type":"assistant/chunk","seq":,"time":,"data":}"#.len() + 16 + 17;
        let most = self.count.saturating_mul(head.len() + envelope);
        let most = most.saturating_add(self.strings.text().len());
        let cost = most.saturating_add(self.count.saturating_mul(MEMBER_BYTES));
        let left = room.checked_sub(cost).filter(|_| most <= MAX_EVENT_BYTES);
        *room = left.ok_or(RecordError::TooLong)?;

        let mut text = String::with_capacity(most);
        let mut marks = Vec::with_capacity(self.count);
        let mut digits = itoa::Buffer::new();
        let mut time = self.time0;
        let mut gaps = self.dt.elements().into_iter().flatten().filter_map(Json::as_safe_integer);
        for (seq, string) in (self.seq0..).zip(self.strings.elements().into_iter().flatten()) {
            let start = text.len();
            text.push_str(r#"{"type":"assistant/chunk","seq":"#);
            text.push_str(digits.format(seq));
            text.push_str(r#","time":"#);
            text.push_str(digits.format(time));
            text.push_str(r#","data":"#);
            let data = text.len() - start;
            text.push_str(&head);
            text.push_str(string.text());
            text.push_str("}}}");
            marks.push((start, data, text.len() - start, Seq(seq), time));
            time += gaps.next().unwrap_or_default();
        }

        let name_start = r#"{"type":""#.len();
        let name = Span::new(name_start, name_start + "assistant/chunk".len());
        let text = Text::from(text);
        out.extend(marks.into_iter().map(|(start, data, len, seq, time)| {
            let data = Span::new(data, len - 1);
            Event::written(text.slice(start..start + len), name, seq, time, data)
        }));
        Ok(())
    }

    /// The part of a member's payload that is the same in all of them: all up to its string.
    fn head(&self) -> String {
        let (turn, step, index) = (self.turn.text(), self.step.text(), self.index.text());
        let chunk_type = self.tag.chunk_type();
        let mut head = format!(
            r#"{{"turn":{turn},"step":{step},"chunk":{{"type":"{chunk_type}","index":{index}"#
        );
        if let Some(call) = self.call {
            let _ = write!(head, r#","id":{}"#, call.id.text());
            if let Some(name) = call.name {
                let _ = write!(head, r#","name":{}"#, name.text());
            }
        }
        let _ = write!(head, r#","{}":"#, self.tag.string_key());
        head
    }
}
