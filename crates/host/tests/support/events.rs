//! Clients of the event streams.

use std::{collections::VecDeque, net::SocketAddr, time::Duration};

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream,
    tungstenite::{Message, client::IntoClientRequest as _, protocol::CloseFrame},
};

/// How long anything may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// A block of an SSE stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub id: Option<String>,
    /// The data; `Null` for a comment.
    pub data: Value,
}

impl Block {
    /// The event without the wrapper of the channel of all directories.
    pub fn payload(&self) -> &Value {
        if self.data["payload"].is_object() { &self.data["payload"] } else { &self.data }
    }

    pub fn kind(&self) -> &str {
        self.payload()["type"].as_str().unwrap_or_default()
    }

    pub fn id(&self) -> &str {
        self.id.as_deref().expect("the event has an id")
    }
}

/// A client over SSE.
#[derive(Debug)]
pub struct SseClient {
    response: reqwest::Response,
    text: String,
}

impl SseClient {
    /// Opens a stream, past its first event.
    pub async fn open(origin: &str, target: &str) -> SseClient {
        Self::open_with(origin, target, &[]).await
    }

    pub async fn open_with(origin: &str, target: &str, headers: &[(&str, &str)]) -> SseClient {
        let mut client = Self::ask(origin, target, headers).await;
        assert_eq!(client.response.status(), 200, "{target}");
        let first = client.next().await;
        assert_eq!((first.kind(), first.id.as_deref()), ("server.connected", None));
        client
    }

    pub async fn ask(origin: &str, target: &str, headers: &[(&str, &str)]) -> SseClient {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut request = http.get(format!("{origin}{target}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = timeout(PATIENCE, request.send()).await.expect("an answer comes").unwrap();
        Self { response, text: String::new() }
    }

    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The next block, comments included; `Err` when the body breaks off, `None` when it ends.
    pub async fn try_next(&mut self) -> Result<Option<Block>, reqwest::Error> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let rest = self.text.split_off(end + 2);
                let block = std::mem::replace(&mut self.text, rest);
                return Ok(Some(parse(block.trim_end())));
            }
            let chunk = timeout(PATIENCE, self.response.chunk()).await.expect("something comes");
            match chunk? {
                Some(chunk) => self.text.push_str(std::str::from_utf8(&chunk).unwrap()),
                None => return Ok(None),
            }
        }
    }

    /// The next event.
    pub async fn next(&mut self) -> Block {
        loop {
            let block = self.try_next().await.unwrap().expect("the stream goes on");
            if block.data != Value::Null {
                return block;
            }
        }
    }

    pub async fn take(&mut self, count: usize) -> Vec<Block> {
        let mut blocks = Vec::new();
        for _ in 0..count {
            blocks.push(self.next().await);
        }
        blocks
    }

    /// Nothing has come so far.
    pub async fn is_silent_for(&mut self, while_: Duration) {
        assert_eq!(self.text, "");
        let chunk = timeout(while_, self.response.chunk()).await;
        assert!(chunk.is_err(), "{chunk:?}");
    }
}

fn parse(block: &str) -> Block {
    let (mut id, mut data) = (None, Value::Null);
    for line in block.lines() {
        match line.split_once(':') {
            Some(("", _)) => {}
            Some(("id", value)) => id = Some(value.trim().to_owned()),
            Some(("data", value)) => data = serde_json::from_str(value).expect("data is JSON"),
            _ => panic!("no such line: {line}"),
        }
    }
    Block { id, data }
}

/// A client over a WebSocket.
#[derive(Debug)]
pub struct SocketClient {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    held: VecDeque<Value>,
    pub pings: usize,
}

impl SocketClient {
    pub async fn open(origin: &str, target: &str) -> SocketClient {
        let request = origin.replace("http://", "ws://") + target;
        let connecting = tokio_tungstenite::connect_async(request.into_client_request().unwrap());
        let (socket, _) = timeout(PATIENCE, connecting).await.expect("an answer comes").unwrap();
        Self { socket, held: VecDeque::new(), pings: 0 }
    }

    /// The next message; `Err` with how the connection was closed.
    pub async fn try_next(&mut self) -> Result<Value, Option<CloseFrame>> {
        if let Some(held) = self.held.pop_front() {
            return Ok(held);
        }
        loop {
            let message = timeout(PATIENCE, self.socket.next()).await.expect("something comes");
            match message {
                Some(Ok(Message::Text(text))) => {
                    return Ok(serde_json::from_str(&text).expect("a message is JSON"));
                }
                Some(Ok(Message::Ping(_))) => self.pings += 1,
                Some(Ok(Message::Close(frame))) => return Err(frame),
                Some(Ok(other)) => panic!("no such message: {other:?}"),
                None | Some(Err(_)) => return Err(None),
            }
        }
    }

    /// The next message that is no heartbeat.
    pub async fn next(&mut self) -> Value {
        loop {
            let message = self.try_next().await.expect("the connection goes on");
            if message["payload"]["type"] != "openchamber:heartbeat" {
                return message;
            }
        }
    }

    pub async fn take(&mut self, count: usize) -> Vec<Value> {
        let mut messages = Vec::new();
        for _ in 0..count {
            messages.push(self.next().await);
        }
        messages
    }

    /// Waits for the message that what was missed has been sent, which is the next one.
    pub async fn ready(&mut self, scope: &str) {
        assert_eq!(self.next().await, serde_json::json!({ "type": "ready", "scope": scope }));
    }

    /// The connection is closed, and this is how.
    pub async fn closed(&mut self) -> (u16, String) {
        loop {
            match self.try_next().await {
                Ok(_) => {}
                Err(frame) => {
                    let frame = frame.expect("the host says why");
                    // Reading on is what answers it.
                    while let Some(Ok(_)) = self.socket.next().await {}
                    return (frame.code.into(), frame.reason.to_string());
                }
            }
        }
    }

    pub async fn say(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }
}

/// A connection that asks, and then reads nothing.
pub async fn deaf(address: SocketAddr, target: &str, more: &str) -> TcpStream {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {target} HTTP/1.1\r\nhost: {address}\r\n{more}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    // The head of the answer: from here on it is subscribed.
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(timeout(PATIENCE, stream.read_u8()).await.unwrap().unwrap());
    }
    stream
}
