//! An upstream that does exactly what a test wants, byte by byte: on a raw listener, since a
//! well-behaved server library cannot cut a body, stall, or close at the wrong moment.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinHandle,
};
use turnkeep_host::UpstreamOptions;

use super::logs::SAID;

/// One request that came.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: String,
    pub head: String,
    pub body: String,
}

/// What to do with a request.
#[derive(Clone, Debug)]
pub enum Act {
    /// Send these bytes and wait for the next request.
    Send(Vec<u8>),
    /// Send these bytes and close.
    SendAndClose(Vec<u8>),
    /// Wait, and then send these bytes.
    SendAfter(Duration, Vec<u8>),
    /// Send these bytes, and then this one this often, and then these bytes: a large body.
    SendFilled(Vec<u8>, u8, usize, Vec<u8>),
    /// Send these bytes, say nothing more, and keep the connection.
    SendAndStall(Vec<u8>),
    /// Say nothing, and keep the connection.
    Stall,
    /// Close without a word.
    Close,
    /// Begin an event stream, which goes on as [`EventStreams`] is told.
    Stream,
}

type Script = Arc<dyn Fn(&Request) -> Option<Act> + Send + Sync>;

/// A running upstream; it stops when it is dropped.
#[derive(Debug)]
pub struct ScriptedUpstream {
    pub address: SocketAddr,
    /// The event streams that were asked for; there are none until it is told so.
    pub events: Arc<EventStreams>,
    requests: Arc<Mutex<Vec<Request>>>,
    hangups: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

/// The event streams of a scripted upstream. A host asks for one by itself, so its requests are
/// listed here and not among those that a test causes.
#[derive(Debug)]
pub struct EventStreams {
    act: Mutex<Act>,
    requests: Mutex<Vec<Request>>,
    open: Mutex<Vec<mpsc::UnboundedSender<Option<Vec<u8>>>>>,
}

impl Default for EventStreams {
    fn default() -> Self {
        let (act, requests, open) =
            (Mutex::new(answer(404, &[], "{}")), Mutex::default(), Mutex::default());
        Self { act, requests, open }
    }
}

impl EventStreams {
    /// What the next requests for a stream are answered with.
    pub fn answer_with(&self, act: Act) {
        *self.act.lock().unwrap() = act;
    }

    /// Every request for a stream that came.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until this many were asked for.
    pub async fn wait_for_requests(&self, count: usize) {
        wait_until("event streams are asked for", || self.requests().len() >= count).await;
    }

    /// How many streams someone reads now.
    pub fn open(&self) -> usize {
        let mut open = self.open.lock().unwrap();
        open.retain(|stream| !stream.is_closed());
        open.len()
    }

    /// Waits until this many are.
    pub async fn wait_for_open(&self, count: usize) {
        wait_until("event streams are open", || self.open() == count).await;
    }

    /// Sends these bytes over every stream, in one chunk.
    pub fn send_bytes(&self, bytes: impl AsRef<[u8]>) {
        let open = self.open.lock().unwrap();
        for stream in &*open {
            let _ = stream.send(Some(bytes.as_ref().to_vec()));
        }
    }

    /// Sends an event in the wrapper of the stream of all directories.
    pub fn send(&self, directory: &str, payload: &Value) {
        let wrapped = json!({ "directory": directory, "project": "p", "payload": payload });
        self.send_bytes(format!("data: {wrapped}\n\n"));
    }

    /// Cuts every stream.
    pub fn cut(&self) {
        let open = std::mem::take(&mut *self.open.lock().unwrap());
        for stream in open {
            let _ = stream.send(None);
        }
    }

    /// Serves one stream until it is cut, or the other side leaves.
    async fn serve(&self, stream: &mut TcpStream) {
        let (sender, mut bits) = mpsc::unbounded_channel();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        let connected =
            json!({ "payload": { "id": "evt_0", "type": "server.connected", "properties": {} } });
        let first = format!("data: {connected}\n\n");
        let sent = stream.write_all(&[head.as_bytes(), &chunk(first.as_bytes())].concat()).await;
        if sent.is_err() {
            return;
        }
        self.open.lock().unwrap().push(sender);
        loop {
            let bit = tokio::select! {
                bit = bits.recv() => bit.flatten(),
                () = hangup(stream) => None,
            };
            let Some(bytes) = bit else { return };
            if stream.write_all(&chunk(&bytes)).await.is_err() {
                return;
            }
        }
    }
}

/// A chunk of a body, as it goes over the wire.
fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

impl ScriptedUpstream {
    /// Answers every request as the script says. Health probes are answered unless the script
    /// says otherwise: it is asked first, and may leave them to us with `None`.
    pub async fn start(
        script: impl Fn(&Request) -> Option<Act> + Send + Sync + 'static,
    ) -> ScriptedUpstream {
        Self::start_on("127.0.0.1:0".parse().unwrap(), script).await
    }

