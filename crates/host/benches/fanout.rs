//! How many clients one host carries, and how fast.
//!
//! ```text
//! cargo bench --package turnkeep-host --bench fanout [-- CLIENTS [RATE [SECONDS]]]
//! ```
//!
//! A server of events stands in for OpenCode, in this process, with the clients; the host runs in a
//! process of its own, so that its memory is its own. First a thousand clients listen to fifty
//! events a second for twenty seconds: who misses one without being told is counted. Then the rate
//! doubles for as long as 99 of 100 clients receive everything in order, and within a second.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark"
)]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::broadcast,
    task::JoinSet,
};
use turnkeep_host::{Host, HostOptions, UpstreamOptions};

/// What the host's process is told to listen to.
const UPSTREAM: &str = "TURNKEEP_BENCH_UPSTREAM";

/// How long the last events may be under way when the sender has stopped.
const GRACE: Duration = Duration::from_secs(10);

/// Clients that are further behind when the last event was sent do not sustain the rate: what waits
/// for them grows.
const SUSTAINED: Duration = Duration::from_secs(1);

/// The text of one event's delta: about what a model says at a time, with its ids 300 bytes.
const DELTA: &str = "some words of an answer, as they come";

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match env::var(UPSTREAM) {
        Ok(upstream) => runtime.block_on(serve(&upstream)),
        Err(_) => runtime.block_on(measure()),
    }
}

// ---- the host ---------------------------------------------------------------------------------

async fn serve(upstream: &str) {
    let mut options = HostOptions::default();
    options.upstream = Some(UpstreamOptions::new(upstream).unwrap());
    options.listen = "127.0.0.1:0".parse().unwrap();
    let host = Arc::new(Host::new(options).unwrap());
    let listener = host.bind().await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    // Until the one who measures is gone.
    let stop = async {
        let _ = tokio::io::stdin().read(&mut [0]).await;
    };
    host.serve(listener, stop).await.unwrap();
}

struct Served {
    process: Child,
    address: String,
}

impl Served {
    fn start(upstream: &str) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .env(UPSTREAM, upstream)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { process, address: address.trim().to_owned() }
    }

    /// Its memory, in KiB.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

// ---- what it listens to -----------------------------------------------------------------------

/// A server that answers that it is well, and sends what is broadcast to who asks for events.
async fn upstream(events: broadcast::Sender<Arc<str>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let events = events.subscribe();
            tokio::spawn(async move {
                let _ = answer(stream, events).await;
            });
        }
    });
    format!("http://{address}")
}

async fn answer(
    mut stream: TcpStream,
    mut events: broadcast::Receiver<Arc<str>>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).await?;
        if read == 0 {
            return Ok(());
        }
        head.extend_from_slice(&chunk[..read]);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        if head.starts_with(b"GET /global/event") {
            break;
        }
        let body = r#"{"healthy":true,"version":"bench"}"#;
        let reply = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(reply.as_bytes()).await?;
        head.clear();
    }
    let reply = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\
                 data: {\"payload\":{\"type\":\"server.connected\",\"properties\":{}}}\n\n";
    stream.write_all(reply.as_bytes()).await?;
    while let Ok(event) = events.recv().await {
        stream.write_all(event.as_bytes()).await?;
    }
    Ok(())
}

/// One event, which carries its number.
fn event(number: u64) -> Arc<str> {
    format!(
        "data: {{\"directory\":\"/home/someone/project\",\"project\":\"global\",\"payload\":\
         {{\"id\":\"evt_0123456789abcdef\",\"type\":\"message.part.delta\",\"properties\":\
         {{\"sessionID\":\"ses_0123456789abcdef\",\"messageID\":\"msg_0123456789abcdef\",\
         \"partID\":\"prt_0123456789abcdef\",\"field\":\"text\",\"number\":{number},\
         \"delta\":\"{DELTA}\"}}}}}}\n\n"
    )
    .into()
}

// ---- the clients ------------------------------------------------------------------------------

/// What became of one client.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It received every event in order.
    Everything,
    /// It was told that it must start anew, or its stream was broken off.
    Told,
    /// An event is missing, or came twice, and nothing was said.
    Silent,
}

