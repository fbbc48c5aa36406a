//! All backends, given the same, give the same.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::sync::Arc;

use proptest::prelude::*;
use support::{create, database::Database, disk::Disk, event_of, id, never, open};
use turnkeep_log::{Event, Seq};
use turnkeep_store::{
    Access, EventRange, SessionHandle, SessionStore,
    jsonl::Encoding,
    memory::{self, MemoryStore},
};

/// The same session in every backend.
struct Backends {
    zstd: Disk,
    plain: Disk,
    memory: memory::Disk,
    sqlite: Database,
}

impl Backends {
    fn new() -> Self {
        Self {
            zstd: Disk::new(Encoding::Zstd),
            plain: Disk::new(Encoding::None),
            memory: memory::Disk::new(),
            sqlite: Database::new(),
        }
    }

    fn stores(&self) -> Vec<Arc<dyn SessionStore>> {
        vec![
            Arc::new(self.zstd.store()),
            Arc::new(self.plain.store()),
            Arc::new(MemoryStore::new(&self.memory)),
            Arc::new(self.sqlite.store()),
        ]
    }
}

/// One event of a log to be, without its place.
#[derive(Clone, Debug)]
enum Kind {
    Todo(String),
    /// A streamed delta of some block, which may become part of a row.
    Delta {
        index: u8,
        text: String,
        gap: i8,
    },
    Tool {
        id: u8,
        arguments: String,
    },
    Ignorable(String),
    /// Of a type that readers do not know.
    Unknown,
    /// Something that only claims to be a message.
    Malformed,
}

