//! Turns and steps: which events belong to which answer, and what the end of a turn says of it.

use turnkeep_log::{
    Event, Seq, Text,
    json::{Json, JsonStr},
};

use super::{
    Fold,
    assistant::{Assistant, Route},
    attempt::{Chunk, NewCall},
    calls::{Place, Shown},
    record::Body,
    render::{cut, replaces, string},
    tool::{Tool, call_id},
};

/// A turn that has not ended. The numbers are places in the list of records.
pub(super) struct Turn {
    /// Where its records begin.
    pub(super) first: usize,
    /// Where those begin that no step's end has completed.
    step: usize,
    /// The inside of the literal that spells the id of the message its answers answer.
    prompt: Option<Text>,
    /// Its newest answer, shown or not.
    last: Option<usize>,
    /// The calls that run.
    running: Vec<Shown>,
}

impl Turn {
    fn new(first: usize) -> Self {
        Self { first, step: first, prompt: None, last: None, running: Vec::new() }
    }

    /// Notes a message of the turn. What a person writes while the turn runs is what the answers
    /// after it answer; of messages that nobody wrote, the first is what started the turn.
    pub(super) fn prompt(&mut self, id: &Text, authored: bool) {
        if authored || self.prompt.is_none() {
            self.prompt = Some(id.clone());
        }
    }
}

impl Fold {
    pub(super) fn turn_start(&mut self, event: &Event) {
        self.blank = false;
        // A log whose writer died can go on without an end of the turn it died in.
        if let Some(turn) = self.turn.take() {
            self.close(turn.first, event.time());
        }
        self.attempt = None;
        self.turn = Some(Turn::new(self.records.len()));
    }

    pub(super) fn step_start(&mut self) {
        self.attempt = None;
    }

    pub(super) fn step_end(&mut self, event: &Event) {
        self.attempt = None;
        let next = self.records.len();
        let Some(turn) = &mut self.turn else { return };
        let first = std::mem::replace(&mut turn.step, next);
        self.each_answer(first, |answer| answer.complete(event.time()));
    }

    /// Ends the turn. What it ended with is said by its last answer.
    ///
    /// That may be a request that came to nothing, when it failed or the turn was broken off. A
    /// turn that failed before the model began to answer gets an answer that says so.
    pub(super) fn turn_end(&mut self, event: &Event) {
        self.attempt = None;
        let Some(turn) = self.turn.take() else { return };
        if let Some(reason) = event.data().get("reason") {
            let kind = string(reason, "kind").and_then(JsonStr::plain);
            let broken = matches!(kind, Some("error" | "aborted" | "disposed" | "interrupted"));
            let last = match turn.last.filter(|&at| broken || self.is_outcome(at)) {
                None if kind == Some("error") => {
                    Some(self.answer(event, Place::default(), turn.prompt))
                }
                None => (turn.first..self.records.len()).rev().find(|&at| self.is_outcome(at)),
                last => last,
            };
            if let Some(last) = last {
                self.show(last);
                if let Some(answer) = self.assistant(last) {
                    answer.end(event, reason);
                }
            }
        }
        self.close(turn.first, event.time());
    }

    /// Whether this is an answer that came to something, be it an error.
    fn is_outcome(&self, at: usize) -> bool {
        self.records.get(at).is_some_and(|record| match &record.body {
            Body::Assistant(answer) => record.shown || answer.has_failed(),
            _ => false,
        })
    }

    fn close(&mut self, first: usize, at: i64) {
        self.each_answer(first, |answer| answer.close(at));
    }

    /// Does something to every answer from this place on that says whether it changed the answer.
    fn each_answer(&mut self, first: usize, mut change: impl FnMut(&mut Assistant) -> bool) {
        for at in first..self.records.len() {
            let Some(record) = self.records.get_mut(at) else { return };
            if let Body::Assistant(answer) = &mut record.body
                && change(answer)
            {
                self.touch(at);
            }
        }
    }

    pub(super) fn chunk(&mut self, event: &Event) {
        let Some(chunk) = Chunk::read(event.data()) else { return };
        let open = self.attempt.filter(|&at| {
            let answer = self.assistant(at);
            answer.is_some_and(|answer| answer.is_streaming() && answer.place == chunk.place)
        });
        let at = open.unwrap_or_else(|| self.begin(event, chunk.place));
        let Some(answer) = self.assistant(at) else { return };
        let new = answer.take(event, &chunk);
        let (shown, place) = (answer.has_content(), answer.place);
        self.ask(at, place, new);
        if shown {
            self.show(at);
        }
    }

    pub(super) fn retry(&mut self, event: &Event) {
        let place = Place::of(event.data());
        let Some(at) = self.attempt else { return };
        if let Some(answer) = self.assistant(at).filter(|answer| answer.place == place) {
            answer.retry(event.data().get("failure").unwrap_or(event.data()), event.time());
            self.attempt = None;
        }
    }

    pub(super) fn assistant_message(&mut self, event: &Event) {
        let place = Place::of(event.data());
        let open = self.attempt.filter(|&at| self.is_message_of(at, event, place));
        let at = open.unwrap_or_else(|| self.begin(event, place));
        self.attempt = None;
        let Some(record) = self.records.get_mut(at) else { return };
        let created = record.created;
        let Body::Assistant(answer) = &mut record.body else { return };
        let new = answer.settle(event, created);
        if self.turn.is_none() {
            answer.complete(event.time());
        }
        self.touch(at);
        self.ask(at, place, new);
        self.show(at);
    }

