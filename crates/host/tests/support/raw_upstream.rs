//! An upstream and a client that speak HTTP byte by byte, for what happens in the middle of a
//! request or an answer.

use std::{
    future::Future,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use turnkeep_host::UpstreamOptions;

/// Longer than anything takes that happens at all.
const SOON: Duration = Duration::from_secs(10);

/// One end of a connection, and the head that came on it last.
#[derive(Debug)]
pub struct Wire {
    pub stream: TcpStream,
    pub head: String,
}

/// A running upstream; it stops, and closes its connections, when it is dropped.
#[derive(Debug)]
pub struct RawUpstream {
    pub address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl RawUpstream {
    /// Gives every request but health probes to `serve`, its head read and its body not. The
    /// connection goes on with the wire that comes back, and is closed without one.
    pub async fn start<F>(serve: impl Fn(Wire) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Option<Wire>> + Send + 'static,
    {
        Self::start_on("127.0.0.1:0".parse().unwrap(), serve).await
    }

    pub async fn start_on<F>(
        address: SocketAddr,
        serve: impl Fn(Wire) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Option<Wire>> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (heads, serve) = (Arc::new(Mutex::new(Vec::new())), Arc::new(serve));
        let connections = Arc::new(AtomicUsize::new(0));
        let (seen, count) = (Arc::clone(&heads), Arc::clone(&connections));
        let accepting = tokio::spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (serve, seen, count) =
                    (Arc::clone(&serve), Arc::clone(&seen), Arc::clone(&count));
                open.spawn(async move {
                    let mut wire = Wire { stream, head: String::new() };
                    let mut is_first = true;
                    while wire.read_head().await {
                        if wire.target().ends_with("/global/health") {
                            wire.json(200, r#"{"healthy":true}"#).await;
                            continue;
                        }
                        count.fetch_add(usize::from(is_first), Ordering::SeqCst);
                        is_first = false;
                        seen.lock().unwrap().push(wire.head.clone());
                        match serve(wire).await {
                            Some(next) => wire = next,
                            None => return,
                        }
                    }
                });
            }
        });
        Self { address, heads, connections, accepting }
    }

    /// Answers every request with 200 and `{}`, and remembers its head.
    pub async fn quiet() -> Self {
        Self::start(|mut wire| async move {
            wire.body().await;
            wire.json(200, "{}").await;
            Some(wire)
        })
        .await
    }

    pub fn options(&self) -> UpstreamOptions {
        UpstreamOptions::new(&format!("http://{}", self.address)).unwrap()
    }

    /// The heads of all requests, health probes left out.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// The targets of all requests.
    pub fn targets(&self) -> Vec<String> {
        let target = |head: &String| head.split(' ').nth(1).unwrap().to_owned();
        self.heads().iter().map(target).collect()
    }

    /// How many connections carried other requests than probes.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Stops listening and closes every connection.
    pub async fn kill(mut self) {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for RawUpstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Wire {
    /// A connection to a host at this origin.
    pub async fn to(origin: &str) -> Self {
        let stream = TcpStream::connect(origin.trim_start_matches("http://")).await.unwrap();
        Self { stream, head: String::new() }
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// A request with these lines, each without its end.
    pub async fn ask(&mut self, lines: &[&str]) {
        let head = lines.join("\r\n") + "\r\nhost: localhost\r\n\r\n";
        self.send(head).await;
    }

    /// A whole answer of JSON.
    pub async fn json(&mut self, status: u16, body: &str) {
        let length = body.len();
        self.send(format!(
            "HTTP/1.1 {status} Whatever\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        ))
        .await;
    }

    /// Reads the next head; no when there is none any more.
    pub async fn read_head(&mut self) -> bool {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let Ok(Ok(byte)) = timeout(SOON, self.stream.read_u8()).await else { return false };
            head.push(byte);
        }
        self.head = String::from_utf8(head).unwrap();
        true
    }

    pub fn method(&self) -> &str {
        self.head.split(' ').next().unwrap()
    }

    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub fn status(&self) -> u16 {
        self.target().parse().unwrap()
    }

    /// The values of a header, its lines joined.
    pub fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let values: Vec<_> = lines
            .filter(|(have, _)| have.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect();
        (!values.is_empty()).then(|| values.join("|"))
    }

    /// Reads exactly this many bytes.
    pub async fn take(&mut self, count: usize) -> String {
        let mut bytes = vec![0; count];
        let read = timeout(SOON, self.stream.read_exact(&mut bytes)).await;
        read.expect("bytes come soon").unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Reads the body that the head announces; `None` when it breaks off.
    pub async fn body(&mut self) -> Option<String> {
        if let Some(length) = self.header("content-length") {
            return self.exactly(length.parse().unwrap()).await;
        }
        if self.header("transfer-encoding").is_none() {
            return Some(String::new());
        }
        let mut body = String::new();
        loop {
            let chunk = self.chunk().await?;
            if chunk.is_empty() {
                return Some(body);
            }
            body += &chunk;
        }
    }

    /// Reads one chunk; the last one is empty.
    pub async fn chunk(&mut self) -> Option<String> {
        let mut size = String::new();
        while !size.ends_with("\r\n") {
            size.push_str(&self.exactly(1).await?);
        }
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let chunk = self.exactly(size).await?;
        assert_eq!(self.exactly(2).await?, "\r\n", "a chunk ends, and there are no trailers");
        Some(chunk)
    }

    async fn exactly(&mut self, count: usize) -> Option<String> {
        let mut bytes = vec![0; count];
        let read = timeout(SOON, self.stream.read_exact(&mut bytes)).await;
        read.expect("bytes come soon").ok()?;
        Some(String::from_utf8(bytes).unwrap())
    }

    /// Everything up to the end of the connection, which comes soon.
    pub async fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        let read = timeout(SOON, self.stream.read_to_end(&mut rest)).await;
        let _ = read.expect("the connection ends soon");
        String::from_utf8_lossy(&rest).into_owned()
    }
}
