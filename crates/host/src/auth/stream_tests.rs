use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use futures_util::{StreamExt as _, stream};
use http_body_util::BodyExt as _;
use tempfile::TempDir;

use super::{Ending, Watched};
use crate::{
    auth::{Auth, Pass, Scope, TokenFile},
    options::AuthOptions,
    serve::{Peer, Shutdown},
};

const EVERY: Duration = Duration::from_millis(20);

/// A body that has said something and may go on any time.
fn endless() -> Body {
    let said = stream::once(async { Ok::<_, Infallible>(Bytes::from_static(b"said")) });
    Body::from_stream(said.chain(stream::pending()))
}

fn pass(tokens: &TokenFile) -> Pass {
    let options = AuthOptions {
        token_file: Some(tokens.path().to_owned()),
        tokens_required: true,
        ..AuthOptions::default()
    };
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let auth = Arc::new(Auth::load(&options, local).unwrap());
    let token = tokens.create("t", Scope::Read, None).unwrap();
    let value = HeaderValue::try_from(format!("Bearer {}", token.reveal())).unwrap();
    let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value)]);
    auth.check(&headers, Peer { address: local.ip(), secure: false }).unwrap()
}

fn tokens() -> (TempDir, TokenFile) {
    let folder = TempDir::new().unwrap();
    let file = TokenFile::new(folder.path().join("tokens.json"));
    (folder, file)
}

async fn starts(body: &mut Body) {
    let frame = body.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "said");
}

#[tokio::test]
async fn an_event_stream_ends_with_the_token_it_was_asked_for_with() {
    let (_folder, tokens) = tokens();
    let shutdown = Shutdown::default();
    let watched = Watched::new(endless(), pass(&tokens), Ending::Quiet, EVERY, &shutdown);
    let mut body = Body::new(watched);
    starts(&mut body).await;
    assert!(tokio::time::timeout(EVERY * 5, body.frame()).await.is_err(), "it goes on");
    tokens.revoke("t").unwrap();
    assert!(body.frame().await.is_none());
    assert!(body.frame().await.is_none(), "it has ended for good");
}

#[tokio::test]
async fn anything_else_breaks_off_visibly() {
    let (_folder, tokens) = tokens();
    let shutdown = Shutdown::default();
    let watched = Watched::new(endless(), pass(&tokens), Ending::Broken, EVERY, &shutdown);
    let mut body = Body::new(watched);
    starts(&mut body).await;
    tokens.revoke("t").unwrap();
    assert!(body.frame().await.unwrap().is_err());
}

#[tokio::test]
async fn an_event_stream_ends_with_the_host() {
    let (_folder, tokens) = tokens();
    let shutdown = Shutdown::default();
    let watched = Watched::new(endless(), pass(&tokens), Ending::Quiet, EVERY, &shutdown);
    let mut body = Body::new(watched);
    starts(&mut body).await;
    let stopping = shutdown.clone();
    let (end, ()) = tokio::join!(body.frame(), async move { stopping.begin() });
    assert!(end.is_none());
}
