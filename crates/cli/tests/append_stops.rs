//! `turnkeep append` that is told to stop while events come in.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says where"
)]

mod support;

use std::{
    io::Write as _,
    process::{Child, ChildStdin},
    thread,
    time::Duration,
};

use support::{Bench, eventually, signal, text};

/// One event, as a line of input.
fn line(number: usize) -> String {
    format!("{{\"type\":\"todo/write\",\"data\":{{\"todos\":[],\"n\":{number}}}}}\n")
}

/// Waits until the command has read all that was written to it.
fn until_read(input: &ChildStdin) {
    eventually("everything is read", || rustix::io::ioctl_fionread(input).unwrap() == 0);
}

/// A command that appends, and has stored the first event.
fn appending(bench: &Bench, id: &str, args: &[&str]) -> (Child, ChildStdin) {
    let mut child = bench.spawn(&[&["append", id, "--create"], args].concat());
    let mut input = child.stdin.take().unwrap();
    input.write_all(line(0).as_bytes()).unwrap();
    (child, input)
}

/// What the command printed when it ended, and that the log holds just so much, in order.
fn ended(bench: &Bench, id: &str, child: Child) -> usize {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let next: usize = text(&output.stdout).trim().parse().unwrap();
    let events = bench.run(&["events", id]);
    let events: Vec<_> = text(&events.stdout).lines().collect();
    assert_eq!(events.len(), next);
    for (seq, event) in events.iter().enumerate() {
        let event: serde_json::Value = serde_json::from_str(event).unwrap();
        assert_eq!(event["seq"], seq);
        assert_eq!(event["data"]["n"], seq, "each line once, in order");
    }
    next
}

#[test]
fn what_was_read_is_stored_though_its_window_is_not_over() {
    let bench = Bench::new();
    for (number, signal_name) in ["-TERM", "-INT", "-HUP"].into_iter().enumerate() {
        let id = format!("stopped-{number}");
        let (child, mut input) = appending(&bench, &id, &[]);
        eventually("the first event is stored", || {
            text(&bench.run(&["events", &id]).stdout).lines().count() == 1
        });
        let lines: String = (1..50).map(line).collect();
        input.write_all(lines.as_bytes()).unwrap();
        input.write_all(b"{\"type\":\"todo/write\",\"da").unwrap();
        until_read(&input);
        signal(&child, signal_name);
        assert_eq!(ended(&bench, &id, child), 50, "{signal_name}");
    }
}

#[test]
fn batches_that_are_not_full_are_stored_too() {
    let bench = Bench::new();
    let (child, mut input) = appending(&bench, "batches", &["--batch", "40"]);
    let lines: String = (1..100).map(line).collect();
    input.write_all(lines.as_bytes()).unwrap();
    eventually("two batches are stored", || {
        text(&bench.run(&["events", "batches"]).stdout).lines().count() == 80
    });
    until_read(&input);
    signal(&child, "-TERM");
    assert_eq!(ended(&bench, "batches", child), 100);
}

#[test]
fn a_stream_that_is_cut_is_stored_up_to_the_cut() {
    let bench = Bench::new();
    for round in 0..4_u64 {
        let id = format!("cut-{round}");
        let (child, mut input) = appending(&bench, &id, &[]);
        let producer = thread::spawn(move || {
            // Until the command is gone.
            let written = (1..).take_while(|number| {
                if number % 5 == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
                input.write_all(line(*number).as_bytes()).is_ok()
            });
            written.count()
        });
        eventually("the first window is over", || !bench.run(&["events", &id]).stdout.is_empty());
        thread::sleep(Duration::from_millis(51 * round));
        signal(&child, "-TERM");
        let next = ended(&bench, &id, child);
        let written = 1 + producer.join().unwrap();
        assert!((2..=written).contains(&next), "{next} of {written}");
    }
}

#[test]
fn what_cannot_be_stored_is_not_counted() {
    let bench = Bench::new();
    let (child, mut input) = appending(&bench, "lost", &[]);
    eventually("the first event is stored", || {
        text(&bench.run(&["events", "lost"]).stdout).lines().count() == 1
    });
    // Someone else writes to the log, and so takes the session over.
    let project = std::fs::read_dir(bench.root()).unwrap().next().unwrap().unwrap().path();
    let log = project.join("lost").join("session.jsonl.zstd");
    let bytes = std::fs::read(&log).unwrap();
    std::fs::write(&log, [&bytes[..], &bytes[..bytes.len() / 2]].concat()).unwrap();
    let lines: String = (1..50).map(line).collect();
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert_eq!(text(&output.stdout), "1\n", "{output:?}");
    assert!(text(&output.stderr).contains("write ownership was lost"), "{output:?}");
}