impl Kind {
    fn at(&self, seq: u64) -> Event {
        let string = |text: &str| serde_json::to_string(text).unwrap();
        let chunk = |time: i64, chunk: &str| {
            let text = format!(
                r#"{{"type":"assistant/chunk","seq":{seq},"time":{time},"data":{{"turn":1,"step":1,"chunk":{chunk}}}}}"#
            );
            Event::parse(&text.into()).unwrap()
        };
        match self {
            Self::Todo(text) => {
                // Escapes, key order and numbers as nobody would write them.
                let text = string(text);
                event_of("todo/write", seq, &format!(r#"{{ "b":1e400,"a":"\ud83d","b":{text} }}"#))
            }
            Self::Delta { index, text, gap } => {
                let time = 1000 + i64::from(*gap);
                let text = string(text);
                let delta = format!(r#"{{"type":"text-delta","index":{index},"text":{text}}}"#);
                chunk(time, &delta)
            }
            Self::Tool { id, arguments } => {
                let arguments = string(arguments);
                let delta = format!(
                    r#"{{"type":"tool-call-delta","index":1,"id":"c{id}","name":"bash","argumentsDelta":{arguments}}}"#
                );
                chunk(1000, &delta)
            }
            Self::Ignorable(text) => {
                let text = string(text);
                let text = format!(
                    r#"{{"type":"acme/x","seq":{seq},"time":1,"data":{text},"ignorable":true}}"#
                );
                Event::parse(&text.into()).unwrap()
            }
            Self::Unknown => event_of("acme/unknown", seq, "{}"),
            Self::Malformed => {
                let text = format!(
                    r#"{{"type":"user/message","seq":{seq},"time":1,"data":{{}},"surfaceOp":"append"}}"#
                );
                Event::parse(&text.into()).unwrap()
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A batch, beginning so far from where it should.
    Append(Vec<Kind>, i8),
    Flush,
    Read(u64, Option<u64>),
    /// By a handle that is opened for it.
    ReadAnew(u64, Option<u64>),
    /// Closes the writer, and opens another in stores that know nothing.
    Restart,
}

fn kinds() -> impl Strategy<Value = Vec<Kind>> {
    let kind = prop_oneof![
        6 => ".{0,40}".prop_map(Kind::Todo),
        20 => (0..2u8, ".{0,8}", -5..5i8)
            .prop_map(|(index, text, gap)| Kind::Delta { index, text, gap }),
        6 => (0..2u8, ".{0,8}").prop_map(|(id, arguments)| Kind::Tool { id, arguments }),
        2 => ".{0,8}".prop_map(Kind::Ignorable),
    ];
    prop::collection::vec(kind, 0..40)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let range = || (0..150u64, prop::option::of(0..60u64));
    let step = prop_oneof![
        8 => kinds().prop_map(|kinds| Step::Append(kinds, 0)),
        1 => (kinds(), prop_oneof![Just(-1), Just(1)])
            .prop_map(|(kinds, off)| Step::Append(kinds, off)),
        1 => Just(Step::Flush),
        4 => range().prop_map(|(offset, length)| Step::Read(offset, length)),
        2 => range().prop_map(|(offset, length)| Step::ReadAnew(offset, length)),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..14)
}

/// Reads a range, as lines or as the kind of the failure.
async fn lines(handle: &dyn SessionHandle, range: EventRange) -> Result<Vec<String>, &'static str> {
    match handle.read(range, &never()).await {
        Ok(events) => Ok(events.iter().map(|event| event.text().to_string()).collect()),
        Err(error) => Err(error.kind()),
    }
}

fn all_same<T: PartialEq + std::fmt::Debug>(outcomes: &[T]) -> &T {
    for outcome in outcomes {
        assert_eq!(*outcome, outcomes[0]);
    }
    &outcomes[0]
}

async fn check(steps: Vec<Step>) {
    let backends = Backends::new();
    let mut stores = backends.stores();
    let mut writers = Vec::new();
    for store in &stores {
        let writer = create(&**store, "s").await;
        writer.flush(&never()).await.unwrap();
        writers.push(writer);
    }
    let mut model: Vec<String> = Vec::new();
    for step in steps {
        match step {
            Step::Append(kinds, off) => {
                let first = (model.len() as u64).saturating_add_signed(i64::from(off));
                let events: Vec<Event> =
                    kinds.iter().zip(first..).map(|(kind, seq)| kind.at(seq)).collect();
                let mut outcomes = Vec::new();
                for writer in &writers {
                    let outcome = writer.append(events.clone(), &never()).await;
                    outcomes.push(outcome.map_err(|error| error.to_string()));
                }
                if all_same(&outcomes).is_ok() {
                    model.extend(events.iter().map(|event| event.text().to_string()));
                    assert_eq!(outcomes[0], Ok(Seq(model.len() as u64)));
                }
            }
            Step::Flush => {
                for writer in &writers {
                    writer.flush(&never()).await.unwrap();
                }
            }
            Step::Read(offset, length) => {
                let range = EventRange { offset, length };
                for writer in &writers {
                    assert_eq!(lines(&**writer, range).await, Ok(cut(&model, range)));
                }
            }
            Step::ReadAnew(offset, length) => {
                let range = EventRange { offset, length };
                for store in &stores {
                    let reader = open(&**store, "s", Access::Read).await;
                    assert_eq!(lines(&*reader, range).await, Ok(cut(&model, range)));
                    assert_eq!(lines(&*reader, EventRange::ALL).await, Ok(model.clone()));
                }
            }
            Step::Restart => {
                for writer in writers.drain(..) {
                    writer.close().await.unwrap();
                }
                stores = backends.stores();
                for store in &stores {
                    writers.push(open(&**store, "s", Access::Write).await);
                }
            }
        }
    }
    export(&stores, &model).await;
}

/// What goes into an export: the header, then every event.
async fn export(stores: &[Arc<dyn SessionStore>], model: &[String]) {
    let mut exports = Vec::new();
    for store in stores {
        let reader = open(&**store, "s", Access::Read).await;
        let events = lines(&*reader, EventRange::ALL).await.unwrap();
        exports.push(format!("{}\n{}", reader.header().to_line(), events.join("\n")));
        let stat = store.stat(&id("s"), &never()).await.unwrap().unwrap();
        assert!(stat.event_count.is_none_or(|count| count == model.len() as u64));
    }
    assert!(all_same(&exports).ends_with(&model.join("\n")));
}

fn cut(model: &[String], range: EventRange) -> Vec<String> {
    let offset = usize::try_from(range.offset).unwrap();
    let length = range.length.map_or(usize::MAX, |length| usize::try_from(length).unwrap());
    model.iter().skip(offset).take(length).cloned().collect()
}

fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn backends_agree(steps in steps()) {
        block_on(check(steps));
    }

    #[test]
    fn backends_refuse_the_same(
        before in kinds(),
        refused in prop::collection::vec(
            prop_oneof![Just(Kind::Unknown), Just(Kind::Malformed)], 1..4),
        after in kinds(),
        offset in 0..90u64,
    ) {
        block_on(async {
            let backends = Backends::new();
            let mut outcomes = Vec::new();
            for store in backends.stores() {
                let writer = create(&*store, "s").await;
                let early = open(&*store, "s", Access::Read).await;
                let mut next = 0;
                let mut seen = Vec::new();
                for batch in [&before, &refused, &after] {
                    let events: Vec<Event> =
                        batch.iter().zip(next..).map(|(kind, seq)| kind.at(seq)).collect();
                    next += events.len() as u64;
                    writer.append(events, &never()).await.unwrap();
                    seen.push(lines(&*early, EventRange::from(Seq(offset))).await);
                    seen.push(lines(&*writer, EventRange::ALL).await);
                }
                writer.close().await.unwrap();
                let opened = store.open(&id("s"), Access::Write, &never()).await;
                outcomes.push((seen, opened.map(drop).map_err(|error| error.kind())));
            }
            assert!(all_same(&outcomes).1.is_err());
        });
    }
}
