//! One model request as it streams in.

use std::collections::HashMap;

use turnkeep_log::{
    Event, Text,
    json::{Json, JsonStr},
};

use super::{
    calls::Place,
    render::{cut, string},
    tool::Tool,
};

/// What an `assistant/chunk` says, read in one pass over its members.
#[derive(Default)]
pub(super) struct Chunk<'a> {
    pub(super) place: Place,
    pub(super) kind: Option<JsonStr<'a>>,
    index: Option<u64>,
    block_kind: Option<JsonStr<'a>>,
    block: Option<Json<'a>>,
    text: Option<JsonStr<'a>>,
    arguments: Option<JsonStr<'a>>,
    call: Option<JsonStr<'a>>,
    name: Option<JsonStr<'a>>,
    pub(super) usage: Option<Json<'a>>,
    pub(super) reason: Option<Json<'a>>,
}

impl<'a> Chunk<'a> {
    pub(super) fn read(data: Json<'a>) -> Option<Self> {
        let (mut turn, mut step, mut body) = (None, None, None);
        for member in data.members()? {
            match member.key.plain() {
                Some("turn") => turn = Some(member.value),
                Some("step") => step = Some(member.value),
                Some("chunk") => body = Some(member.value),
                _ => {}
            }
        }
        let mut chunk = Self { place: Place::at(turn, step), ..Self::default() };
        for member in body?.members()? {
            let value = member.value;
            match member.key.plain() {
                Some("type") => chunk.kind = value.as_str(),
                Some("index") => chunk.index = value.as_natural(),
                Some("blockType") => chunk.block_kind = value.as_str(),
                Some("block") => chunk.block = Some(value),
                Some("text") => chunk.text = value.as_str(),
                Some("argumentsDelta") => chunk.arguments = value.as_str(),
                Some("id") => chunk.call = value.as_str(),
                Some("name") => chunk.name = value.as_str(),
                Some("usage") => chunk.usage = Some(value),
                Some("reason") => chunk.reason = Some(value),
                _ => {}
            }
        }
        Some(chunk)
    }
}

/// The kinds of block that an answer is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Reasoning,
    Call,
    /// A kind that streams no text: it is shown once the message is there.
    Other,
}

impl Kind {
    pub(super) fn named(name: JsonStr<'_>) -> Self {
        match name.plain() {
            Some("text") => Self::Text,
            Some("reasoning") => Self::Reasoning,
            Some("tool-call") => Self::Call,
            _ => Self::Other,
        }
    }

    pub(super) fn of(block: Json<'_>) -> Self {
        string(block, "type").map_or(Self::Other, Self::named)
    }
}

/// The blocks that a model request has streamed so far, in the order they began in.
#[derive(Default)]
pub(super) struct Attempt {
    pub(super) blocks: Vec<Block>,
    /// Blocks by the stream's own number for them.
    by_index: HashMap<u64, usize>,
}

pub(super) struct Block {
    /// The stream's number for it, by which an answer is ordered.
    pub(super) index: u64,
    pub(super) kind: Kind,
    pub(super) words: Words,
    pub(super) started: i64,
    pub(super) ended: Option<i64>,
    /// Which of the answer's calls it asks for, once its id is known.
    pub(super) call: Option<Calling>,
}

/// The call a block asks for. The texts are insides of literals.
pub(super) struct Calling {
    pub(super) tool: usize,
    pub(super) id: Text,
    pub(super) name: Text,
}

/// A block's text, or a call's arguments, as the inside of a literal.
///
/// Deltas are a few bytes each, so they are joined as they come: a slice for each would cost more
/// than the copy, and keep alive the whole text that it is cut from.
pub(super) enum Words {
    Joined(String),
    Whole(Text),
}

impl std::ops::Deref for Words {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Joined(words) => words,
            Self::Whole(words) => words,
        }
    }
}

/// A call whose id has become known: the id, and which of the answer's calls it is.
pub(super) struct NewCall {
    pub(super) id: String,
    pub(super) tool: usize,
}

