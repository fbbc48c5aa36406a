//! How fast records are projected, beside how fast their bytes can be looked at at all.
//!
//! `cargo run --release -p turnkeep-turns --example projection_speed [message list…]`

use std::{env, error::Error, fs, hint::black_box, path::Path, time::Instant};

use turnkeep_log::json::Json;
use turnkeep_turns::{Parts, Projection};

const ROUNDS: u32 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/opencode/b-long");
    let mut paths: Vec<_> = env::args_os().skip(1).map(Into::into).collect();
    if paths.is_empty() {
        for page in fs::read_dir(pages)? {
            paths.push(page?.path());
        }
    }
    let texts: Vec<_> = paths.iter().map(fs::read_to_string).collect::<Result<_, _>>()?;
    let bytes: usize = texts.iter().map(String::len).sum();
    let lists: Vec<_> = texts.iter().map(|text| Json::parse(text)).collect::<Result<_, _>>()?;
    let records: Vec<_> = lists.iter().filter_map(|list| list.elements()).flatten().collect();
    println!("{} records, {bytes} bytes", records.len());

    let mut out = String::new();
    let mut project = |parts, reasoning| {
        out.clear();
        for record in &records {
            Projection { parts, reasoning }.write(*record, &mut out);
        }
        out.len()
    };
    println!("{} bytes slim", project(Parts::Slim, true));

    measure("memchr over all bytes", bytes, || {
        texts.iter().filter_map(|text| memchr::memchr(0, text.as_bytes())).count()
    });
    measure("memchr to each quote", bytes, || {
        texts.iter().map(|text| memchr::memchr_iter(b'"', text.as_bytes()).count()).sum()
    });
    measure("check that it is JSON", bytes, || {
        texts.iter().filter(|text| Json::parse(text).is_ok()).count()
    });
    measure("step over each record", bytes, || {
        lists.iter().filter_map(|list| list.elements()).map(Iterator::count).sum()
    });
    measure("slim", bytes, || project(Parts::Slim, true));
    measure("full without reasoning", bytes, || project(Parts::Full, false));
    measure("full", bytes, || project(Parts::Full, true));

    let body = "iVBORw0KGgoAAAANSUhEUgAABAAAAAMACAYAAAA".to_owned() + &"QUJD".repeat(350_000);
    let image = format!(
        r#"{{"parts":[{{"type":"file","mime":"image/png","url":"data:image/png;base64,{body}"}}]}}"#
    );
    let record = Json::parse(&image)?;
    measure("slim, an attached image", image.len(), || {
        let mut out = String::new();
        Projection { parts: Parts::Slim, reasoning: true }.write(record, &mut out);
        out.len()
    });
    Ok(())
}

/// Prints the best of many rounds.
fn measure(what: &str, bytes: usize, mut run: impl FnMut() -> usize) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        black_box(run());
        best = best.min(start.elapsed().as_secs_f64());
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
    let rate = bytes as f64 / best / 1e6;
    println!("{what:24} {rate:8.0} MB/s");
}
