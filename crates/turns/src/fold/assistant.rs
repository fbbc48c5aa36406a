//! An answer of the model: while it streams in, and once its message is there.

use std::collections::HashMap;

use turnkeep_log::{
    Event, Text,
    json::{Json, JsonStr},
};

use super::{
    attempt::{Attempt, Block, Chunk, Kind, NewCall},
    calls::Place,
    failure,
    record::{Around, PartNumber, Record},
    render::{Writer, cut, string},
    tool::{Arguments, Asked, Tool},
    user::{attachment, file},
};

/// Who answered. Both are insides of literals, empty while the log has not said.
#[derive(Clone)]
pub(super) struct Route {
    pub(super) provider: Text,
    pub(super) model: Text,
}

/// One model request and what became of it.
pub(super) struct Assistant {
    pub(super) place: Place,
    /// The inside of the literal that spells the id of the message it answers.
    parent: Option<Text>,
    route: Route,
    usage: Option<Text>,
    /// Why the model stopped, in OpenCode's words: the inside of a literal.
    finish: Option<Text>,
    /// The error as it will be rendered.
    error: Option<Text>,
    completed: Option<i64>,
    /// When it became too late for an answer to its calls.
    closed: Option<i64>,
    tools: Vec<Tool>,
    content: Content,
}

enum Content {
    /// The request runs, or has ended and its message is still to come.
    Streamed { attempt: Attempt, over: bool },
    /// The message is there. The notes go with its blocks, one for each.
    Settled { message: Event, notes: Vec<Note> },
}

/// What a settled block keeps of its time in the stream.
struct Note {
    /// The index of its part.
    part: usize,
    started: i64,
    ended: i64,
    /// Which of the answer's calls it asks for.
    tool: Option<usize>,
}

impl Assistant {
    pub(super) fn new(place: Place, parent: Option<Text>, route: Route) -> Self {
        Self {
            place,
            parent,
            route,
            usage: None,
            finish: None,
            error: None,
            completed: None,
            closed: None,
            tools: Vec::new(),
            content: Content::Streamed { attempt: Attempt::default(), over: false },
        }
    }

    pub(super) fn tool(&mut self, at: usize) -> Option<&mut Tool> {
        self.tools.get_mut(at)
    }

