//! What a crowd of clients over SSE costs: so many of them, so many events a second, so many seconds.
//!
//! ```console
//! $ cargo run --release -p turnkeep-host --example event_crowd -- 1000 50 10
//! ```
//!
//! The clients are in the same process and count bytes, so what is printed is more than the host's
//! own share: the processor time of both ends, and the memory of both ends of each connection.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a tool"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use turnkeep_host::{Host, HostOptions, Origin, Published};
use turnkeep_store::memory::{Disk, MemoryStore};

/// An event like most: a piece of an answer.
const DELTA: &str = r#"{"id":"evt_0199c0ffee","type":"message.part.delta","properties":{"sessionID":"ses_0199c0ffee","messageID":"msg_0199c0ffee","partID":"prt_0199c0ffee","field":"text","delta":" and so on"}}"#;

#[tokio::main]
async fn main() {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u64>().unwrap());
    let mut next = |default| numbers.next().unwrap_or(default);
    let (clients, rate, seconds) = (next(1000), next(50), next(10));

    let mut options = HostOptions::default();
    options.store = Some(Arc::new(MemoryStore::new(&Disk::new())));
    options.listen = "127.0.0.1:0".parse().unwrap();
    let host = Arc::new(Host::new(options).unwrap());
    let listener = host.bind().await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(Arc::clone(&host).serve(listener, std::future::pending()));

    let before = resident_kib();
    let bytes = Arc::new(AtomicU64::new(0));
    for _ in 0..clients {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET /api/global/event HTTP/1.1\r\nhost: {address}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let bytes = Arc::clone(&bytes);
        tokio::spawn(async move {
            let mut buffer = [0; 2048];
            while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                bytes.fetch_add(read as u64, Ordering::Relaxed);
            }
        });
    }
    let hub = host.hub();
    while hub.stats().sse_clients < clients {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let with_clients = resident_kib();
    bytes.store(0, Ordering::Relaxed);

    let (began, processor) = (Instant::now(), processor_time());
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / u32::try_from(rate).unwrap());
    for _ in 0..rate * seconds {
        ticks.tick().await;
        hub.publish(Published {
            directory: Some("/home/someone/project".to_owned()),
            project: None,
            payload: DELTA.into(),
            origin: Origin::Store,
        });
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let (took, stats) = (began.elapsed().as_secs_f64(), hub.stats());
    let used = processor_time().saturating_sub(processor).as_secs_f64();
    println!("{clients} clients, {} events in {took:.1} s", stats.events);
    println!("processor    {:.2} cores, both ends", used / took);
    println!(
        "memory       {:.1} KiB a client, both ends",
        (with_clients - before) as f64 / clients as f64
    );
    println!("events kept  {} KiB for all", stats.replay_bytes / 1024);
    println!(
        "received     {:.0} bytes a client",
        bytes.load(Ordering::Relaxed) as f64 / clients as f64
    );
    println!("too slow     {}, still waiting {} bytes", stats.clients_too_slow, stats.queued_bytes);
}

/// The memory of this process.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The processor time of this process, in ticks of 10 ms.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}
