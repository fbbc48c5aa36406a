//! Clients of the event channels, and what they make of a session.

use std::collections::{BTreeMap, VecDeque};

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, tungstenite::Message};

use super::host::Client;

/// One event, as it came over either channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The host's own number of it.
    pub id: Option<String>,
    /// What the upstream sent, without the wrapper.
    pub payload: Value,
}

impl Received {
    pub fn kind(&self) -> &str {
        self.payload["type"].as_str().unwrap_or_default()
    }

    /// The session it is about, if any.
    pub fn session(&self) -> Option<&str> {
        let body = &self.payload["properties"];
        let named = [&body["sessionID"], &body["info"]["sessionID"], &body["part"]["sessionID"]];
        named.into_iter().find_map(Value::as_str)
    }

    /// Whether the client must start anew.
    pub fn is_reset(&self) -> bool {
        self.kind() == "turnkeep.reset"
    }
}

/// A client of the global channel over SSE.
#[derive(Debug)]
pub struct EventStream {
    response: reqwest::Response,
    unread: Vec<u8>,
    ready: VecDeque<Received>,
}

impl EventStream {
    /// Opens the stream behind this event, or from now on.
    pub async fn open(host: &Client, last: Option<&str>) -> Self {
        Self::open_at(host, "/api/global/event", last).await
    }

    pub async fn open_at(host: &Client, target: &str, last: Option<&str>) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut request = http.get(host.origin() + target).header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self { response, unread: Vec::new(), ready: VecDeque::new() }
    }

    /// The next event; `None` when the stream has ended or broke.
    pub async fn next(&mut self) -> Option<Received> {
        while self.ready.is_empty() {
            let chunk = self.response.chunk().await.ok()??;
            self.unread.extend_from_slice(&chunk);
            while let Some(end) = self.unread.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.unread.drain(..end + 2).collect();
                self.ready.extend(received(std::str::from_utf8(&block).unwrap()));
            }
        }
        self.ready.pop_front()
    }
}

/// A block that is no comment.
fn received(block: &str) -> Option<Received> {
    let field = |name| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start);
    let data: Value = serde_json::from_str(field("data:")?).unwrap();
    let payload = if data["payload"].is_object() { data["payload"].clone() } else { data };
    Some(Received { id: field("id:").map(str::to_owned), payload })
}

/// A client of the global channel over a WebSocket.
#[derive(Debug)]
pub struct EventSocket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl EventSocket {
    pub async fn open(host: &Client, last: Option<&str>) -> Self {
        let query = last.map(|last| format!("?lastEventId={last}")).unwrap_or_default();
        let url = host.origin().replacen("http", "ws", 1) + "/api/global/event/ws" + &query;
        let (socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        Self(socket)
    }

    /// The next frame; `None` when the socket has closed.
    pub async fn frame(&mut self) -> Option<Value> {
        loop {
            if let Message::Text(text) = self.0.next().await?.ok()? {
                return Some(serde_json::from_str(&text).unwrap());
            }
        }
    }

    /// The next event of the upstream.
    pub async fn next(&mut self) -> Option<Received> {
        loop {
            let frame = self.frame().await?;
            if frame["type"] == "event" && frame["payload"]["type"] != "openchamber:heartbeat" {
                let id = frame["eventId"].as_str().map(str::to_owned);
                return Some(Received { id, payload: frame["payload"].clone() });
            }
        }
    }
}

/// What a client knows of one session. It applies what it is sent and has no special cases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    messages: BTreeMap<String, Known>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    info: Value,
    parts: BTreeMap<String, Value>,
}

impl Transcript {
    /// Starts anew from records.
    pub fn of_records(records: &[Value]) -> Self {
        let mut transcript = Self::default();
        for record in records {
            let known = transcript.messages.entry(text(&record["info"]["id"])).or_default();
            known.info = record["info"].clone();
            for part in record["parts"].as_array().unwrap() {
                known.parts.insert(text(&part["id"]), part.clone());
            }
        }
        transcript
    }

    /// Applies an event of this session.
    pub fn apply(&mut self, event: &Received) {
        let body = &event.payload["properties"];
        match event.kind() {
            "message.updated" => {
                let info = &body["info"];
                self.messages.entry(text(&info["id"])).or_default().info = info.clone();
            }
            "message.removed" => drop(self.messages.remove(&text(&body["messageID"]))),
            "message.part.updated" => {
                let part = &body["part"];
                let known = self.messages.entry(text(&part["messageID"])).or_default();
                known.parts.insert(text(&part["id"]), part.clone());
            }
            "message.part.delta" => {
                let known = self.messages.get_mut(&text(&body["messageID"]));
                if let Some(part) =
                    known.and_then(|known| known.parts.get_mut(&text(&body["partID"])))
                {
                    let field = text(&body["field"]);
                    let grown = part[&field].as_str().unwrap_or_default().to_owned()
                        + body["delta"].as_str().unwrap();
                    part[&field] = json!(grown);
                }
            }
            "message.part.removed" => {
                if let Some(known) = self.messages.get_mut(&text(&body["messageID"])) {
                    known.parts.remove(&text(&body["partID"]));
                }
            }
            _ => {}
        }
    }

    /// The texts of its text and reasoning parts, by part.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let parts = self.messages.values().flat_map(|known| &known.parts);
        let spoken =
            parts.filter(|(_, part)| part["type"] == "text" || part["type"] == "reasoning");
        spoken
            .filter_map(|(id, part)| Some((id.clone(), part["text"].as_str()?.to_owned())))
            .collect()
    }

    pub fn len(&self) -> usize {
        self.messages.len()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The number of an event within its epoch.
pub fn number(id: &str) -> (&str, u64) {
    let (epoch, number) = id.rsplit_once('-').unwrap();
    (epoch, number.parse().unwrap())
}