    /// Whether chunks still belong to it.
    pub(super) fn is_streaming(&self) -> bool {
        matches!(self.content, Content::Streamed { over: false, .. })
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Whether anything of it can be shown.
    pub(super) fn has_content(&self) -> bool {
        match &self.content {
            Content::Streamed { attempt, .. } => !attempt.blocks.is_empty(),
            Content::Settled { .. } => true,
        }
    }

    pub(super) fn take(&mut self, event: &Event, chunk: &Chunk<'_>) -> Option<NewCall> {
        let Content::Streamed { attempt, over } = &mut self.content else { return None };
        match chunk.kind?.plain()? {
            "usage" => {
                self.usage = chunk.usage.map(|usage| cut(event, usage.text()));
                None
            }
            "finish" => {
                *over = true;
                self.finish(event, chunk.reason?);
                None
            }
            _ => attempt.take(event, chunk, &mut self.tools),
        }
    }

    /// Ends the request for the reason of its `finish` chunk.
    fn finish(&mut self, event: &Event, reason: Json<'_>) {
        let Some(kind) = string(reason, "kind") else { return };
        let failure = reason.get("failure").unwrap_or(reason);
        match kind.plain() {
            Some("error") => self.error = Some(failure::failed(failure, &self.route.provider)),
            Some("aborted") => {
                let message = string(failure, "message").map_or("Aborted", JsonStr::raw);
                self.error = Some(failure::aborted(message));
            }
            Some("max-tokens") => self.finish = Some(Text::from("length")),
            _ => self.finish = Some(cut(event, kind.raw())),
        }
    }

    /// Gives up a request, since another one takes its place: nothing of it will be answered.
    pub(super) fn retry(&mut self, failure: Json<'_>, at: i64) {
        if let Content::Streamed { over, .. } = &mut self.content {
            *over = true;
        }
        if self.error.is_none() {
            self.error = Some(failure::failed(failure, &self.route.provider));
        }
        self.close(at);
    }

    /// Takes the message that the request came to. Says which calls were not known before.
    pub(super) fn settle(&mut self, event: &Event, created: i64) -> Vec<NewCall> {
        let data = event.data();
        if let Some(source) = data.path(&["message", "source"]) {
            let literal = |key| string(source, key).map(|text| cut(event, text.raw()));
            self.route.provider = literal("provider").unwrap_or(self.route.provider.clone());
            self.route.model = literal("model").unwrap_or(self.route.model.clone());
        }
        if let Some(usage) = data.get("usage") {
            self.usage = Some(cut(event, usage.text()));
        }
        let interrupted = data.get("interrupted").and_then(Json::as_bool) == Some(true);
        self.error = interrupted.then(|| failure::aborted("Aborted"));
        let attempt = match &mut self.content {
            Content::Streamed { attempt, .. } => std::mem::take(attempt),
            Content::Settled { .. } => Attempt::default(),
        };
        let (notes, new) = notes(&attempt, event, created, &mut self.tools);
        self.content = Content::Settled { message: event.clone(), notes };
        new
    }

    /// Its step is over. Says whether that was news.
    pub(super) fn complete(&mut self, at: i64) -> bool {
        let was_open = self.completed.is_none();
        self.completed.get_or_insert(at);
        was_open
    }

    /// Its turn is over, or another request has taken its place. Says whether that changes anything
    /// about it: it does where a call is left without an answer.
    pub(super) fn close(&mut self, at: i64) -> bool {
        let was_open = self.closed.is_none();
        self.closed.get_or_insert(at);
        self.complete(at) || (was_open && self.tools.iter().any(|tool| tool.result.is_none()))
    }

    /// Its turn came to an end with it, for this reason.
    ///
    /// The last answer of a completed turn has stopped, whatever it asked for: clients take one
    /// that finished with tool calls for one that goes on.
    pub(super) fn end(&mut self, event: &Event, reason: Json<'_>) {
        let Some(kind) = string(reason, "kind") else { return };
        let goes_on = self.finish.as_ref().is_none_or(|finish| &**finish == "tool-calls");
        match kind.plain() {
            Some("completed") if self.error.is_some() => {}
            Some("completed") if goes_on => self.finish = Some(Text::from("stop")),
            Some("completed") => {}
            Some("max-tokens") => self.finish = Some(Text::from("length")),
            Some("error") => {
                let facts = failure::of_turn(reason);
                self.error = Some(failure::failed(facts, &self.route.provider));
            }
            Some("aborted" | "disposed") => self.error = Some(failure::aborted("Aborted")),
            Some("interrupted") => self.error = Some(failure::aborted("Interrupted")),
            _ => self.finish = Some(cut(event, kind.raw())),
        }
    }

    pub(super) fn size(&self) -> usize {
        let results: usize = self.tools.iter().map(Tool::size).sum();
        results
            + match &self.content {
                Content::Settled { message, .. } => message.text().len(),
                Content::Streamed { attempt, .. } => {
                    attempt.blocks.iter().map(|block| block.words.len() + 256).sum()
                }
            }
    }

    /// The members of `info` after its time.
    pub(super) fn info(&self, record: &Record, out: &mut Writer) {
        out.key("role").literal("assistant");
        times(record.created, self.completed, out);
        if let Some(error) = &self.error {
            out.key("error").raw(error);
        }
        if let Some(parent) = &self.parent {
            out.key("parentID").literal(parent);
        }
        out.key("modelID").literal(&self.route.model);
        out.key("providerID").literal(&self.route.provider);
        let usage = self.usage.as_ref().and_then(|usage| Json::parse(usage).ok());
        spent(usage, out);
        if let (Some(finish), Some(_)) = (&self.finish, self.completed) {
            out.key("finish").literal(finish);
        }
    }

    pub(super) fn parts(&self, record: &Record, around: &Around<'_>, out: &mut Writer) {
        out.key("parts").open_array();
        match &self.content {
            Content::Streamed { attempt, .. } => {
                for (part, block) in attempt.ordered() {
                    self.streamed(record, around, part, block, out);
                }
            }
            Content::Settled { message, notes } => {
                let blocks = blocks(message).zip(notes);
                for (block, note) in blocks {
                    self.settled(record, around, block, note, out);
                }
            }
        }
        out.close_array();
    }

    fn streamed(
        &self,
        record: &Record,
        around: &Around<'_>,
        part: usize,
        block: &Block,
        out: &mut Writer,
    ) {
        let ended = block.ended.or(self.completed);
        match (block.kind, &block.call) {
            (Kind::Text | Kind::Reasoning, _) => {
                let kind = if block.kind == Kind::Text { "text" } else { "reasoning" };
                record.open_part(around, PartNumber(part), kind, out);
                out.key("text").literal(&block.words);
                span(block.started, ended, out);
                out.close();
            }
            (Kind::Call, Some(call)) => {
                let Some(tool) = self.tools.get(call.tool) else { return };
                let literal = format!("\"{}\"", &*block.words);
                let arguments = match (ended, Json::parse(&literal)) {
                    (Some(_), Ok(literal)) => Arguments::Whole(literal),
                    _ => Arguments::Streaming,
                };
                let (id, name, at) = (&call.id, &call.name, block.started);
                let asked = Asked { id, name, arguments, at, closed: self.closed };
                record.open_part(around, PartNumber(part), "tool", out);
                tool.part(&asked, record, around, part, out);
                out.close();
            }
            (Kind::Call, None) | (Kind::Other, _) => {}
        }
    }

    fn settled(
        &self,
        record: &Record,
        around: &Around<'_>,
        block: Json<'_>,
        note: &Note,
        out: &mut Writer,
    ) {
        let kind = Kind::of(block);
        match kind {
            Kind::Text | Kind::Reasoning => {
                let Some(text) = string(block, "text") else { return };
                let kind = if kind == Kind::Text { "text" } else { "reasoning" };
                record.open_part(around, PartNumber(note.part), kind, out);
                out.key("text").literal(text.raw());
                span(note.started, Some(note.ended), out);
            }
            Kind::Call => {
                let tool = note.tool.and_then(|tool| self.tools.get(tool));
                let (Some(tool), Some(id)) = (tool, string(block, "id")) else { return };
                let asked = Asked {
                    id: id.raw(),
                    name: string(block, "name").map_or("", JsonStr::raw),
                    arguments: block.get("arguments").map_or(Arguments::Missing, Arguments::Whole),
                    at: note.started,
                    closed: self.closed,
                };
                record.open_part(around, PartNumber(note.part), "tool", out);
                tool.part(&asked, record, around, note.part, out);
            }
            Kind::Other => {
                let Some(image) = attachment(block) else { return };
                record.open_part(around, PartNumber(note.part), "file", out);
                file(image, out);
            }
        }
        out.close();
    }
}

/// The blocks of an `assistant/message`.
fn blocks(message: &Event) -> impl Iterator<Item = Json<'_>> {
    let content = message.data().path(&["message", "content"]).and_then(Json::elements);
    content.into_iter().flatten()
}

