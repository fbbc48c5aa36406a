use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::{UpstreamHealth, check_upstream};
use crate::UpstreamOptions;

/// Asks a server that gives this answer, or none.
async fn asked(answer: Option<&'static str>) -> UpstreamHealth {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = UpstreamOptions::new(&format!("http://{}", listener.local_addr().unwrap()));
    let options = options.unwrap().with_password(Some("secret".to_owned()));
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4096];
        let read = stream.read(&mut head).await.unwrap();
        let head = String::from_utf8_lossy(&head[..read]).into_owned();
        match answer {
            Some(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
            None => std::future::pending().await,
        }
        head
    });
    let health = check_upstream(options).await.unwrap();
    if answer.is_some() {
        let head = serving.await.unwrap();
        assert!(head.starts_with("GET /global/health HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("authorization: Basic b3BlbmNvZGU6c2VjcmV0"), "{head}");
    }
    health
}

#[tokio::test]
async fn what_a_server_answers_says_how_it_is() {
    let json = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
    let healthy = format!("{json}{{\"healthy\":true,\"version\":\"1.2.3\"}}");
    let ready = UpstreamHealth::Ready { version: Some("1.2.3".to_owned()) };
    assert_eq!(asked(Some(Box::leak(healthy.into_boxed_str()))).await, ready);
    let other = format!("{json}{{\"fine\":1}}");
    let other: &'static str = Box::leak(other.into_boxed_str());
    assert_eq!(asked(Some(other)).await, UpstreamHealth::NotOpenCode);
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>";
    assert_eq!(asked(Some(page)).await, UpstreamHealth::NotOpenCode);
    let refused = "HTTP/1.1 401 Unauthorized\r\nconnection: close\r\n\r\n";
    assert_eq!(asked(Some(refused)).await, UpstreamHealth::LoginRefused);
    let restarting = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\r\n";
    assert_eq!(asked(Some(restarting)).await, UpstreamHealth::Unavailable);
    assert_eq!(asked(None).await, UpstreamHealth::Silent);
}

#[tokio::test]
async fn nobody_there_is_unavailable() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let options = UpstreamOptions::new(&format!("http://{port}")).unwrap();
    assert_eq!(check_upstream(options).await.unwrap(), UpstreamHealth::Unavailable);
}
