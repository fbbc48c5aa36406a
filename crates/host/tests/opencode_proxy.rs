//! The proxy in front of a real OpenCode server: what a client does with the server, it does with
//! the host.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use support::host::RunningHost;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use turnkeep_host::{HostOptions, UpstreamOptions};
use turnkeep_test_opencode::{OpenCode, Options};

const PASSWORD: &str = "open sesame";

struct Client {
    http: reqwest::Client,
    base: String,
}

impl Client {
    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        let body = response.bytes().await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send(Method::GET, path, None).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.send(Method::POST, path, Some(body)).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }
}

async fn start() -> (OpenCode, RunningHost, Client) {
    let options = Options { password: Some(PASSWORD.to_owned()), ..Options::default() };
    let server = OpenCode::start(options).await.unwrap();
    let upstream = UpstreamOptions::new(server.base_url()).unwrap();
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.with_password(Some(PASSWORD.to_owned())));
    let host = RunningHost::start(options).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let client = Client { http, base: format!("{}/api", host.origin()) };
    (server, host, client)
}

fn prompt(text: &str) -> Value {
    json!({ "parts": [{ "type": "text", "text": text }] })
}

#[tokio::test]
async fn a_session_lives_through_the_proxy() {
    let (server, _host, client) = start().await;
    let session = client.post("/session", json!({ "title": "Through the proxy" })).await;
    let id = session["id"].as_str().unwrap();
    assert_eq!(client.get(&format!("/session/{id}")).await["title"], "Through the proxy");

    // Answered when the whole turn is over.
    let answer = client
        .post(&format!("/session/{id}/message"), prompt("Look. #steps=2 #tools=write #reason"))
        .await;
    assert_eq!(answer["info"]["finish"], "stop");
    let listed = client.get("/session").await;
    assert!(listed.as_array().unwrap().iter().any(|session| session["id"] == id));

    let path = format!("/session/{id}/message");
    let all: Value = serde_json::from_str(&server.full_list(id).await.unwrap()).unwrap();
    assert_eq!(client.get(&path).await, all);
    let without = client.get(&format!("{path}?includeReasoning=false")).await;
    let reasoning = |list: &Value| list.to_string().matches(r#""type":"reasoning""#).count();
    assert!(reasoning(&all) > 0 && reasoning(&without) == 0);

    // Page by page, as the header says.
    let (mut before, mut pages) = (String::new(), Vec::new());
    loop {
        let url = format!("{}{path}?limit=1{before}", client.base);
        let response = client.http.get(url).send().await.unwrap();
        let next = response.headers().get("x-next-cursor").cloned();
        let link = response.headers().get("link").cloned();
        let page: Vec<Value> = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        pages.splice(0..0, page);
        let Some(next) = next else { break };
        let start = format!("</api/session/{id}/message?limit=1");
        assert!(link.unwrap().to_str().unwrap().starts_with(&start));
        before = format!("&before={}", next.to_str().unwrap());
    }
    assert_eq!(Value::from(pages), all);

    let user = all[0]["info"]["id"].as_str().unwrap();
    let diff = client.get(&format!("/session/{id}/diff?messageID={user}")).await;
    assert_eq!(diff[0]["status"], "added", "{diff}");

    let slow = prompt("Take your time. #steps=0 #slow=200 #chunks=200");
    let (status, _) =
        client.send(Method::POST, &format!("/session/{id}/prompt_async"), Some(slow)).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    loop {
        let status = client.get("/session/status").await;
        if status[id]["type"] == "busy" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(client.post(&format!("/session/{id}/abort"), json!({})).await, true);
    server.wait_until_idle(id).await.unwrap();

    let (status, deleted) = client.send(Method::DELETE, &format!("/session/{id}"), None).await;
    assert_eq!((status, deleted), (StatusCode::OK, json!(true)));
    let (status, gone) = client.send(Method::GET, &format!("/session/{id}"), None).await;
    assert_eq!((status, &gone["name"]), (StatusCode::NOT_FOUND, &json!("NotFoundError")));
}

#[tokio::test]
async fn the_newer_routes_are_there_as_well() {
    let (_server, _host, client) = start().await;
    let made = client.post("/api/session", json!({})).await;
    let id = made["data"]["id"].as_str().unwrap();
    let listed = client.get("/api/session").await;
    assert!(listed.to_string().contains(id));

    // Its events come at once, over a stream that has no end.
    let url = format!("{}/api/session/{id}/event", client.base);
    let response = client.http.get(url).header("accept-encoding", "gzip").send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert!(!response.headers().contains_key("content-encoding"));
    let mut events = response.bytes_stream();
    let prompted = json!({ "prompt": { "text": "Say hello." }, "resume": false });
    client.post(&format!("/api/session/{id}/prompt"), prompted).await;
    let first = timeout(Duration::from_secs(20), events.next()).await;
    assert!(first.expect("an event comes").unwrap().is_ok());
}

#[tokio::test]
async fn a_terminal_works_through_the_proxy() {
    let (_server, host, client) = start().await;
    let made = client.post("/pty", json!({ "command": "/bin/sh", "args": [] })).await;
    let id = made["id"].as_str().unwrap();
    let url = format!("ws{}/api/pty/{id}/connect", host.origin().trim_start_matches("http"));
    let (mut socket, response) = tokio_tungstenite::connect_async(url).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    socket.send(Message::text("echo answer:$((40+2)):\n")).await.unwrap();
    let mut heard = String::new();
    while !heard.contains("answer:42:") {
        let next = timeout(Duration::from_secs(20), socket.next()).await;
        let message = next.expect("the terminal answers").unwrap().unwrap();
        heard += &String::from_utf8_lossy(&message.into_data());
    }
    let (status, _) = client.send(Method::DELETE, &format!("/pty/{id}"), None).await;
    assert_eq!(status, StatusCode::OK);
    // The server ends it, and so it ends here.
    while let Ok(Some(Ok(_))) = timeout(Duration::from_secs(20), socket.next()).await {}
}