/// Finds each block of the message again in what was streamed: calls by their id, the others in
/// their order. So a part keeps its index and its times, and a call what has become of it, when
/// the message leaves blocks out.
fn notes(
    attempt: &Attempt,
    message: &Event,
    created: i64,
    tools: &mut Vec<Tool>,
) -> (Vec<Note>, Vec<NewCall>) {
    let streamed = attempt.ordered();
    let of = |kind| streamed.iter().filter(move |(_, block)| block.kind == kind);
    let (mut texts, mut thoughts, mut others) =
        (of(Kind::Text), of(Kind::Reasoning), of(Kind::Other));
    // The newest first: several blocks may have one id.
    let mut calls: HashMap<&str, Vec<(usize, &Block)>> = HashMap::new();
    for &(part, block) in of(Kind::Call).rev() {
        if let Some(call) = &block.call {
            calls.entry(&call.id).or_default().push((part, block));
        }
    }
    let mut next = streamed.len();
    let (mut notes, mut new) = (Vec::new(), Vec::new());
    for block in blocks(message) {
        let kind = Kind::of(block);
        let id = if kind == Kind::Call { string(block, "id") } else { None };
        let found = match kind {
            Kind::Text => texts.next().copied(),
            Kind::Reasoning => thoughts.next().copied(),
            Kind::Call => id.and_then(|id| calls.get_mut(id.raw())?.pop()),
            Kind::Other => others.next().copied(),
        };
        let known = found.and_then(|(_, block)| Some(block.call.as_ref()?.tool));
        let tool = known.or_else(|| {
            let id = id?.decode_lossy().into_owned();
            tools.push(Tool::default());
            new.push(NewCall { id, tool: tools.len() - 1 });
            Some(tools.len() - 1)
        });
        let (part, started, ended) =
            found.map_or((next, created, None), |(part, block)| (part, block.started, block.ended));
        next += usize::from(found.is_none());
        notes.push(Note { part, started, ended: ended.unwrap_or(message.time()), tool });
    }
    (notes, new)
}

/// A record's `time`.
pub(super) fn times(created: i64, completed: Option<i64>, out: &mut Writer) {
    out.key("time").open();
    out.key("created").integer(created);
    if let Some(completed) = completed {
        out.key("completed").integer(completed);
    }
    out.close();
}

/// A part's `time`.
pub(super) fn span(start: i64, end: Option<i64>, out: &mut Writer) {
    out.key("time").open();
    out.key("start").integer(start);
    if let Some(end) = end {
        out.key("end").integer(end);
    }
    out.close();
}

/// What an answer took: `cost`, which no log knows, and `tokens`. The counts of a log are disjoint,
/// as OpenCode's are.
pub(super) fn spent(usage: Option<Json<'_>>, out: &mut Writer) {
    let count = |key: &str| {
        let count = usage.and_then(|usage| usage.get(key));
        count.filter(|count| count.as_f64().is_some()).map_or("0", Json::text)
    };
    out.key("cost").raw("0");
    out.key("tokens").open();
    out.key("input").raw(count("inputTokens"));
    out.key("output").raw(count("outputTokens"));
    out.key("reasoning").raw(count("reasoningTokens"));
    out.key("cache").open();
    out.key("read").raw(count("cacheReadTokens"));
    out.key("write").raw(count("cacheWriteTokens"));
    out.close();
    out.close();
}
