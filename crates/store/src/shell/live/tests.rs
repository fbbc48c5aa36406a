use std::{
    future::Future,
    io,
    pin::pin,
    sync::{Condvar, mpsc},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use turnkeep_log::SessionHeader;

use super::*;
use crate::{
    error::{IoFailure, NotSerializable},
    seam::SessionHandle,
    shell::{
        failure::LogFailure,
        handle::{Handle, ReadLog, Reading, Slice},
        registry::Registry,
        writer::{Broken, Setback, Writer},
    },
};

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Stored,
    Failed,
    Poisoned,
    Lost,
    Panic,
}

/// A log that does as it is told.
#[derive(Clone, Debug)]
struct Told(Arc<(Mutex<Script>, Condvar)>);

#[derive(Debug)]
struct Script {
    fate: Fate,
    /// The batch that waits until it is let go, counted from 1.
    held: usize,
    /// How many batches were to be stored.
    begun: usize,
    batches: Vec<Vec<u64>>,
    max_batch_bytes: u64,
}

impl Told {
    fn new() -> Self {
        let (fate, batches) = (Fate::Stored, Vec::new());
        let script = Script { fate, held: 0, begun: 0, batches, max_batch_bytes: u64::MAX };
        Self(Arc::new((Mutex::new(script), Condvar::new())))
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.0.lock().unwrap()
    }

    fn fate(&self, fate: Fate) {
        self.script().fate = fate;
    }

    /// Lets the next batch wait until it is let go.
    fn hold(&self) {
        let mut script = self.script();
        script.held = script.begun + 1;
    }

    fn let_go(&self) {
        self.script().held = 0;
        self.0.1.notify_all();
    }

    /// Lets a batch go that waits, and the one after it wait instead.
    fn hold_the_next(&self) {
        self.script().held += 1;
        self.0.1.notify_all();
    }

    /// Waits, while the clock stands still, until so many batches were to be stored.
    async fn begun(&self, count: usize) {
        self.until(|script| script.begun == count).await;
    }

    async fn stored(&self, batches: &[&[u64]]) {
        self.until(|script| script.batches.len() >= batches.len()).await;
        assert_eq!(self.script().batches, batches);
    }

    async fn until(&self, done: impl Fn(&Script) -> bool) {
        let start = std::time::Instant::now();
        while !done(&self.script()) {
            assert!(start.elapsed() < Duration::from_secs(20), "never: {:?}", self.script());
            tokio::task::yield_now().await;
        }
    }

    fn flat(&self) -> Vec<u64> {
        self.script().batches.concat()
    }
}

impl WriteLog for Told {
    type Acknowledged = ();
    type Batch = Vec<u64>;

    fn encode(&self, events: &[Event]) -> Result<Vec<u64>, NotSerializable> {
        Ok(events.iter().map(|event| event.seq().0).collect())
    }

    fn store(&mut self, batch: Option<Vec<u64>>) -> Result<(), Setback> {
        let Some(batch) = batch else { return Ok(()) };
        let mut script = self.script();
        script.begun += 1;
        let number = script.begun;
        while script.held == number {
            script = self.0.1.wait(script).unwrap();
        }
        let io = || IoFailure { context: "full".to_owned(), source: io::Error::other("disk") };
        let told = || "as told".to_owned();
        match script.fate {
            Fate::Stored => script.batches.push(batch),
            Fate::Failed => return Err(Setback::Failed(io().into())),
            Fate::Poisoned => return Err(Setback::Broken(Broken::Poisoned(told()))),
            Fate::Lost => return Err(Setback::Broken(Broken::Lost(told()))),
            Fate::Panic => {
                drop(script);
                panic!("as the test wants");
            }
        }
        Ok(())
    }

    fn acknowledged(&self) -> Option<()> {
        Some(())
    }

    fn max_batch_bytes(&self) -> u64 {
        self.script().max_batch_bytes
    }
}

impl ReadLog for Told {
    fn read(&self, _: &SessionId, _: EventRange, _: &Cancel) -> Result<Option<Slice>, LogFailure> {
        Ok(Some(Slice { events: Vec::new(), end: Some(self.flat().len() as u64) }))
    }
}

/// A session held open to write, and what it is stored in.
struct Bench {
    log: Told,
    registry: Arc<Registry<Told>>,
    handle: Handle<Told, Told>,
    live: Arc<Live<Told>>,
    _end: LetGo,
}

/// Lets go of a batch that waits when the test ends, so that one that fails does not wait for it.
struct LetGo(Told);