    pub async fn start_on(
        address: SocketAddr,
        script: impl Fn(&Request) -> Option<Act> + Send + Sync + 'static,
    ) -> ScriptedUpstream {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let script: Script = Arc::new(script);
        let seen = Arc::clone(&requests);
        let hangups = Arc::new(AtomicUsize::new(0));
        let hung_up = Arc::clone(&hangups);
        let events = Arc::new(EventStreams::default());
        let streams = Arc::clone(&events);
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
                let (streams, hung_up) = (Arc::clone(&streams), Arc::clone(&hung_up));
                connections.spawn(serve(stream, script, seen, streams, hung_up));
            }
        });
        Self { address, events, requests, hangups, accepting }
    }

    pub fn options(&self) -> UpstreamOptions {
        UpstreamOptions::new(&format!("http://{}", self.address)).unwrap()
    }

    /// Every request that came, health probes left out.
    pub fn requests(&self) -> Vec<Request> {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|request| request.path != "/global/health").cloned().collect()
    }

    /// How many connections were closed by the other side while they were owed an answer.
    pub fn hangups(&self) -> usize {
        self.hangups.load(Ordering::SeqCst)
    }

    /// Waits until this many requests came, health probes left out.
    pub async fn wait_for_requests(&self, count: usize) {
        wait_until("the requests come", || self.requests().len() >= count).await;
    }

    /// Waits until this many connections were closed in that way.
    pub async fn wait_for_hangups(&self, count: usize) {
        wait_until("the connections are closed", || self.hangups() >= count).await;
    }

    /// How many health probes came.
    pub fn probes(&self) -> usize {
        let others = self.requests().len();
        self.requests.lock().unwrap().len() - others
    }

    /// Stops listening and closes every connection, as a killed server does.
    pub async fn kill(mut self) {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for ScriptedUpstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Waits for something that comes about by itself.
pub async fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn serve(
    mut stream: TcpStream,
    script: Script,
    seen: Arc<Mutex<Vec<Request>>>,
    streams: Arc<EventStreams>,
    hangups: Arc<AtomicUsize>,
) {
    while let Some(request) = read(&mut stream).await {
        let act = if request.path == "/global/event" {
            streams.requests.lock().unwrap().push(request);
            streams.act.lock().unwrap().clone()
        } else {
            seen.lock().unwrap().push(request.clone());
            script(&request).unwrap_or_else(|| match request.path.as_str() {
                "/global/health" => answer(200, &[], r#"{"healthy":true,"version":"1.18.34"}"#),
                _ => answer(404, &[], "{}"),
            })
        };
        match act {
            Act::Stream => return streams.serve(&mut stream).await,
            Act::Send(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Act::SendAndClose(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                return;
            }
            Act::SendAfter(wait, bytes) => {
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = hangup(&mut stream) => {
                        hangups.fetch_add(1, Ordering::SeqCst);
                        return;
                    }
                }
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Act::SendFilled(head, fill, count, tail) => {
                let block = vec![fill; 1 << 20];
                let mut left = count;
                let mut sent = stream.write_all(&head).await;
                while sent.is_ok() && left > 0 {
                    let now = left.min(block.len());
                    sent = stream.write_all(&block[..now]).await;
                    left -= now;
                }
                if sent.is_err() || stream.write_all(&tail).await.is_err() {
                    return;
                }
            }
            Act::SendAndStall(bytes) => {
                let _ = stream.write_all(&bytes).await;
                hangup(&mut stream).await;
                hangups.fetch_add(1, Ordering::SeqCst);
                return;
            }
            Act::Stall => {
                hangup(&mut stream).await;
                hangups.fetch_add(1, Ordering::SeqCst);
                return;
            }
            Act::Close => return,
        }
    }
}

/// Returns when the other side closes the connection.
async fn hangup(stream: &mut TcpStream) {
    while stream.read_u8().await.is_ok() {}
}

/// Reads one request, its body included.
async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    let mut words = head.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    Some(Request { method, path, query, body: String::from_utf8(body).unwrap(), head })
}

/// A whole response of JSON.
pub fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Act {
    let mut all = vec![("content-type", "application/json")];
    all.extend_from_slice(headers);
    Act::Send(response(status, &all, body))
}

/// The bytes of a response.
pub fn response(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let headers: Vec<_> =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let (length, headers) = (body.len(), headers.concat());
    format!("HTTP/1.1 {status} Whatever\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
        .into_bytes()
}

/// A session of `turns` turns of a prompt and two answers each, oldest first.
pub fn rows(turns: usize) -> Vec<Value> {
    let row = |index: usize, id: String, role: &str| {
        json!({
            "info": { "id": id, "role": role, "time": { "created": 1000 + index } },
            "parts": [{ "type": "text", "text": format!("text of {id}, {SAID}") }],
        })
    };
    (0..turns * 3)
        .map(|index| match index % 3 {
            0 => row(index, format!("msg_{index:04}_user"), "user"),
            _ => row(index, format!("msg_{index:04}_asst"), "assistant"),
        })
        .collect()
}

/// Answers the message list of `rows` as OpenCode does.
pub fn list(rows: &[Value], request: &Request) -> Act {
    let parameter = |name: &str| {
        let pairs = request.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).next()
    };
    let limit: usize = parameter("limit").unwrap().parse().unwrap();
    let time = |row: &Value| row["info"]["time"]["created"].as_u64().unwrap();
    let end = match parameter("before") {
        None => rows.len(),
        Some(before) => {
            let Some(before) = decode(&before) else {
                return answer(400, &[], r#"{"_tag":"BadRequest"}"#);
            };
            let place = (before["time"].as_u64().unwrap(), before["id"].as_str().unwrap());
            rows.partition_point(|row| (time(row), row["info"]["id"].as_str().unwrap()) < place)
        }
    };
    let start = end.saturating_sub(limit);
    let page = &rows[start..end];
    let body = Value::from(page.to_vec()).to_string();
    match page.first() {
        Some(oldest) if start > 0 => {
            let cursor = json!({ "id": oldest["info"]["id"], "time": time(oldest) });
            let cursor = URL_SAFE_NO_PAD.encode(cursor.to_string());
            answer(200, &[("x-next-cursor", &cursor)], &body)
        }
        _ => answer(200, &[], &body),
    }
}

fn decode(cursor: &str) -> Option<Value> {
    let json: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    (json["time"].is_u64() && json["id"].is_string()).then_some(json)
}
