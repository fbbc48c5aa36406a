//! Sessions too long to be played: built as an export file, brought in by `opencode import`.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Milliseconds between two messages.
const PACE: u64 = 1_000;

/// When the first message was written, in milliseconds since 1970 (October 2025).
const START: u64 = 1_760_000_000_000;

/// A session of any length in the form `opencode export` writes. The same settings give the same
/// bytes; the name makes its ids its own.
///
/// Each turn is a prompt followed by answers that call tools, the last one closing it. With the
/// defaults: 1000 messages, 17 answers a turn, about 3 KB a message.
///
/// ```
/// let export = turnkeep_test_opencode::LongSession::new("big").messages(50).to_json();
/// assert!(export.contains("\"sessionID\""));
/// ```
#[derive(Clone, Debug)]
pub struct LongSession {
    name: String,
    messages: usize,
    answers_per_turn: usize,
    tool_output: usize,
    diff: usize,
}

impl LongSession {
    /// A session of 1000 messages.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            messages: 1000,
            answers_per_turn: 17,
            tool_output: 2_000,
            diff: 1_000,
        }
    }

    /// How many messages it has in all, prompts and answers together.
    #[must_use]
    pub fn messages(mut self, count: usize) -> Self {
        self.messages = count;
        self
    }

    /// How many answers follow each prompt.
    #[must_use]
    pub fn answers_per_turn(mut self, count: usize) -> Self {
        self.answers_per_turn = count;
        self
    }

    /// About how many bytes each tool call printed.
    #[must_use]
    pub fn tool_output(mut self, bytes: usize) -> Self {
        self.tool_output = bytes;
        self
    }

    /// About how many bytes of patch each prompt carries in `summary.diffs`; 0 for no summary.
    #[must_use]
    pub fn diff(mut self, bytes: usize) -> Self {
        self.diff = bytes;
        self
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> String {
        self.make_id("ses", START, 0)
    }

    /// The export: `{"info": Session, "messages": [{info, parts}]}`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut prompt = String::new();
        let turn = self.answers_per_turn + 1;
        let messages: Vec<Value> = (0..self.messages)
            .map(|index| {
                let time = START + PACE * index as u64;
                let id = self.make_id("msg", time, 0);
                let place = index % turn;
                if place == 0 {
                    prompt.clone_from(&id);
                    self.prompt(&id, time, index / turn)
                } else {
                    let closing = place + 1 == turn || index + 1 == self.messages;
                    self.answer(&id, &prompt, time, closing)
                }
            })
            .collect();
        json!({ "info": self.session(), "messages": messages }).to_string()
    }

    fn session(&self) -> Value {
        json!({
            "id": self.id(),
            "slug": "long-session",
            "projectID": "global", // the import puts the project it runs in here
            "directory": "/project",
            "title": format!("Long session {}", self.name),
            "version": "1.18.34",
            "time": { "created": START, "updated": START + PACE * self.messages as u64 },
        })
    }

    fn prompt(&self, id: &str, time: u64, turn: usize) -> Value {
        let mut info = json!({
            "id": id,
            "sessionID": self.id(),
            "role": "user",
            "time": { "created": time },
            "agent": "build",
            "model": { "providerID": "scripted", "modelID": "scripted-coder" },
        });
        if self.diff > 0 {
            let patch = format!("@@ -0,0 +1,9 @@\n{}", lines("+added line", self.diff));
            let diff = json!({
                "file": format!("notes/{turn}.md"),
                "additions": patch.lines().count() - 1,
                "patch": patch,
                "deletions": 0,
                "status": "added",
            });
            info = with_fields(info, json!({ "summary": { "diffs": [diff] } }));
        }
        let text = format!("Prompt {turn} of {}: go on → ✓ 𝄞", self.name);
        let part = self.part(id, time, 1, json!({ "type": "text", "text": text }));
        json!({ "info": info, "parts": [part] })
    }

    fn answer(&self, id: &str, prompt: &str, time: u64, closing: bool) -> Value {
        let finish = if closing { "stop" } else { "tool-calls" };
        let tokens = json!({
            "input": 500, "output": 50, "reasoning": 0, "cache": { "read": 900, "write": 0 },
        });
        let info = json!({
            "id": id,
            "sessionID": self.id(),
            "role": "assistant",
            "parentID": prompt,
            "mode": "build",
            "agent": "build",
            "path": { "cwd": "/project", "root": "/project" },
            "cost": 0.001,
            "tokens": tokens,
            "modelID": "scripted-coder",
            "providerID": "scripted",
            "time": { "created": time, "completed": time + PACE / 2 },
            "finish": finish,
        });
        let span = json!({ "start": time, "end": time + PACE / 2 });
        let mut contents = vec![
            json!({ "type": "step-start" }),
            json!({ "type": "reasoning", "text": "Looking at what is there…", "time": span }),
        ];
        contents.push(if closing {
            json!({ "type": "text", "text": format!("Done with {id}."), "time": span })
        } else {
            json!({
                "type": "tool",
                "tool": "bash",
                "callID": format!("call_{id}"),
                "state": {
                    "status": "completed",
                    "input": { "command": "make check", "description": "Run the checks" },
                    "output": lines("line of output", self.tool_output),
                    "title": "Run the checks",
                    "metadata": { "exit": 0, "truncated": false },
                    "time": span,
                },
            })
        });
        contents.push(json!({
            "type": "step-finish", "reason": finish, "cost": 0.001, "tokens": tokens,
        }));
        let parts: Vec<Value> = (1..)
            .zip(contents)
            .map(|(counter, content)| self.part(id, time, counter, content))
            .collect();
        json!({ "info": info, "parts": parts })
    }

    fn part(&self, message: &str, time: u64, counter: u64, content: Value) -> Value {
        let id = self.make_id("prt", time, counter);
        let ids = json!({ "id": id, "sessionID": self.id(), "messageID": message });
        with_fields(content, ids)
    }

    /// An id as OpenCode makes them: twelve hex digits of time and counter, which put them in
    /// order, then fourteen that make them unique. Here those are a hash of the name.
    fn make_id(&self, kind: &str, time: u64, counter: u64) -> String {
        let place = (time * 0x1000 + counter) & 0xffff_ffff_ffff;
        let hash = self.name.bytes().chain(place.to_le_bytes()).fold(
            0xcbf2_9ce4_8422_2325_u64, // FNV-1a
            |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3),
        );
        format!("{kind}_{place:012x}{:014x}", hash & 0xff_ffff_ffff_ffff)
    }
}

fn with_fields(mut object: Value, more: Value) -> Value {
    if let (Value::Object(fields), Value::Object(more)) = (&mut object, more) {
        fields.extend(more);
    }
    object
}

/// Numbered lines, together at least `bytes` long.
fn lines(label: &str, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 40);
    for number in 1.. {
        if text.len() >= bytes {
            break;
        }
        let _ = writeln!(text, "{label} {number}: fünf → 5"); // a String takes everything
    }
    text
}
