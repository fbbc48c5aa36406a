//! Writes the events of a made-up session, in the shapes that an agent harness writes.

use serde_json::{Value, json};
use turnkeep_log::{CompleteError, Event, EventDraft, Seq, Text};

/// The model that the made-up sessions name.
const PROVIDER: &str = "demo";
const MODEL: &str = "scripted";

/// A session being written: its events so far, and a clock of its own.
#[derive(Debug)]
pub(crate) struct Script {
    events: Vec<Event>,
    time: i64,
    turn: u64,
    step: u64,
    calls: u64,
    problem: Option<CompleteError>,
}

/// A tool call and what came of it.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// The tool.
    pub(crate) name: &'a str,
    /// Its arguments.
    pub(crate) arguments: Value,
    /// What it answered.
    pub(crate) output: String,
    /// Whether it failed.
    pub(crate) failed: bool,
}

impl Script {
    /// An empty session whose clock starts at this time, in milliseconds since the epoch.
    pub(crate) fn starting_at(time: i64) -> Self {
        Self { events: Vec::new(), time, turn: 0, step: 0, calls: 0, problem: None }
    }

    /// The events.
    pub(crate) fn finish(self) -> Result<Vec<Event>, CompleteError> {
        self.problem.map_or(Ok(self.events), Err)
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, milliseconds: i64) {
        self.time += milliseconds;
    }

    /// Names the session.
    pub(crate) fn title(&mut self, title: &str) {
        self.log(
            "session/title",
            &json!({"title": title, "messageSeqs": [], "source": {"kind": "user"}}),
        );
    }

    /// Opens a turn with what a person says: blocks of text and images.
    pub(crate) fn prompt(&mut self, blocks: &[Value]) {
        self.turn += 1;
        self.step = 0;
        self.log("turn/start", &json!({"turn": self.turn}));
        let message = json!({
            "content": blocks,
            "source": {"kind": "user"},
            "role": "user",
            "id": format!("demo-user-{}", self.turn),
        });
        self.surface("user/message", &message, &[]);
    }

