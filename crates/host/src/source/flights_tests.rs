use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::{Notify, oneshot};

use super::{Flights, Moment};

/// Tells that it was dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct Read {
    started: AtomicUsize,
    dropped: Arc<AtomicUsize>,
    end: Arc<Notify>,
}

impl Read {
    fn start(&self) -> impl Future<Output = usize> + Send + 'static {
        let number = self.started.fetch_add(1, Ordering::SeqCst);
        let (dropped, end) = (Dropped(Arc::clone(&self.dropped)), Arc::clone(&self.end));
        async move {
            let _dropped = dropped;
            end.notified().await;
            number
        }
    }

    fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }
}

/// A waiter, and what makes it leave.
type Waiter = (tokio::task::JoinHandle<Option<usize>>, oneshot::Sender<()>);

fn wait(flights: &Arc<Flights<usize>>, key: &str, read: &Arc<Read>) -> Waiter {
    wait_since(flights, key, Moment::default(), read)
}

/// One whose own last read ended at `floor`.
fn wait_since(flights: &Arc<Flights<usize>>, key: &str, floor: Moment, read: &Arc<Read>) -> Waiter {
    let (leave, left) = oneshot::channel::<()>();
    let (flights, key, read) = (Arc::clone(flights), key.to_owned(), Arc::clone(read));
    let waiting = tokio::spawn(async move {
        tokio::select! {
            (end, _) = flights.join(key, floor, || read.start()) => Some(end),
            _ = left => None,
        }
    });
    (waiting, leave)
}

async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_asks_for_the_same_shares_one_read() {
    let (flights, read) = (Arc::new(Flights::default()), Arc::new(Read::default()));
    let waiters: Vec<_> = (0..8).map(|_| wait(&flights, "a", &read)).collect();
    let (other, _stays) = wait(&flights, "b", &read);
    settle().await;
    assert_eq!(read.started.load(Ordering::SeqCst), 2);
    read.end.notify_waiters();
    for (waiting, _stays) in waiters {
        assert_eq!(waiting.await.unwrap(), Some(0));
    }
    assert_eq!(other.await.unwrap(), Some(1));
    let (later, _stays) = wait(&flights, "a", &read);
    settle().await;
    read.end.notify_waiters();
    assert_eq!(later.await.unwrap(), Some(2), "nothing is kept");
    assert!(flights.under_way().len() <= 1, "what is done is not listed for ever");
}

#[tokio::test]
async fn one_who_leaves_takes_nothing_from_the_others() {
    let (flights, read) = (Arc::new(Flights::default()), Arc::new(Read::default()));
    let (first, leave_first) = wait(&flights, "a", &read);
    settle().await;
    let (second, _stays) = wait(&flights, "a", &read);
    settle().await;
    leave_first.send(()).unwrap();
    assert_eq!(first.await.unwrap(), None);
    assert_eq!(read.dropped(), 0);
    read.end.notify_waiters();
    assert_eq!(second.await.unwrap(), Some(0));
}

#[tokio::test]
async fn the_last_one_who_leaves_ends_the_read() {
    let (flights, read) = (Arc::new(Flights::default()), Arc::new(Read::default()));
    let waiters = [wait(&flights, "a", &read), wait(&flights, "a", &read)];
    settle().await;
    for (left, (waiting, leave)) in waiters.into_iter().enumerate() {
        assert_eq!(read.dropped(), 0, "{left} left");
        leave.send(()).unwrap();
        assert_eq!(waiting.await.unwrap(), None);
    }
    assert_eq!(read.dropped(), 1);
    let (again, _stays) = wait(&flights, "a", &read);
    settle().await;
    read.end.notify_waiters();
    assert_eq!(again.await.unwrap(), Some(1), "who comes then starts anew");
}

#[tokio::test]
async fn a_read_does_not_fall_back_behind_the_one_before() {
    let (flights, read) = (Arc::new(Flights::default()), Arc::new(Read::default()));
    // Someone's look at the newest row is under way when a page is read …
    let (early, _stays) = wait(&flights, "head", &read);
    settle().await;
    let (_, ended) = flights.join("page".to_owned(), Moment::default(), || async { 0 }).await;
    // … by two, who look at the newest row then: not with the other's eyes, but with one pair.
    let (first, _stays) = wait_since(&flights, "head", ended, &read);
    settle().await;
    let (second, _stays) = wait_since(&flights, "head", ended, &read);
    settle().await;
    read.end.notify_waiters();
    assert_eq!(early.await.unwrap(), Some(0));
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (Some(1), Some(1)));
}
