use std::{convert::Infallible, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Body as _, Frame};

use super::{Idle, Progress, Upload, Watched, WhenIdle};

const LIMIT: Duration = Duration::from_millis(60);

/// These pieces, each after this wait, and then nothing for ever.
fn slow(
    pieces: &'static [(u64, &'static str)],
) -> StreamBody<impl stream::Stream<Item = Result<Frame<Bytes>, Infallible>> + Unpin> {
    let pieces = stream::iter(pieces).then(|(wait, piece)| async move {
        tokio::time::sleep(Duration::from_millis(*wait)).await;
        Ok(Frame::data(Bytes::from_static(piece.as_bytes())))
    });
    StreamBody::new(Box::pin(pieces.chain(stream::pending())))
}

#[tokio::test]
async fn a_body_that_stops_breaks_off() {
    let mut body = Watched::new(slow(&[(0, "a"), (5, "b"), (5, "c")]), LIMIT, WhenIdle::Break);
    for piece in ["a", "b", "c"] {
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), piece);
    }
    assert!(body.frame().await.unwrap().unwrap_err().is::<Idle>());
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn a_stream_of_events_that_stops_ends() {
    let mut body = Watched::new(slow(&[(0, "a")]), LIMIT, WhenIdle::End);
    assert!(body.frame().await.unwrap().is_ok());
    assert!(body.frame().await.is_none());
    assert!(body.is_end_stream());
}

#[tokio::test]
async fn a_reader_that_takes_its_time_is_no_stall() {
    let mut body = Watched::new(slow(&[(0, "a"), (5, "b")]), LIMIT, WhenIdle::Break);
    assert!(body.frame().await.unwrap().is_ok());
    tokio::time::sleep(2 * LIMIT).await;
    assert!(body.frame().await.unwrap().is_ok());
}

#[tokio::test]
async fn trailers_are_left_out() {
    let trailers =
        Frame::trailers([("x-sum".parse().unwrap(), "1".parse().unwrap())].into_iter().collect());
    let frames = [Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"a"))), Ok(trailers)];
    let mut body = Watched::new(StreamBody::new(stream::iter(frames)), LIMIT, WhenIdle::Break);
    assert!(body.frame().await.unwrap().unwrap().is_data());
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn an_upload_can_be_sent_again_until_something_was_taken() {
    let upload = Upload::new(Body::from("abc"), LIMIT);
    assert_eq!((upload.progress(), upload.size_hint().exact()), (Progress::Untouched, Some(3)));
    drop(upload.clone());
    let mut second = upload.clone();
    assert!(second.frame().await.unwrap().is_ok());
    assert_eq!(upload.progress(), Progress::Begun);

    let mut stalled = Upload::new(Body::new(slow(&[])), LIMIT);
    assert!(stalled.frame().await.unwrap().is_err());
    assert_eq!(stalled.progress(), Progress::Stalled);

    let broken = stream::iter([Err::<Bytes, _>(std::io::Error::other("gone"))]);
    let mut broken = Upload::new(Body::from_stream(broken), LIMIT);
    assert!(broken.frame().await.unwrap().is_err());
    assert_eq!(broken.progress(), Progress::Broken);
}
