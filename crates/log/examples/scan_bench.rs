//! How fast a log is scanned, beside how fast its line feeds can be counted.
//!
//! ```text
//! cargo run --release -p turnkeep-log --example scan_bench [session.jsonl …]
//! ```
//!
//! Without files: three made-up logs of 64 MiB, of long tool calls, of one delta a line, and of the
//! same deltas packed. Each figure is the best of five passes, in MB of input a second.

use std::{
    error::Error,
    fmt::Write as _,
    hint::black_box,
    time::{Duration, Instant},
};

use turnkeep_log::{Event, RecordScan, Seq, Text, packed};

const TARGET: usize = 64 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    println!("{:24} {:>9} {:>9} {:>12} {:>10}", "log", "MB", "events", "line feeds", "scan");
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        let deltas = repeat(|out, seq| {
            let _ = writeln!(
                out,
                r#"{{"type":"assistant/chunk","seq":{seq},"time":{},"data":{{"turn":1,"step":1,"chunk":{{"type":"text-delta","index":0,"text":" word"}}}}}}"#,
                1_785_974_400_000 + seq * 7
            );
        });
        measure("tool calls", &repeat(tool_call))?;
        measure("deltas, a line each", &deltas)?;
        measure("deltas, packed", &pack(&deltas)?)?;
    }
    for file in files {
        let log = std::fs::read_to_string(&file)?;
        measure(&file, log.split_once('\n').map_or("", |(_, events)| events))?;
    }
    Ok(())
}

fn repeat(event: impl Fn(&mut String, u64)) -> String {
    let mut out = String::with_capacity(TARGET + 1024);
    for seq in 0.. {
        if out.len() >= TARGET {
            break;
        }
        event(&mut out, seq);
    }
    out
}

fn tool_call(out: &mut String, seq: u64) {
    let command = r#"{\"command\": \"rg -n --no-heading 'fn scan' crates | head -50\"}"#.repeat(5);
    let _ = writeln!(
        out,
        r#"{{"type":"tool/call","seq":{seq},"time":{},"data":{{"turn":{},"step":1,"callId":"call_{seq}","name":"bash","arguments":"{command}"}}}}"#,
        1_785_974_400_000 + seq * 7,
        seq / 10,
    );
}

fn pack(lines: &str) -> Result<String, Box<dyn Error>> {
    Ok(scan(&Text::from(lines))?.chunks(1000).map(packed::pack_batch).collect())
}

fn scan(log: &Text) -> Result<Vec<Event>, Box<dyn Error>> {
    let mut scan = RecordScan::new(Seq(0));
    scan.feed(log);
    match scan.problem() {
        Some(problem) => Err(problem.to_string().into()),
        None => Ok(scan.take_events()),
    }
}

fn measure(name: &str, log: &str) -> Result<(), Box<dyn Error>> {
    let log = Text::from(log);
    let events = scan(&log)?.len();
    let count = best(|| memchr::memchr_iter(b'\n', black_box(log.as_bytes())).count());
    let read = best(|| scan(black_box(&log)).map_or(0, |events| events.len()));
    #[expect(clippy::cast_precision_loss, reason = "a figure to read")]
    let megabytes = log.len() as f64 / 1e6;
    let rate = |time: Duration| megabytes / time.as_secs_f64();
    println!("{name:24} {megabytes:9.1} {events:9} {:12.0} {:10.0}", rate(count), rate(read));
    Ok(())
}

fn best<T>(mut run: impl FnMut() -> T) -> Duration {
    let time = |_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    };
    (0..5).map(time).min().unwrap_or_default()
}
