//! The sessions that `turnkeep demo` shows.
//!
//! Most are real: written by another program's own backend, bundled with their notice in
//! `demo/dsh`. What those lack is generated, and says so in its title. All of them go through the
//! store like any other session.

mod generated;
mod pictures;
mod script;

use std::path::Path;

use turnkeep_log::{Event, SessionHeader, SessionId, Text, records::RecordScan};
use turnkeep_store::{Cancel, SessionStore};

use crate::failure::Failure;

/// A bundled log: its text without compression.
const REAL: [&str; 7] = [
    include_str!("../../demo/dsh/subagent-fork-parent.jsonl"),
    include_str!("../../demo/dsh/subagent-fork-child.jsonl"),
    include_str!("../../demo/dsh/compaction-recovery.jsonl"),
    include_str!("../../demo/dsh/parallel-tool-calls.jsonl"),
    include_str!("../../demo/dsh/todo-write.jsonl"),
    include_str!("../../demo/dsh/tool-outcome-unknown.jsonl"),
    include_str!("../../demo/dsh/web-goal-multi-turn.jsonl"),
];

/// Writes every demo session into a store, and the images that they show into the directory of
/// attachments. `now` is in milliseconds since the epoch. Says how many sessions there are.
pub(crate) async fn fill(
    store: &dyn SessionStore,
    attachments: &Path,
    now: i64,
) -> Result<usize, Failure> {
    let hour = 3_600_000;
    let pictures = pictures(attachments)
        .map_err(|error| Failure::io("cannot write the images of the demo", &error))?;
    for log in REAL {
        let (header, events) = read(log)?;
        write(store, header, events).await?;
    }
    let generated = [
        ("demo-broken-off", now - 5 * hour, generated::broken_off(now - 5 * hour)),
        ("demo-images", now - 3 * hour, generated::images(now - 3 * hour, &pictures)),
        ("demo-long", now - 2 * hour, generated::long(now - 2 * hour)),
    ];
    let count = REAL.len() + generated.len();
    for (id, created, events) in generated {
        let id = SessionId::new(id).ok_or_else(|| unusable("an empty id"))?;
        let mut header = SessionHeader::new(id, u64::try_from(created).unwrap_or_default());
        header.cwd = Some("/workspace/demo".to_owned());
        write(store, header, events.map_err(unusable)?).await?;
    }
    Ok(count)
}

/// Draws the images and writes them.
fn pictures(attachments: &Path) -> std::io::Result<[pictures::Picture; 3]> {
    let drawn = [pictures::phone()?, pictures::design()?, pictures::dark()?];
    for picture in &drawn {
        picture.write_below(attachments)?;
    }
    Ok(drawn)
}

/// Reads a bundled log with the same code that reads logs from disk.
fn read(log: &str) -> Result<(SessionHeader, Vec<Event>), Failure> {
    let (header, rows) = log.split_once('\n').ok_or_else(|| unusable("no header"))?;
    let header = SessionHeader::parse(header, None).map_err(unusable)?;
    let mut scan = RecordScan::new(turnkeep_log::Seq(0));
    scan.feed(&Text::from(rows));
    match scan.problem() {
        Some(problem) => Err(unusable(problem)),
        None => Ok((header, scan.take_events())),
    }
}

async fn write(
    store: &dyn SessionStore,
    header: SessionHeader,
    events: Vec<Event>,
) -> Result<(), Failure> {
    let handle = store.create(header, &Cancel::never()).await?;
    handle.append(events, &Cancel::never()).await?;
    Ok(handle.close().await?)
}

fn unusable(problem: impl std::fmt::Display) -> Failure {
    Failure::new("corrupt", format!("a bundled demo session cannot be used: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::{REAL, generated, pictures, read};

    #[test]
    fn the_bundled_logs_are_the_golden_ones() {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/dsh/golden");
        let golden: Vec<_> = std::fs::read_dir(golden)
            .unwrap()
            .map(|entry| {
                std::fs::read_to_string(entry.unwrap().path().join("session.jsonl")).unwrap()
            })
            .collect();
        for log in REAL {
            assert!(golden.iter().any(|text| text == log));
            read(log).unwrap();
        }
    }

    #[test]
    fn the_generated_sessions_are_whole() {
        let prompts = |events: Vec<turnkeep_log::Event>| {
            events.iter().filter(|event| event.event_type() == "user/message").count()
        };
        assert_eq!(prompts(generated::long(0).unwrap()), generated::LONG_TURNS);
        let folder = tempfile::tempdir().unwrap();
        let pictures = pictures(folder.path()).unwrap();
        assert_eq!(prompts(generated::images(0, &pictures).unwrap()), 2);
        let broken = generated::broken_off(0).unwrap();
        assert_eq!(broken.last().unwrap().event_type(), "assistant/chunk");
    }
}
