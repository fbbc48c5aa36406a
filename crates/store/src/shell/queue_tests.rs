use std::sync::{Arc, Mutex, mpsc};

use tokio_util::sync::CancellationToken;

use super::{NotRun, Queue};
use crate::seam::Cancel;

/// Tells when it is dropped.
struct Subject {
    notes: Vec<u32>,
    dropped: mpsc::Sender<()>,
}

fn queue() -> (Arc<Queue<Subject>>, mpsc::Receiver<()>) {
    let (dropped, when) = mpsc::channel();
    (Queue::new(Subject { notes: Vec::new(), dropped }), when)
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.dropped.send(());
    }
}

fn note(note: u32) -> impl FnOnce(&mut Subject) -> Vec<u32> + Send {
    move |subject| {
        subject.notes.push(note);
        subject.notes.clone()
    }
}

fn is_dropped(when: &mpsc::Receiver<()>) -> bool {
    when.try_recv().is_ok()
}

#[tokio::test]
async fn jobs_run_in_order_whoever_waits() {
    let (queue, when) = queue();
    let first = queue.submit(note(1), |_| {}).unwrap();
    drop(queue.submit(note(2), |_| {}).unwrap());
    let third = queue.submit(note(3), |_| {}).unwrap();
    assert_eq!(third.outcome(&Cancel::never()).await, Ok(vec![1, 2, 3]));
    assert_eq!(first.outcome(&Cancel::never()).await, Ok(vec![1]));
    assert!(!is_dropped(&when));
    // Once the last caller has heard, nobody but the owner of the queue holds it.
    drop(queue);
    assert!(is_dropped(&when));
}

#[tokio::test]
async fn what_was_submitted_runs_after_the_queue_is_dropped() {
    let (queue, when) = queue();
    let (go, wait) = mpsc::channel::<()>();
    drop(queue.submit(move |_| wait.recv(), |_| {}).unwrap());
    let last = queue.submit(note(1), |_| {}).unwrap();
    drop(queue);
    assert!(!is_dropped(&when));
    go.send(()).unwrap();
    assert_eq!(last.outcome(&Cancel::never()).await, Ok(vec![1]));
    assert!(is_dropped(&when));
}

#[tokio::test]
async fn a_waiting_job_can_be_called_off_and_a_running_one_cannot() {
    let (queue, _when) = queue();
    let (go, wait) = mpsc::channel::<()>();
    let (begun, running) = tokio::sync::oneshot::channel();
    let token = CancellationToken::new();
    let cancel = Cancel::from(token.clone());
    let job = move |subject: &mut Subject| {
        begun.send(()).unwrap();
        wait.recv().unwrap();
        note(1)(subject)
    };
    let first = queue.submit(job, |_| {}).unwrap();
    let second = queue.submit(note(2), |_| {}).unwrap();
    running.await.unwrap();
    token.cancel();
    assert_eq!(second.outcome(&cancel).await, Err(NotRun::Cancelled));
    go.send(()).unwrap();
    assert_eq!(first.outcome(&cancel).await, Ok(vec![1]));
    let third = queue.submit(note(3), |_| {}).unwrap();
    assert_eq!(third.outcome(&Cancel::never()).await, Ok(vec![1, 3]));
}

#[tokio::test]
async fn outcomes_that_nobody_looked_at_are_missed_once() {
    let (queue, _when) = queue();
    let missed = Arc::new(Mutex::new(Vec::new()));
    let submit = |number| {
        let missed = Arc::clone(&missed);
        queue.submit(note(number), move |_| missed.lock().unwrap().push(number)).unwrap()
    };
    // One is gone before the job runs, one after, and one is looked at.
    drop(submit(1));
    let unseen = submit(2);
    let seen = submit(3);
    seen.outcome(&Cancel::never()).await.unwrap();
    drop(unseen);
    assert_eq!(*missed.lock().unwrap(), [1, 2]);
}

#[tokio::test]
async fn closing_lets_earlier_jobs_finish_and_refuses_later_ones() {
    let (queue, when) = queue();
    let first = queue.submit(note(1), |_| {}).unwrap();
    let (closed, wait) = tokio::sync::oneshot::channel();
    queue.close(move |subject| {
        drop(subject);
        closed.send(()).unwrap();
    });
    assert!(queue.is_closed());
    assert_eq!(queue.submit(note(2), |_| {}).err(), Some(NotRun::Closed));
    queue.close(|_| panic!("closed twice"));
    assert_eq!(first.outcome(&Cancel::never()).await, Ok(vec![1]));
    wait.await.unwrap();
    assert!(is_dropped(&when));
}

#[tokio::test]
async fn a_job_that_breaks_off_lets_go_of_everything() {
    let (queue, when) = queue();
    let broken = queue.submit(|_| -> () { panic!("as the test wants") }, |()| {}).unwrap();
    let behind = queue.submit(note(1), |_| {}).unwrap();
    assert_eq!(broken.outcome(&Cancel::never()).await, Err(NotRun::Lost));
    assert_eq!(behind.outcome(&Cancel::never()).await, Err(NotRun::Lost));
    assert!(is_dropped(&when));
    assert_eq!(queue.submit(note(2), |_| {}).err(), Some(NotRun::Closed));
}

#[test]
fn the_end_of_the_runtime_is_not_waited_for() {
    let (queue, when) = queue();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let handle = runtime.handle().clone();
    drop(runtime);
    // No task can run any more: whoever waits, from another runtime, is told.
    let lost = {
        let _entered = handle.enter();
        queue.submit(note(1), |_| {}).unwrap()
    };
    let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(other.block_on(lost.outcome(&Cancel::never())), Err(NotRun::Lost));
    assert!(is_dropped(&when));
}

#[test]
fn a_queue_can_be_closed_where_no_runtime_is() {
    let (queue, when) = queue();
    let (closed, wait) = mpsc::channel();
    queue.close(move |subject| {
        drop(subject);
        closed.send(()).unwrap();
    });
    wait.recv().unwrap();
    assert!(is_dropped(&when));
}
