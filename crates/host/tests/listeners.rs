//! One host that serves several listeners, and one after the other.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{sync::Arc, time::Duration};

use support::{host::Client, live::EventStream, store::TestStore};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use turnkeep_host::{Host, HostOptions};

/// A listener that is served until it is told to stop.
struct Served {
    client: Client,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Served {
    async fn by(host: &Arc<Host>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = Client::of(listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let host = Arc::clone(host);
        let serving = tokio::spawn(async move {
            let until = async {
                let _ = stopped.await;
            };
            host.serve(listener, until).await.unwrap();
        });
        Self { client, stop, serving }
    }

    async fn stop(self) {
        drop(self.stop);
        self.serving.await.unwrap();
    }
}

/// Whether a stream of events goes on, for as long as one that does not would take to end.
async fn goes_on(stream: &mut EventStream) -> bool {
    let ended = async { while stream.next().await.is_some() {} };
    tokio::time::timeout(Duration::from_millis(500), ended).await.is_err()
}

fn host() -> Arc<Host> {
    let mut options = HostOptions::default();
    options.store = Some(TestStore::new().store as _);
    Arc::new(Host::new(options).unwrap())
}

#[tokio::test]
async fn a_listener_that_stops_leaves_the_streams_of_others_alone() {
    let host = host();
    let (one, other) = (Served::by(&host).await, Served::by(&host).await);
    let mut its = EventStream::open(&one.client, None).await;
    let mut theirs = EventStream::open(&other.client, None).await;
    one.stop().await;
    assert!(!goes_on(&mut its).await);
    assert!(goes_on(&mut theirs).await);
    assert!(goes_on(&mut EventStream::open(&other.client, None).await).await);
    assert_eq!(other.client.get("/health").await.status, 200);
    other.stop().await;
    assert!(!goes_on(&mut theirs).await);
}

#[tokio::test]
async fn a_host_can_be_served_again() {
    let host = host();
    let first = Served::by(&host).await;
    let _ = EventStream::open(&first.client, None).await;
    first.stop().await;
    let again = Served::by(&host).await;
    assert!(goes_on(&mut EventStream::open(&again.client, None).await).await);
    again.stop().await;
}