/// Listens until the last event of a run, or until the deadline.
async fn listen(address: Arc<str>, ready: Arc<AtomicUsize>, last: Arc<AtomicU64>) -> Outcome {
    let mut stream = TcpStream::connect(&*address).await.unwrap();
    let ask = format!(
        "GET /api/global/event HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n"
    );
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut unread = Vec::new();
    let mut chunk = vec![0; 16 << 10];
    let (mut next, mut is_ready) = (None, false);
    loop {
        let read = stream.read(&mut chunk).await.unwrap_or(0);
        if read == 0 {
            return if next == Some(last.load(Ordering::Relaxed)) {
                Outcome::Everything
            } else {
                Outcome::Told
            };
        }
        unread.extend_from_slice(&chunk[..read]);
        if !is_ready && unread.windows(4).any(|end| end == b"\r\n\r\n") {
            is_ready = true;
            ready.fetch_add(1, Ordering::Relaxed);
        }
        let Some(end) = unread.iter().rposition(|byte| *byte == b'\n') else { continue };
        let text = String::from_utf8_lossy(&unread[..end]).into_owned();
        unread.drain(..=end);
        for line in text.lines() {
            if line.contains("turnkeep.reset") {
                return Outcome::Told;
            }
            let Some((_, number)) = line.split_once("\"number\":") else { continue };
            let number: u64 = number.split(',').next().unwrap().parse().unwrap();
            if next.is_some_and(|next| next != number) || (next.is_none() && number != 0) {
                return Outcome::Silent;
            }
            next = Some(number + 1);
            if number + 1 == last.load(Ordering::Relaxed) {
                return Outcome::Everything;
            }
        }
    }
}

// ---- a run ------------------------------------------------------------------------------------

struct Run {
    everything: usize,
    told: usize,
    silent: usize,
    /// Memory of the host without clients, with them, and at its highest, in KiB.
    memory: [u64; 3],
    /// How long the last client took behind the last event.
    behind: Duration,
    /// How much of the time the events took that they should have.
    pace: f64,
}

async fn run(clients: usize, rate: u64, seconds: u64) -> Run {
    let (events, _) = broadcast::channel(1 << 16);
    let upstream = upstream(events.clone()).await;
    let host = Served::start(&upstream);
    while events.receiver_count() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let empty = host.memory();
    let (ready, last) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(rate * seconds)));
    let address: Arc<str> = host.address.as_str().into();
    let mut listening = JoinSet::new();
    for _ in 0..clients {
        listening.spawn(listen(Arc::clone(&address), Arc::clone(&ready), Arc::clone(&last)));
    }
    while ready.load(Ordering::Relaxed) < clients {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (full, mut peak) = (host.memory(), 0);
    let started = Instant::now();
    for number in 0..rate * seconds {
        let due = started + Duration::from_secs_f64(number as f64 / rate as f64);
        tokio::time::sleep_until(due.into()).await;
        let _ = events.send(event(number));
        if number % rate == 0 {
            peak = peak.max(host.memory());
        }
    }
    let sent = Instant::now();
    let mut outcomes = Vec::new();
    let finished = async {
        while let Some(outcome) = listening.join_next().await {
            outcomes.push(outcome.unwrap());
        }
    };
    let _ = tokio::time::timeout(GRACE, finished).await;
    let behind = sent.elapsed();
    peak = peak.max(host.memory());
    let count = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    // Who is not done by now has not received everything in time, and was told nothing either; it
    // is only late.
    Run {
        everything: count(Outcome::Everything),
        told: count(Outcome::Told),
        silent: count(Outcome::Silent),
        memory: [empty, full, peak],
        behind,
        pace: (sent - started).as_secs_f64() / seconds as f64,
    }
}

async fn measure() {
    let numbers: Vec<u64> = env::args().filter_map(|argument| argument.parse().ok()).collect();
    let number = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
    let clients = usize::try_from(number(0, 1000)).unwrap();
    let (rate, seconds) = (number(1, 50), number(2, 20));

    println!("{clients} clients, {rate} events/s for {seconds} s");
    let first = run(clients, rate, seconds).await;
    tell(&first, clients);
    let [empty, full, peak] = first.memory;
    let per_client = |memory: u64| memory.saturating_sub(empty) as f64 / clients as f64;
    println!(
        "  memory of the host: {empty} KiB alone, {:.1} KiB more for each client that waits, {:.1} \
         KiB at most",
        per_client(full),
        per_client(peak)
    );
    assert_eq!(first.silent, 0, "nobody misses an event without being told");

    println!("the highest rate, 5 s each");
    let (mut rate, mut highest) = (rate, 0);
    loop {
        let next = run(clients, rate, 5).await;
        println!("  {rate} events/s ({} deliveries/s):", rate * clients as u64);
        tell(&next, clients);
        assert_eq!(next.silent, 0, "nobody misses an event without being told");
        if next.everything * 100 < clients * 99 || next.pace > 1.1 || next.behind > SUSTAINED {
            break;
        }
        highest = rate;
        rate *= 2;
    }
    println!("99 of 100 clients sustain {highest} events/s");
}

fn tell(run: &Run, clients: usize) {
    println!(
        "  {} of {clients} received everything in order, {} were told otherwise, {} were not, {} \
         were late; the last one was {} ms behind",
        run.everything,
        run.told,
        run.silent,
        clients - run.everything - run.told - run.silent,
        run.behind.as_millis()
    );
}
