//! A host on a free port, and a client of it.

use std::{io::Read as _, net::SocketAddr, ops::Deref, sync::Arc, time::Duration};

use flate2::read::GzDecoder;
use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
};
use turnkeep_host::{Host, HostOptions};

use super::{
    contract::{Asked, Told, check},
    logs,
};

/// A client of a host. The host's address stays in here, so that every answer is looked at as the
/// clients of its route do.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    http: reqwest::Client,
}

/// A running host; it stops when it is dropped.
#[derive(Debug)]
pub struct RunningHost {
    pub host: Arc<Host>,
    client: Client,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

/// A request to be sent.
#[derive(Debug)]
pub struct Asking {
    method: String,
    target: String,
    request: reqwest::RequestBuilder,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// How many bytes the body has as it was sent.
    pub sent_bytes: usize,
    pub body: String,
    /// The body as it is, for what is no text.
    pub bytes: Vec<u8>,
}

impl RunningHost {
    pub async fn start(mut options: HostOptions) -> RunningHost {
        logs::watch();
        options.listen = "127.0.0.1:0".parse().unwrap();
        let host = Arc::new(Host::new(options).unwrap());
        let listener = host.bind().await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = Arc::clone(&host);
        let serving = tokio::spawn(async move {
            let shutdown = async move {
                let _ = stopped.await;
            };
            running.serve(listener, shutdown).await.unwrap();
        });
        Self { host, client: Client::of(address), stop: Some(stop), serving }
    }

    /// Stops, and waits until it has stopped and nobody listens any more.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        (&mut self.serving).await.unwrap();
        assert!(TcpStream::connect(self.client.address).await.is_err(), "nobody listens any more");
    }
}

impl Deref for RunningHost {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Client {
    /// A client of a host in another process.
    pub fn of(address: SocketAddr) -> Self {
        Self { address, http: reqwest::Client::builder().no_proxy().build().unwrap() }
    }

    /// The host's own origin.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn request(&self, method: &str, target: &str) -> Asking {
        let request = self.http.request(method.parse().unwrap(), self.origin() + target);
        Asking { method: method.to_owned(), target: target.to_owned(), request }
    }

    pub async fn get(&self, target: &str) -> Answer {
        self.request("GET", target).send().await.unwrap()
    }

    /// What comes back for these bytes before the connection is closed.
    pub async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        let _ = tokio::time::timeout(Duration::from_secs(5), read).await.expect("it is closed");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        if let Some((head, body)) = answer.split_once("\r\n\r\n")
            && head.to_ascii_lowercase().contains("content-type: application/json")
        {
            let status = head.split(' ').nth(1).unwrap().parse().unwrap();
            let mut headers = HeaderMap::new();
            headers.insert("content-type", "application/json; charset=utf-8".parse().unwrap());
            let told = Told { status, headers: &headers, body: body.as_bytes() };
            check(Asked { method: "GET", target: "/api/other" }, told);
        }
        answer
    }

    /// A turn page.
    pub async fn page(&self, session: &str, turns: usize, before: Option<&str>) -> Value {
        let cursor = before.map(|before| format!("&before={before}")).unwrap_or_default();
        let path = format!("/api/openchamber/sessions/{session}/messages?turns={turns}{cursor}");
        let answer = self.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    }

    /// Every page from the newest to the oldest.
    pub async fn pages(&self, session: &str, turns: usize) -> Vec<Value> {
        let mut pages = Vec::new();
        let mut before: Option<String> = None;
        loop {
            let page = self.page(session, turns, before.as_deref()).await;
            before = page["cursor"].as_str().map(str::to_owned);
            pages.push(page);
            if before.is_none() {
                return pages;
            }
            assert!(pages.len() < 10_000, "paging ends");
        }
    }

    /// Every record, old to new, as the pages bring them.
    pub async fn records(&self, session: &str, turns: usize) -> Vec<Value> {
        let pages = self.pages(session, turns).await;
        let oldest_first = pages.iter().rev();
        oldest_first.flat_map(|page| page["records"].as_array().unwrap().clone()).collect()
    }

    /// One page of a round of reconciling, from an anchor or on from a continuation.
    pub async fn reconcile(&self, session: &str, start: &str, text: &str) -> Value {
        let path = format!("/api/openchamber/sessions/{session}/messages/reconcile?{start}={text}");
        let answer = self.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    }

    /// Every page of a round from an anchor, the newest first.
    pub async fn round(&self, session: &str, anchor: &str) -> Vec<Value> {
        let mut pages = vec![self.reconcile(session, "anchor", anchor).await];
        while let Some(next) = pages.last().unwrap()["continuation"].as_str() {
            assert!(pages.len() < 10_000, "a round ends");
            let page = self.reconcile(session, "continuation", next).await;
            pages.push(page);
        }
        pages
    }
}

impl Drop for RunningHost {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Asking {
    pub fn header(self, name: &str, value: &str) -> Self {
        Self { request: self.request.header(name, value), ..self }
    }

    /// Sends this with it, as JSON.
    pub fn json(self, body: impl Into<reqwest::Body>) -> Self {
        Self { request: self.request.body(body), ..self }.header("content-type", "application/json")
    }

    /// Sends this with it, whatever it is.
    pub fn body(self, body: impl Into<reqwest::Body>) -> Self {
        Self { request: self.request.body(body), ..self }
    }

    pub fn timeout(self, within: Duration) -> Self {
        Self { request: self.request.timeout(within), ..self }
    }

    /// Sends it, and checks what comes back as the route's clients do.
    pub async fn send(self) -> Result<Answer, reqwest::Error> {
        let response = self.request.send().await?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let sent = response.bytes().await?;
        let encoding = headers.get("content-encoding").map(|value| value.to_str().unwrap());
        let mut decoded = Vec::new();
        match encoding {
            None => decoded.extend_from_slice(&sent),
            Some("gzip") => {
                GzDecoder::new(&*sent).read_to_end(&mut decoded).unwrap();
            }
            Some("br") => brotli::BrotliDecompress(&mut &*sent, &mut decoded).unwrap(),
            Some(other) => panic!("no client takes {other}"),
        }
        let asked = Asked { method: &self.method, target: &self.target };
        check(asked, Told { status, headers: &headers, body: &decoded });
        let body = String::from_utf8_lossy(&decoded).into_owned();
        Ok(Answer { status, headers, sent_bytes: sent.len(), body, bytes: decoded })
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}
