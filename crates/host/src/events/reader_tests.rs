use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, sleep};

use super::{End, Retry, follow};
use crate::events::{EventTiming, Hub};

const EVENT: &str = "data: {\"type\":\"note\",\"properties\":{}}\n\n";

async fn follow_chunks(chunks: Vec<(u64, &'static str)>, stall: u64) -> (End, u64, Option<String>) {
    let hub = Hub::new(1 << 20, 1 << 20);
    let chunks = stream::iter(chunks).then(|(after, chunk)| async move {
        sleep(Duration::from_millis(after)).await;
        Ok::<_, Infallible>(Bytes::from_static(chunk.as_bytes()))
    });
    let mut last_id = None;
    let end = follow(&hub, chunks, Duration::from_millis(stall), &mut last_id).await;
    (end, hub.stats().events, last_id)
}

#[tokio::test]
async fn empty_chunks_do_not_put_off_the_stall() {
    let started = Instant::now();
    let empty = vec![(20, ""); 100];
    let (end, events, _) = follow_chunks([vec![(0, EVENT)], empty].concat(), 200).await;
    assert_eq!((end, events), (End::Stalled, 1));
    assert!(started.elapsed() < Duration::from_millis(1500));
}

#[tokio::test]
async fn any_other_chunk_puts_off_the_stall() {
    let chunks = vec![(60, ": still here\n\n"); 10];
    assert_eq!(follow_chunks(chunks, 400).await.0, End::Ended);
}

#[tokio::test]
async fn an_id_is_remembered_and_lines_may_end_in_any_way() {
    let chunks = vec![(0, "id: evt-1\r"), (0, "\ndata: {\"type\":\"note\"}\r\n\r"), (0, "\n")];
    let told = follow_chunks(chunks, 1000).await;
    assert_eq!(told, (End::Ended, 1, Some("evt-1".to_owned())));
}

#[tokio::test]
async fn what_is_no_event_is_left_out_and_counted() {
    let hub = Hub::new(1 << 20, 1 << 20);
    let bytes = format!("data: nonsense\n\ndata: []\n\ndata: {{}}\n\n: comment\n\n{EVENT}");
    let chunks = stream::iter([Ok::<_, Infallible>(Bytes::from(bytes))]);
    follow(&hub, chunks, Duration::from_secs(1), &mut None).await;
    let stats = hub.stats();
    assert_eq!((stats.events, stats.upstream_skipped), (1, 3));
}

#[test]
fn the_pause_doubles_up_to_a_bound() {
    let timing = EventTiming::default();
    let mut retry = Retry::new(&timing);
    let mut expected = timing.retry;
    for _ in 0..10 {
        let pause = retry.next();
        assert!(
            pause >= expected * 8 / 10 && pause <= expected * 12 / 10,
            "{pause:?}, {expected:?}"
        );
        expected = (expected * 2).min(timing.retry_at_most);
    }
    retry.restart();
    assert!(retry.next() < timing.retry * 2);
}