impl Drop for LetGo {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

fn id() -> SessionId {
    SessionId::new("s").unwrap()
}

impl Bench {
    fn new(log: Told, options: LiveOptions) -> Self {
        let registry = Registry::new("told", options);
        let claim = registry.claim(&id()).unwrap();
        let writer = Writer::new(id(), Arc::clone(claim.owner()), log.clone(), Seq(0));
        let reading = Reading::new(SessionHeader::new(id(), 1), log.clone(), None, 0);
        let handle = Handle::new(reading, Some(Owned::new(writer, claim)));
        let live = Arc::clone(registry.writing(&id()).unwrap().live());
        Self { _end: LetGo(log.clone()), log, registry, handle, live }
    }

    fn with_room_for(max_events: usize) -> Self {
        Self::new(Told::new(), LiveOptions { max_events, ..LiveOptions::default() })
    }

    async fn publish(&self, seqs: impl IntoIterator<Item = u64>) {
        for seq in seqs {
            self.live.publish(event(seq)).await.unwrap();
        }
    }

    async fn refusal(&self, seq: u64) -> &'static str {
        self.live.publish(event(seq)).await.unwrap_err().kind()
    }
}

fn event(seq: u64) -> Event {
    let text = format!(r#"{{"type":"todo/write","seq":{seq},"time":1,"data":{{"n":{seq}}}}}"#);
    Event::parse(&text.into()).unwrap()
}

fn batch(first: u64, count: u64) -> Vec<Event> {
    (first..first + count).map(event).collect()
}

fn never() -> Cancel {
    Cancel::never()
}

/// Polls a future once; whether it is not done.
fn pends<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

const WINDOW: Duration = Duration::from_millis(200);

#[tokio::test(start_paused = true)]
async fn what_comes_while_a_batch_is_stored_is_the_next_batch() {
    let bench = Bench::with_room_for(100);
    bench.publish(0..2).await;
    bench.log.hold();
    sleep(WINDOW).await;
    bench.log.begun(1).await;
    let clock = Instant::now();
    bench.publish(2..5).await;
    bench.log.let_go();
    bench.log.stored(&[&[0, 1], &[2, 3, 4]]).await;
    assert_eq!(Instant::now(), clock, "the next batch waits for no window");
}

#[tokio::test]
async fn a_flush_does_not_wait_for_a_producer_that_never_pauses() {
    let bench = Arc::new(Bench::with_room_for(10));
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let producer = {
        let (bench, stop) = (Arc::clone(&bench), Arc::clone(&stop));
        tokio::spawn(async move {
            let mut next = 0;
            while !stop.load(Ordering::Relaxed) {
                bench.publish([next]).await;
                next += 1;
                tokio::task::yield_now().await;
            }
            next
        })
    };
    let never = never();
    for _ in 0..50 {
        let flushed = bench.handle.flush(&never);
        tokio::time::timeout(Duration::from_secs(20), flushed).await.unwrap().unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    let published = producer.await.unwrap();
    bench.handle.close().await.unwrap();
    assert_eq!(bench.log.flat(), (0..published).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_full_buffer_is_stored_at_once_and_pushes_back() {
    let bench = Bench::with_room_for(3);
    let clock = Instant::now();
    bench.log.hold();
    bench.publish(0..3).await;
    bench.log.begun(1).await;
    // As many may wait as before, while those are being stored.
    bench.publish(3..6).await;
    {
        // One that gives up was not taken, and lets the next have its turn.
        let mut dropped = pin!(bench.live.publish(event(6)));
        assert!(pends(dropped.as_mut()));
        let mut behind = pin!(bench.live.publish(event(7)));
        assert!(pends(behind.as_mut()));
    }
    let mut waiting = pin!(bench.live.publish(event(6)));
    assert!(pends(waiting.as_mut()));
    bench.log.hold_the_next();
    // There is room as soon as those before it are taken up.
    let start = std::time::Instant::now();
    while pends(waiting.as_mut()) {
        assert!(start.elapsed() < Duration::from_secs(20), "never");
        tokio::task::yield_now().await;
    }
    bench.log.begun(2).await;
    assert_eq!(bench.log.flat(), [0, 1, 2]);
    bench.log.let_go();
    bench.handle.flush(&never()).await.unwrap();
    bench.log.stored(&[&[0, 1, 2], &[3, 4, 5], &[6]]).await;
    assert_eq!(Instant::now(), clock);
}

#[tokio::test(start_paused = true)]
async fn bytes_make_a_buffer_full_too() {
    let length = line_len(&event(0));
    let options = LiveOptions { max_bytes: 2 * length, ..LiveOptions::default() };
    let bench = Bench::new(Told::new(), options);
    let clock = Instant::now();
    bench.publish(0..4).await;
    bench.log.stored(&[&[0, 1], &[2, 3]]).await;
    assert_eq!(Instant::now(), clock);

    // One that is larger than the buffer is stored alone.
    let options = LiveOptions { max_bytes: length / 2, ..options };
    let bench = Bench::new(Told::new(), options);
    bench.publish(0..3).await;
    bench.log.stored(&[&[0], &[1], &[2]]).await;
}

#[tokio::test(start_paused = true)]
async fn events_are_no_longer_than_readers_take_and_neither_are_batches() {
    let log = Told::new();
    log.script().max_batch_bytes = line_len(&event(0)) as u64 * 2;
    let bench = Bench::new(log, LiveOptions::default());
    let oversized = format!(r#"{{"type":"t","seq":0,"time":1,"data":"{}"}}"#, "x".repeat(200));
    let oversized = Event::parse(&oversized.into()).unwrap();
    let error = bench.live.publish(oversized).await.unwrap_err();
    assert_eq!(error.kind(), "not_serializable");
    bench.publish(0..5).await;
    bench.handle.flush(&never()).await.unwrap();
    bench.log.stored(&[&[0, 1], &[2, 3], &[4]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_full_buffer_that_cannot_be_stored_tells_its_producer() {
    let bench = Bench::with_room_for(3);
    bench.log.fate(Fate::Failed);
    bench.publish(0..3).await;
    bench.log.begun(1).await;
    let error = bench.live.publish(event(3)).await.unwrap_err();
    assert_eq!(error.kind(), "io");
    assert!(error.to_string().contains("session \"s\": the event was not taken"), "{error}");
    assert_eq!(bench.refusal(3).await, "io");
    // Each of them has tried again.
    assert!(bench.log.script().begun >= 3, "{:?}", bench.log.script());
    bench.log.fate(Fate::Stored);
    bench.publish(3..5).await;
    bench.handle.flush(&never()).await.unwrap();
    bench.log.stored(&[&[0, 1, 2], &[3, 4]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_handle_takes_no_events_and_close_tells_what_it_kept() {
    for (fate, kind) in [(Fate::Poisoned, "poisoned"), (Fate::Lost, "ownership_lost")] {
        let bench = Bench::with_room_for(100);
        bench.publish(0..1).await;
        bench.handle.flush(&never()).await.unwrap();
        bench.publish(1..4).await;
        bench.log.fate(fate);
        sleep(2 * WINDOW).await;
        assert_eq!(bench.refusal(4).await, kind);
        assert_eq!(bench.handle.flush(&never()).await.unwrap_err().kind(), kind);
        let error = bench.handle.close().await.unwrap_err();
        assert_eq!(error.kind, kind);
        assert_eq!(error.unstored, Some(EventRange { offset: 1, length: Some(3) }));
        assert!(error.message.contains("3 published events, from seq 1 on"), "{error}");
        bench.registry.claim(&id()).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_append_breaks_is_broken_for_publishers() {
    for (fate, kind) in [(Fate::Poisoned, "poisoned"), (Fate::Lost, "ownership_lost")] {
        let bench = Bench::with_room_for(100);
        bench.log.fate(fate);
        let appended = bench.handle.append(batch(0, 1), &never()).await;
        assert_eq!(appended.unwrap_err().kind(), kind);
        assert_eq!(bench.refusal(0).await, kind);
        bench.handle.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn storing_that_breaks_off_is_an_error_for_everyone() {
    let bench = Bench::with_room_for(2);
    bench.log.fate(Fate::Panic);
    bench.publish(0..2).await;
    bench.log.begun(1).await;
    // Whoever waits for room is told.
    let mut next = 2;
    let kind = loop {
        match bench.live.publish(event(next)).await {
            Ok(()) => next += 1,
            Err(error) => break error.kind(),
        }
        assert!(next < 10);
    };
    assert_eq!(kind, "poisoned");
    // The queue is closed a moment later.
    let flushed = bench.handle.flush(&never()).await.unwrap_err();
    assert!(["poisoned", "handle_closed"].contains(&flushed.kind()), "{flushed}");
    let error = bench.handle.close().await.unwrap_err();
    assert_eq!(error.kind, "poisoned");
    assert_eq!(error.unstored, Some(EventRange { offset: 0, length: Some(next) }));
}

#[tokio::test(start_paused = true)]
async fn publishers_wait_for_an_append_that_is_under_way() {
    let bench = Bench::with_room_for(100);
    bench.log.hold();
    let never = never();
    let mut append = Box::pin(bench.handle.append(batch(0, 3), &never));
    assert!(pends(append.as_mut()));
    bench.log.begun(1).await;
    let mut published = Box::pin(bench.live.publish(event(3)));
    assert!(pends(published.as_mut()));
    bench.log.let_go();
    append.await.unwrap();
    published.await.unwrap();

    // One that fails leaves the log, and what comes next, as it was.
    bench.log.hold();
    bench.log.fate(Fate::Failed);
    let mut append = Box::pin(bench.handle.append(batch(4, 3), &never));
    assert!(pends(append.as_mut()));
    let mut published = Box::pin(bench.live.publish(event(4)));
    assert!(pends(published.as_mut()));
    bench.log.let_go();
    append.await.unwrap_err();
    published.await.unwrap();
    bench.log.fate(Fate::Stored);
    bench.handle.close().await.unwrap();
    assert_eq!(bench.log.flat(), [0, 1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn publishers_do_not_wait_for_an_append_that_was_called_off() {
    let bench = Bench::with_room_for(100);
    bench.log.hold();
    let never = never();
    let mut first = Box::pin(bench.handle.append(batch(0, 1), &never));
    assert!(pends(first.as_mut()));
    bench.log.begun(1).await;
    let token = CancellationToken::new();
    let cancel = Cancel::from(token.clone());
    let mut second = Box::pin(bench.handle.append(batch(1, 1), &cancel));
    assert!(pends(second.as_mut()));
    token.cancel();
    assert_eq!(second.await.unwrap_err().kind(), "cancelled");
    bench.log.let_go();
    first.await.unwrap();
    bench.publish(1..2).await;
    bench.handle.close().await.unwrap();
    assert_eq!(bench.log.flat(), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn closing_stores_what_came_while_a_batch_was_stored() {
    let bench = Bench::with_room_for(3);
    bench.log.hold();
    bench.publish(0..3).await;
    bench.log.begun(1).await;
    bench.publish(3..6).await;
    let mut late = Box::pin(bench.live.publish(event(6)));
    assert!(pends(late.as_mut()));
    let closing = bench.handle.close();
    bench.log.let_go();
    closing.await.unwrap();
    assert_eq!(late.await.unwrap_err().kind(), "handle_closed");
    assert_eq!(bench.log.flat(), [0, 1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_handle_lets_go_at_once_unless_something_waits() {
    let bench = Bench::with_room_for(100);
    bench.publish(0..1).await;
    bench.handle.flush(&never()).await.unwrap();
    // Whoever looks at it at this moment does not keep it.
    let looking = bench.registry.writing(&id()).unwrap();
    drop(bench.handle);
    bench.registry.claim(&id()).unwrap();
    drop(looking);

    let bench = Bench::with_room_for(100);
    bench.publish(0..2).await;
    bench.log.hold();
    drop(bench.handle);
    assert!(bench.registry.claim(&id()).is_none());
    assert_eq!(bench.live.publish(event(2)).await.unwrap_err().kind(), "handle_closed");
    bench.log.let_go();
    bench.log.stored(&[&[0, 1]]).await;
}

#[test]
fn a_window_ends_with_its_runtime_and_the_next_event_opens_another() {
    let runtime =
        || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let bench = Bench::with_room_for(100);
    runtime().unwrap().block_on(bench.publish(0..1));
    assert_eq!(bench.log.flat(), [0; 0]);
    runtime().unwrap().block_on(async {
        bench.publish(1..2).await;
        sleep(WINDOW).await;
        bench.log.stored(&[&[0, 1]]).await;
    });
}

#[test]
fn a_publisher_does_not_wait_for_a_queue_that_ended_with_its_runtime() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let bench = Bench::with_room_for(2);
    let ended = runtime();
    let handle = ended.handle().clone();
    ended.block_on(bench.publish(0..1));
    drop(ended);
    {
        let _entered = handle.enter();
        let mut last = pin!(bench.live.publish(event(1)));
        assert!(!pends(last.as_mut()));
    }
    runtime().block_on(async {
        let refused = bench.live.publish(event(2));
        let refused = tokio::time::timeout(Duration::from_secs(20), refused).await.unwrap();
        assert_eq!(refused.unwrap_err().kind(), "poisoned");
        let error = bench.handle.close().await.unwrap_err();
        assert_eq!(error.unstored, Some(EventRange { offset: 0, length: Some(2) }));
    });
}

#[test]
fn without_a_runtime_there_is_no_window() {
    let bench = Bench::with_room_for(100);
    let (stored, when) = mpsc::channel();
    let log = bench.log.clone();
    for seq in 0..3 {
        let mut published = pin!(bench.live.publish(event(seq)));
        let polled = published.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Ready(Ok(()))));
    }
    std::thread::spawn(move || {
        while log.flat().len() < 3 {
            std::thread::yield_now();
        }
        stored.send(()).unwrap();
    });
    when.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(bench.log.flat(), [0, 1, 2]);
}
