//! A host on a free port, and a client of it.

use std::{net::SocketAddr, sync::Arc};

use reqwest::{Response, header::HeaderMap};
use serde_json::Value;
use tokio::{sync::oneshot, task::JoinHandle};
use turnkeep_host::{Host, HostOptions};

use super::contract::check_turn_page;

/// A running host; it stops when it is dropped.
#[derive(Debug)]
pub struct RunningHost {
    pub address: SocketAddr,
    pub host: Arc<Host>,
    client: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl RunningHost {
    pub async fn start(mut options: HostOptions) -> RunningHost {
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
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { address, host, client, stop: Some(stop), serving }
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = method.parse().unwrap();
        self.client.request(method, format!("http://{}{path}", self.address))
    }

    /// An answer; a turn page is checked as its clients check it.
    pub async fn get(&self, path: &str) -> Answer {
        let answer = Answer::of(self.request("GET", path).send().await.unwrap()).await;
        let (resource, query) = path.split_once('?').unwrap_or((path, ""));
        if resource.ends_with("/messages") && answer.status == 200 {
            let parameter = |name: &str| {
                let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
                pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
            };
            let turns = parameter("turns").map_or(3, |turns| turns.parse().unwrap_or(10));
            assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"));
            check_turn_page(&answer.body, turns, parameter("before"));
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

    /// Stops, and waits until it has stopped.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        (&mut self.serving).await.unwrap();
    }
}

impl Drop for RunningHost {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Answer {
    pub async fn of(response: Response) -> Answer {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        Answer { status, headers, body: response.text().await.unwrap() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}