impl Attempt {
    /// Takes a chunk that is about a block; any other, or one that is malformed, changes nothing.
    pub(super) fn take(
        &mut self,
        event: &Event,
        chunk: &Chunk<'_>,
        tools: &mut Vec<Tool>,
    ) -> Option<NewCall> {
        match chunk.kind?.plain()? {
            "block-start" => {
                let kind = chunk.block_kind.map_or(Kind::Other, Kind::named);
                self.block(chunk.index?, kind, event.time());
                None
            }
            "text-delta" => self.write(event, chunk, Kind::Text, chunk.text?),
            "reasoning-delta" => self.write(event, chunk, Kind::Reasoning, chunk.text?),
            "tool-call-delta" => {
                let block = self.block(chunk.index?, Kind::Call, event.time())?;
                if block.kind != Kind::Call {
                    return None;
                }
                if let Some(arguments) = chunk.arguments {
                    block.write(arguments);
                }
                block.identify(event, chunk.call, chunk.name, tools)
            }
            "block-end" => {
                let whole = chunk.block;
                let kind = whole.map_or(Kind::Other, Kind::of);
                let block = self.block(chunk.index?, kind, event.time())?;
                block.ended = Some(event.time());
                block.end(event, whole?, kind, tools)
            }
            _ => None,
        }
    }

    fn write(
        &mut self,
        event: &Event,
        chunk: &Chunk<'_>,
        kind: Kind,
        text: JsonStr<'_>,
    ) -> Option<NewCall> {
        let block = self.block(chunk.index?, kind, event.time())?;
        if block.kind == kind {
            block.write(text);
        }
        None
    }

    /// The block with this number, begun now if it has not been.
    fn block(&mut self, index: u64, kind: Kind, now: i64) -> Option<&mut Block> {
        let at = *self.by_index.entry(index).or_insert(self.blocks.len());
        if at == self.blocks.len() {
            let words = Words::Joined(String::new());
            self.blocks.push(Block { index, kind, words, started: now, ended: None, call: None });
        }
        let block = self.blocks.get_mut(at)?;
        if block.kind == Kind::Other {
            block.kind = kind;
        }
        Some(block)
    }

    /// The blocks in the order of the answer, each with its part's index: parts are counted in the
    /// order they began in, so that no index changes while the answer grows.
    pub(super) fn ordered(&self) -> Vec<(usize, &Block)> {
        let mut blocks: Vec<_> = self.blocks.iter().enumerate().collect();
        blocks.sort_by_key(|(_, block)| block.index);
        blocks
    }
}

impl Block {
    fn write(&mut self, text: JsonStr<'_>) {
        if let Words::Joined(words) = &mut self.words {
            words.push_str(text.raw());
        }
    }

    /// Takes the whole block that ends the stream of it.
    fn end(
        &mut self,
        event: &Event,
        whole: Json<'_>,
        kind: Kind,
        tools: &mut Vec<Tool>,
    ) -> Option<NewCall> {
        if kind != self.kind {
            return None;
        }
        let key = if kind == Kind::Call { "arguments" } else { "text" };
        if let Some(words) = string(whole, key) {
            self.words = Words::Whole(cut(event, words.raw()));
        }
        if kind != Kind::Call {
            return None;
        }
        self.identify(event, string(whole, "id"), string(whole, "name"), tools)
    }

    fn identify(
        &mut self,
        event: &Event,
        id: Option<JsonStr<'_>>,
        name: Option<JsonStr<'_>>,
        tools: &mut Vec<Tool>,
    ) -> Option<NewCall> {
        let name = name.filter(|name| !name.is_empty()).map(|name| cut(event, name.raw()));
        if let Some(call) = &mut self.call {
            if let Some(name) = name.filter(|_| call.name.is_empty()) {
                call.name = name;
            }
            return None;
        }
        let id = id?;
        let tool = tools.len();
        tools.push(Tool::default());
        let name = name.unwrap_or_else(|| Text::from(""));
        self.call = Some(Calling { tool, id: cut(event, id.raw()), name });
        Some(NewCall { id: id.decode_lossy().into_owned(), tool })
    }
}
