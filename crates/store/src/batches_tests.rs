use turnkeep_log::{Event, Seq, SessionHeader, SessionId, Text};

use super::{EventBatches, FEWEST};
use crate::{
    Cancel, EventRange, SessionHandle, SessionStore,
    memory::{Disk, MemoryStore},
};

/// A session of this many events, each of about so many bytes.
async fn stored(count: u64, bytes: usize) -> Box<dyn SessionHandle> {
    let store = MemoryStore::new(&Disk::new());
    let header = SessionHeader::new(SessionId::new("s").unwrap(), 1);
    let handle = store.create(header, &Cancel::never()).await.unwrap();
    append(&*handle, 0, count, bytes).await;
    handle
}

async fn append(handle: &dyn SessionHandle, first: u64, count: u64, bytes: usize) {
    let filler = "x".repeat(bytes);
    let event = |seq| {
        let text = format!(
            r#"{{"type":"session/title","seq":{seq},"time":1,"data":{{"title":"{filler}"}}}}"#
        );
        Event::parse(&Text::from(text)).unwrap()
    };
    let events = (first..first + count).map(event).collect();
    handle.append(events, &Cancel::never()).await.unwrap();
}

/// How many events each piece has, to the end.
async fn sizes(batches: &mut EventBatches, handle: &dyn SessionHandle) -> Vec<u64> {
    let mut sizes = Vec::new();
    loop {
        let from = batches.position();
        let events = batches.next(handle, &Cancel::never()).await.unwrap();
        if events.is_empty() {
            return sizes;
        }
        assert_eq!(events[0].seq(), from);
        sizes.push(events.len() as u64);
    }
}

#[tokio::test]
async fn pieces_of_small_events_grow_and_those_of_large_ones_shrink() {
    let small = stored(9000, 10).await;
    let mut batches = EventBatches::new(EventRange::ALL);
    assert_eq!(sizes(&mut batches, &*small).await, [1024, 2048, 4096, 1832]);
    let large = stored(2000, 20_000).await;
    let mut batches = EventBatches::new(EventRange::ALL);
    let sizes = sizes(&mut batches, &*large).await;
    assert_eq!(sizes[..4], [1024, 512, 256, 128]);
    assert!(sizes.iter().all(|size| *size >= FEWEST));
    assert_eq!(sizes.iter().sum::<u64>(), 2000);
}

#[tokio::test]
async fn a_range_ends_where_it_ends_or_the_log_does() {
    let handle = stored(3000, 10).await;
    for (offset, length, expected) in [
        (0, Some(1024), vec![1024]),
        (5, Some(1500), vec![1024, 476]),
        (2999, Some(9), vec![1]),
        (2999, None, vec![1]),
        (3000, None, vec![]),
        (u64::MAX, Some(1), vec![]),
        (0, Some(0), vec![]),
    ] {
        let mut batches = EventBatches::new(EventRange { offset, length });
        assert_eq!(sizes(&mut batches, &*handle).await, expected, "{offset} {length:?}");
        let read: u64 = expected.iter().sum();
        assert_eq!(batches.is_done(), length == Some(read));
    }
}

#[tokio::test]
async fn a_log_that_grows_goes_on_where_it_ended() {
    let handle = stored(3, 10).await;
    let mut batches = EventBatches::new(EventRange::ALL);
    assert_eq!(sizes(&mut batches, &*handle).await, [3]);
    append(&*handle, 3, 2, 10).await;
    assert_eq!(sizes(&mut batches, &*handle).await, [2]);
    assert_eq!(batches.position(), Seq(5));
}