    /// Whether the message is what this request came to. One that failed has a message only when
    /// it was interrupted, or when the message says that it was made of its chunks.
    fn is_message_of(&self, at: usize, event: &Event, place: Place) -> bool {
        let Some(record) = self.records.get(at) else { return false };
        let Body::Assistant(answer) = &record.body else { return false };
        let interrupted = event.data().get("interrupted").and_then(Json::as_bool) == Some(true);
        answer.place == place
            && (!answer.has_failed() || interrupted || first_source(event) == Some(record.seq))
    }

    pub(super) fn tool_call(&mut self, event: &Event) {
        let data = event.data();
        let Some(id) = string(data, "callId") else { return };
        let Some(shown) = self.calls.start(&id.decode_lossy(), Place::of(data)) else { return };
        if let Some(tool) = self.tool(shown) {
            tool.called = Some(event.time());
        }
        if let Some(turn) = &mut self.turn {
            turn.running.push(shown);
        }
    }

    /// Fills the part of the call. A result that replaces another one is how the model's view of
    /// an old output is cut down; a person keeps what there was.
    pub(super) fn tool_result(&mut self, event: &Event) {
        if replaces(event) {
            return;
        }
        let Some(id) = call_id(event.data()) else { return };
        let place = Place::of(event.data());
        let Some(shown) = self.calls.answer(&id.decode_lossy(), place) else { return };
        if let Some(tool) = self.tool(shown) {
            tool.result = Some(event.clone());
        }
        if let Some(turn) = &mut self.turn {
            turn.running.retain(|running| *running != shown);
        }
    }

    /// Notes which call started a workflow: the one that runs, when there is only one.
    pub(super) fn workflow_start(&mut self, event: &Event) {
        let Some([call]) = self.turn.as_ref().map(|turn| turn.running.as_slice()) else { return };
        if let Some(run) = string(event.data(), "runId") {
            self.workflows.insert(run.decode_lossy().into_owned(), *call);
        }
    }

    pub(super) fn workflow_end(&mut self, event: &Event) {
        if let Some(run) = string(event.data(), "runId") {
            self.workflows.remove(&*run.decode_lossy());
        }
    }

    /// Notes the session a workflow started, the first of several, with the call.
    pub(super) fn workflow_agent(&mut self, event: &Event) {
        let data = event.data();
        let (Some(run), Some(child)) = (string(data, "runId"), string(data, "childId")) else {
            return;
        };
        let Some(call) = self.workflows.get(&*run.decode_lossy()).copied() else { return };
        if let Some(tool) = self.tool(call) {
            tool.child.get_or_insert_with(|| cut(event, child.raw()));
        }
    }

    /// Notes which model is asked from here on.
    pub(super) fn route(&mut self, config: Option<Json<'_>>) {
        let Some(config) = config else { return };
        let literal = |key| string(config, key).map(|text| Text::from(text.raw()));
        if let (Some(provider), Some(model)) = (literal("provider"), literal("model")) {
            self.route = Route { provider, model };
        }
    }

    /// Begins an answer that is not shown yet. One whose message has not come has none any more.
    fn begin(&mut self, event: &Event, place: Place) -> usize {
        if let Some(last) = self.attempt.and_then(|at| self.assistant(at)) {
            last.close(event.time());
        }
        let parent = self.turn.as_ref().and_then(|turn| turn.prompt.clone());
        let at = self.answer(event, place, parent);
        self.attempt = Some(at);
        if let Some(turn) = &mut self.turn {
            turn.last = Some(at);
        }
        at
    }

    fn answer(&mut self, event: &Event, place: Place, parent: Option<Text>) -> usize {
        let answer = Assistant::new(place, parent, self.route.clone());
        let id = format!("asst:{}", event.seq());
        self.add(event, Text::from(&*id), id, false, Body::Assistant(Box::new(answer)))
    }

    fn ask(&mut self, record: usize, place: Place, new: impl IntoIterator<Item = NewCall>) {
        for call in new {
            self.calls.ask(call.id, Shown { record, tool: call.tool }, place);
        }
    }

    /// The answer at this place, which the caller is about to change.
    fn assistant(&mut self, at: usize) -> Option<&mut Assistant> {
        self.touch(at);
        match &mut self.records.get_mut(at)?.body {
            Body::Assistant(answer) => Some(answer),
            _ => None,
        }
    }

    fn tool(&mut self, shown: Shown) -> Option<&mut Tool> {
        self.assistant(shown.record)?.tool(shown.tool)
    }
}

/// The first of the events that the message says it was made of.
fn first_source(event: &Event) -> Option<Seq> {
    event.source_event_seqs()?.elements()?.next()?.as_natural().map(Seq)
}

/// The string that a member spells, with its literal's inside.
pub(super) fn named<'a>(data: Json<'a>, key: &str) -> Option<(JsonStr<'a>, String)> {
    let name = string(data, key).filter(|name| !name.is_empty())?;
    Some((name, name.decode_lossy().into_owned()))
}