    /// One step of the model that thinks, perhaps says something, and calls tools.
    pub(crate) fn work(&mut self, thought: &str, said: Option<&str>, calls: &[Call<'_>]) {
        self.open_step();
        let mut blocks = vec![json!({"type": "reasoning", "text": thought})];
        blocks.extend(said.map(|said| json!({"type": "text", "text": said})));
        let ids: Vec<_> = calls.iter().map(|_| self.next_call()).collect();
        for (call, id) in calls.iter().zip(&ids) {
            let arguments = call.arguments.to_string();
            blocks.push(json!({
                "type": "tool-call", "id": id, "name": call.name, "arguments": arguments,
            }));
        }
        let sources = self.stream(&blocks, "tool-calls");
        self.settle(&blocks, &sources);
        for (call, id) in calls.iter().zip(&ids) {
            self.run(call, id);
        }
        self.close_step();
    }

    /// The model's last step of a turn: it answers, and the turn ends.
    pub(crate) fn answer(&mut self, text: &str) {
        self.open_step();
        let blocks = [json!({"type": "text", "text": text})];
        let sources = self.stream(&blocks, "stop");
        self.settle(&blocks, &sources);
        self.close_step();
        self.log("turn/end", &json!({"turn": self.turn, "reason": {"kind": "completed"}}));
    }

    /// An answer that stops in the middle, as when the power goes: nothing closes it.
    pub(crate) fn break_off(&mut self, text: &str) {
        self.open_step();
        self.chunk(&json!({"type": "block-start", "index": 0, "blockType": "text"}));
        self.deltas(0, "text-delta", text);
    }

    fn open_step(&mut self) {
        self.step += 1;
        self.log("step/start", &json!({"turn": self.turn, "step": self.step}));
        self.wait(400);
    }

    fn close_step(&mut self) {
        self.log("step/end", &json!({"turn": self.turn, "step": self.step}));
    }

    fn next_call(&mut self) -> String {
        self.calls += 1;
        format!("call_demo_{:04}", self.calls)
    }

    /// Writes the blocks as they would have streamed in; returns the seqs they took.
    fn stream(&mut self, blocks: &[Value], finish: &str) -> Vec<u64> {
        let first = self.events.len() as u64;
        for (index, block) in blocks.iter().enumerate() {
            let kind = block["type"].as_str().unwrap_or_default();
            self.chunk(&json!({"type": "block-start", "index": index, "blockType": kind}));
            match kind {
                "tool-call" => {
                    let arguments = block["arguments"].as_str().unwrap_or_default();
                    self.chunk(&json!({
                        "type": "tool-call-delta", "index": index, "id": block["id"],
                        "name": block["name"], "argumentsDelta": arguments,
                    }));
                }
                kind => {
                    let text = block["text"].as_str().unwrap_or_default();
                    self.deltas(index, &format!("{kind}-delta"), text);
                }
            }
            self.chunk(&json!({"type": "block-end", "index": index, "block": block}));
        }
        self.chunk(&json!({"type": "finish", "reason": {"kind": finish}}));
        (first..self.events.len() as u64).collect()
    }

    /// One delta a word, as models stream.
    fn deltas(&mut self, index: usize, kind: &str, text: &str) {
        for word in text.split_inclusive(' ') {
            self.wait(18);
            self.chunk(&json!({"type": kind, "index": index, "text": word}));
        }
    }

    fn chunk(&mut self, chunk: &Value) {
        self.log("assistant/chunk", &json!({"turn": self.turn, "step": self.step, "chunk": chunk}));
    }

    fn settle(&mut self, blocks: &[Value], sources: &[u64]) {
        let said: usize = blocks.iter().map(|block| block.to_string().len()).sum();
        let data = json!({
            "turn": self.turn,
            "step": self.step,
            "message": {
                "role": "assistant",
                "content": blocks,
                "source": {"kind": "model", "provider": PROVIDER, "model": MODEL},
                "id": format!("demo-assistant-{}-{}", self.turn, self.step),
            },
            "usage": {
                "inputTokens": 900 + 420 * self.turn,
                "outputTokens": said / 4,
                "cacheReadTokens": 380 * self.turn,
            },
        });
        self.surface("assistant/message", &data, sources);
    }

    fn run(&mut self, call: &Call<'_>, id: &str) {
        self.wait(30);
        self.log(
            "tool/call",
            &json!({
                "turn": self.turn, "step": self.step, "callId": id, "name": call.name,
                "arguments": call.arguments.to_string(),
            }),
        );
        let called = self.events.len() as u64 - 1;
        self.wait(240);
        let content = json!([{"type": "text", "text": call.output}]);
        let result = if call.failed {
            json!({"type": "tool-result", "toolCallId": id, "content": content, "isError": true})
        } else {
            json!({"type": "tool-result", "toolCallId": id, "content": content})
        };
        let data = json!({
            "turn": self.turn,
            "step": self.step,
            "message": {
                "source": {"kind": "tool", "callId": id},
                "content": [result],
                "role": "user",
                "id": format!("demo-result-{id}"),
            },
        });
        self.surface("tool/result", &data, &[called]);
    }

    fn surface(&mut self, event_type: &str, data: &Value, sources: &[u64]) {
        self.push(&if sources.is_empty() {
            json!({"type": event_type, "data": data, "surfaceOp": "append"})
        } else {
            json!({
                "type": event_type, "data": data,
                "sourceEventSeqs": sources, "surfaceOp": "append",
            })
        });
    }

    fn log(&mut self, event_type: &str, data: &Value) {
        self.push(&json!({"type": event_type, "data": data}));
    }

    fn push(&mut self, event: &Value) {
        self.wait(2);
        let seq = Seq(self.events.len() as u64);
        let event = EventDraft::parse(&Text::from(event.to_string()))
            .map_err(CompleteError::from)
            .and_then(|draft| draft.complete(seq, self.time));
        match event {
            Ok(event) => self.events.push(event),
            Err(problem) => self.problem = self.problem.take().or(Some(problem)),
        }
    }
}
