//! The line between a host and its upstream, which a test can cut.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// Passes connections on to a server, and can break those that are open.
#[derive(Debug)]
pub struct Cable {
    address: SocketAddr,
    /// How many requests for the global stream went through.
    streams: Arc<AtomicUsize>,
    cuts: watch::Sender<usize>,
}

impl Cable {
    /// A line to the server at this URL.
    pub async fn to(url: &str) -> Self {
        let server = url.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let streams = Arc::new(AtomicUsize::new(0));
        let (cuts, cut) = watch::channel(0);
        let counted = Arc::clone(&streams);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, counted, mut cut) =
                    (server.clone(), Arc::clone(&counted), cut.clone());
                cut.mark_unchanged();
                tokio::spawn(async move {
                    tokio::select! {
                        () = pass(client, &server, &counted) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self { address, streams, cuts }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Breaks every connection that is open.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// How many times the global stream was asked for.
    pub fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }
}

async fn pass(mut client: TcpStream, server: &str, streams: &AtomicUsize) {
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((mut asked, mut answer), (mut answered, mut ask)) = (client.split(), server.split());
    let there = async {
        let mut chunk = [0; 16384];
        while let Ok(read @ 1..) = asked.read(&mut chunk).await {
            // The client of the upstream sends the head of a request in one piece.
            if chunk[..read].starts_with(b"GET /global/event") {
                streams.fetch_add(1, Ordering::Relaxed);
            }
            if ask.write_all(&chunk[..read]).await.is_err() {
                break;
            }
        }
        let _ = ask.shutdown().await;
    };
    let back = async {
        let _ = copy(&mut answered, &mut answer).await;
        let _ = answer.shutdown().await;
    };
    tokio::join!(there, back);
}
