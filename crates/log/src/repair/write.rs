//! The closing events, spelled as the harness spells them.

use std::fmt::Write as _;

use super::{OpenTurn, Ordinal, calls::Call};
use crate::{
    event::{CompleteError, Event, EventDraft, EventError},
    id::Seq,
    json::{JsonText, write_number, write_str},
    text::Text,
};

/// What the model is told about a call that was cut short.
struct Verdict {
    name: &'static str,
    code: &'static str,
    text: &'static str,
}

/// The text is the harness's own, found in the logs it wrote (MIT licensed): a log closed here and
/// one closed there are the same bytes.
const OUTCOME_UNKNOWN: Verdict = Verdict {
    name: "ToolOutcomeUnknownError",
    code: "TOOL_OUTCOME_UNKNOWN",
    text: "The tool call was interrupted after it was recorded, but no result was durably \
           recorded. Its outcome is unknown. Decide whether to retry from the tool semantics: \
           retry only if the operation is read-only or idempotent; if it may have side effects, \
           first verify external state or ask the user. Do not retry blindly.",
};

const NOT_STARTED: Verdict = Verdict {
    name: "ToolNotStartedError",
    code: "TOOL_NOT_STARTED",
    text: "The session was interrupted before this tool call began, so the tool never ran and \
           had no effect. If the result is still needed, the call can safely be made again.",
};

pub(super) fn closers(open: &OpenTurn, next: Seq, time: i64) -> Result<Vec<Event>, CompleteError> {
    let mut events = Vec::new();
    for call in open.calls.waiting() {
        let seq = next.plus(events.len());
        events.push(result(open.turn, call, seq)?.complete(seq, time)?);
    }
    if let Some(step) = open.step {
        let mut data = start(open.turn, Some(step));
        end(&mut data);
        events.push(draft("step/end", data)?.complete(next.plus(events.len()), time)?);
    }
    let mut data = start(open.turn, None);
    data.push_str("\"reason\":{\"kind\":\"interrupted\"}}");
    events.push(draft("turn/end", data)?.complete(next.plus(events.len()), time)?);
    Ok(events)
}

fn result(turn: Ordinal, call: &Call, seq: Seq) -> Result<EventDraft, EventError> {
    let verdict = if call.started.is_some() { OUTCOME_UNKNOWN } else { NOT_STARTED };
    let id = &call.id;
    let mut data = start(turn, Some(call.step));
    let _ = write!(
        data,
        "\"message\":{{\"id\":\"interrupted-tool-result-{id}-{seq}\",\"role\":\"user\",\
         \"source\":{{\"kind\":\"tool\",\"callId\":\"{id}\"}},\
         \"content\":[{{\"type\":\"tool-result\",\"toolCallId\":\"{id}\",\"isError\":true,\
         \"content\":[{{\"type\":\"text\",\"text\":"
    );
    write_str(&mut data, verdict.text);
    let _ = write!(
        data,
        "}}]}}]}},\"error\":{{\"name\":\"{}\",\"code\":\"{}\"}}}}",
        verdict.name, verdict.code
    );
    let append = JsonText::parse(&Text::from("\"append\""))?;
    let draft = draft("tool/result", data)?.surface_op(&append);
    Ok(match call.started {
        Some(started) => draft.source_event_seqs(&[started]),
        None => draft,
    })
}

fn draft(event_type: &str, data: String) -> Result<EventDraft, EventError> {
    Ok(EventDraft::new(event_type, &JsonText::parse(&Text::from(data))?))
}

/// The start of a payload: where it belongs, as far as that has a number, and a comma.
fn start(turn: Ordinal, step: Option<Ordinal>) -> String {
    let mut data = String::from("{");
    let mut ordinal = |key: &str, ordinal: Ordinal| {
        if let Some(number) = ordinal.0 {
            let _ = write!(data, "\"{key}\":");
            write_number(&mut data, number);
            data.push(',');
        }
    };
    ordinal("turn", turn);
    if let Some(step) = step {
        ordinal("step", step);
    }
    data
}

/// Ends a payload that holds nothing but where it belongs.
fn end(data: &mut String) {
    if data.ends_with(',') {
        data.pop();
    }
    data.push('}');
}
