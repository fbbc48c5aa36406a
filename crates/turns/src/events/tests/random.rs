//! Streams in any order against the plainest model: parts in a list.

use proptest::{collection::vec, prelude::*};

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Update {
        at: At,
        kind: &'static str,
        words: &'static str,
        time: &'static str,
    },
    Delta {
        at: At,
        words: &'static str,
    },
    RemovePart(At),
    RemoveMessage(At),
    Finish(At),
    /// Its message is answered.
    Answer(At),
    DeleteSession(At),
    Clear,
    /// Takes a snapshot, to be looked at when everything has happened.
    Snapshot,
}

/// A session, a message, a part.
type At = (u8, u8, u8);

fn at() -> impl Strategy<Value = At> {
    (0..2_u8, 0..2_u8, 0..3_u8)
}

fn step() -> impl Strategy<Value = Step> {
    let words = || prop::sample::select(vec!["", "a", "bc", "\"\\", "\u{1f600}\n"]);
    let kind = prop::sample::select(vec!["text", "text", "reasoning", "tool"]);
    let time = prop::sample::select(vec![
        r#"{"start":1}"#,
        r#"{"start":1}"#,
        r#"{"start":1,"end":2}"#,
        r#"{"end":null}"#,
        "null",
    ]);
    prop_oneof![
        6 => (at(), kind, words(), time)
            .prop_map(|(at, kind, words, time)| Step::Update { at, kind, words, time }),
        8 => (at(), words()).prop_map(|(at, words)| Step::Delta { at, words }),
        1 => at().prop_map(Step::RemovePart),
        1 => at().prop_map(Step::RemoveMessage),
        1 => at().prop_map(Step::Finish),
        1 => at().prop_map(Step::Answer),
        1 => at().prop_map(Step::DeleteSession),
        1 => Just(Step::Clear),
        3 => Just(Step::Snapshot),
    ]
}

fn ids((session, message, part): At) -> [String; 3] {
    [format!("ses_{session}"), format!("msg_{message}"), format!("prt_{part}")]
}

impl Step {
    fn event(&self) -> Option<Text> {
        let names = |at: At| {
            let [session, message, part] = ids(at);
            json!({"sessionID": session, "messageID": message, "partID": part})
        };
        Some(match *self {
            Self::Update { at, kind, words, time } => {
                event("message.part.updated", &json!({"part": told(at, kind, words, time)}))
            }
            Self::Delta { at, words } => {
                let mut body = names(at);
                body["field"] = json!("text");
                body["delta"] = json!(words);
                event("message.part.delta", &body)
            }
            Self::RemovePart(at) => event("message.part.removed", &names(at)),
            Self::RemoveMessage(at) => event("message.removed", &names(at)),
            Self::Finish(at) => {
                let [session, message, _] = ids(at);
                let info = json!({"id": message, "role": "assistant", "time": {"completed": 1}});
                event("message.updated", &json!({"sessionID": session, "info": info}))
            }
            Self::Answer(at) => {
                let [session, message, _] = ids(at);
                let info = json!({"id": "msg_9", "role": "assistant", "parentID": message});
                event("message.updated", &json!({"sessionID": session, "info": info}))
            }
            Self::DeleteSession(at) => event("session.deleted", &json!({"sessionID": ids(at)[0]})),
            Self::Clear | Self::Snapshot => return None,
        })
    }
}

/// A part as an event tells of it.
fn told(at: At, kind: &str, words: &str, time: &str) -> Value {
    let [session, message, part] = ids(at);
    let time: Value = serde_json::from_str(time).unwrap();
    json!({
        "id": part, "sessionID": session, "messageID": message,
        "type": kind, "text": words, "time": time,
    })
}

/// What is open: where, and the part as a client has it.
#[derive(Clone, Debug, Default)]
struct Model(Vec<(At, Value)>);

impl Model {
    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Update { at, kind, words, time } => {
                self.0.retain(|(other, _)| *other != at);
                if kind != "tool" && !time.contains('2') {
                    self.0.push((at, told(at, kind, words, time)));
                }
            }
            Step::Delta { at, words } => {
                for (_, part) in self.0.iter_mut().filter(|(other, _)| *other == at) {
                    part["text"] = json!(part["text"].as_str().unwrap().to_owned() + words);
                }
            }
            Step::RemovePart(at) => self.0.retain(|(other, _)| *other != at),
            Step::RemoveMessage(at) | Step::Finish(at) | Step::Answer(at) => {
                self.0.retain(|(other, _)| (other.0, other.1) != (at.0, at.1));
            }
            Step::DeleteSession(at) => self.0.retain(|(other, _)| other.0 != at.0),
            Step::Clear => self.0.clear(),
            Step::Snapshot => {}
        }
    }

    /// The parts of a message that are open, over those that are listed, in the order of ids.
    fn over(&self, listed: &[(At, Value)]) -> Vec<Value> {
        let Some(&((session, message, _), _)) = listed.first() else { return Vec::new() };
        let mut parts: Vec<(At, Value)> = listed.to_vec();
        for (at, open) in &self.0 {
            match parts.iter_mut().find(|(other, _)| other == at) {
                Some((_, part)) => {
                    part["text"] = open["text"].clone();
                    if let Some(time) = part["time"].as_object_mut()
                        && !time.get("end").is_none_or(Value::is_null)
                    {
                        time.remove("end");
                    }
                }
                None if (at.0, at.1) == (session, message) => parts.push((*at, open.clone())),
                None => {}
            }
        }
        parts.sort_by_key(|(at, _)| *at);
        parts.into_iter().map(|(_, part)| part).collect()
    }
}

/// The parts that a server lists of one message, at least one.
fn listed() -> impl Strategy<Value = Vec<(At, Value)>> {
    let time =
        prop::sample::select(vec![r#"{"start":1}"#, r#"{"start":1,"end":2}"#, r#"{"end":2}"#]);
    let parts = vec((any::<bool>(), time), 3);
    ((0..2_u8, 0..2_u8), parts).prop_map(|((session, message), parts)| {
        let mut listed: Vec<(At, Value)> = Vec::new();
        for (part, (is_listed, time)) in (0..).zip(parts) {
            if is_listed || (part == 2 && listed.is_empty()) {
                let at = (session, message, part);
                listed.push((at, told(at, "text", "listed", time)));
            }
        }
        listed
    })
}

fn record(listed: &[(At, Value)]) -> Text {
    let [_, message, _] = ids(listed[0].0);
    let parts: Vec<_> = listed.iter().map(|(_, part)| part).collect();
    text(&json!({"info": {"id": message, "n": 1}, "parts": parts}))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_overlay_is_what_the_model_has(steps in vec(step(), 0..60), listed in listed()) {
        let (mut live, mut model) = (LiveParts::new(1 << 20), Model::default());
        let session = ids(listed[0].0)[0].clone();
        let record = record(&listed);
        let mut snapshots = Vec::new();
        for step in &steps {
            match (step, step.event()) {
                (Step::Clear, _) => live.clear(),
                (Step::Snapshot, _) => snapshots.push((live.of_session(&session), model.clone())),
                (_, event) => live.apply(&event.unwrap()),
            }
            model.apply(step);
            prop_assert_eq!(live.len(), model.0.len());
            prop_assert_eq!(live.bytes() == 0, model.0.is_empty());
        }
        snapshots.push((live.of_session(&session), model));
        for (snapshot, model) in snapshots {
            let expected = json!({"info": {"id": ids(listed[0].0)[1], "n": 1}, "parts": model.over(&listed)});
            let is_empty = !model.0.iter().any(|(at, _)| ids(*at)[0] == session);
            prop_assert_eq!(snapshot.is_empty(), is_empty);
            let overlaid = snapshot.overlay(&record);
            let found = overlaid.as_deref().unwrap_or(&record);
            prop_assert_eq!(&serde_json::from_str::<Value>(found).unwrap(), &expected);
            prop_assert_eq!(overlaid.is_none(), *record == *text(&expected));
            if let Some(overlaid) = overlaid {
                prop_assert_eq!(snapshot.overlay(&overlaid), None);
            }
        }
    }

    /// A part that was forgotten stays as its server lists it; any other is exact.
    #[test]
    fn no_more_is_kept_than_there_is_room_for(
        steps in vec(step(), 0..40),
        room in 0_usize..4000,
        (session, message) in (0..2_u8, 0..2_u8),
    ) {
        let listed: Vec<_> = (0..3)
            .map(|part| (session, message, part))
            .map(|at| (at, told(at, "text", "listed", r#"{"start":1}"#)))
            .collect();
        let record = record(&listed);
        let (mut live, mut model) = (LiveParts::new(room), Model::default());
        for step in &steps {
            if let Some(event) = step.event() {
                live.apply(&event);
                model.apply(step);
            }
            prop_assert!(live.bytes() <= room && live.len() <= model.0.len());
            let snapshot = live.of_session(&ids(listed[0].0)[0]);
            let Some(overlaid) = snapshot.overlay(&record) else { continue };
            let overlaid: Value = serde_json::from_str(&overlaid).unwrap();
            let exact = model.over(&listed);
            for (at, (found, exact)) in overlaid["parts"].as_array().unwrap().iter().zip(exact).enumerate() {
                prop_assert!(*found == exact || *found == listed[at].1, "{}", found);
            }
        }
    }
}
