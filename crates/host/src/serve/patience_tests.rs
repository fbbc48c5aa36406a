use std::{io::ErrorKind, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
    time::{Instant, sleep},
};

use super::{Connection, Hangup};

const PATIENCE: Duration = Duration::from_millis(100);

#[tokio::test]
async fn who_does_not_read_is_given_up() {
    let (ours, _theirs) = duplex(16);
    let mut ours = Connection::new(ours, PATIENCE, (), &Hangup::default());
    let start = Instant::now();
    let error = ours.write_all(&[0; 64]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(start.elapsed() >= PATIENCE);
}

#[tokio::test]
async fn who_reads_slowly_is_waited_for() {
    let (ours, mut theirs) = duplex(16);
    let mut ours = Connection::new(ours, PATIENCE, (), &Hangup::default());
    let reading = tokio::spawn(async move {
        let mut read = 0;
        while read < 128 {
            sleep(PATIENCE / 4).await;
            read += theirs.read(&mut [0; 16]).await.unwrap();
        }
    });
    ours.write_all(&[0; 128]).await.unwrap();
    reading.await.unwrap();
}

#[tokio::test]
async fn saying_nothing_costs_nobody_the_connection() {
    let (ours, mut theirs) = duplex(16);
    let mut ours = Connection::new(ours, PATIENCE, (), &Hangup::default());
    for _ in 0..3 {
        sleep(PATIENCE * 2).await;
        ours.write_all(b"event").await.unwrap();
        theirs.read_exact(&mut [0; 5]).await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_is_hung_up_ends_for_whoever_has_it() {
    let (ours, _theirs) = duplex(16);
    let hangup = Hangup::default();
    let mut ours = Connection::new(ours, PATIENCE, (), &hangup);
    let reading = tokio::spawn(async move {
        let read = ours.read(&mut [0; 16]).await.unwrap();
        (read, ours.write_all(b"x").await.unwrap_err().kind())
    });
    hangup.hang_up();
    assert_eq!(reading.await.unwrap(), (0, ErrorKind::ConnectionAborted));
}

#[tokio::test]
async fn whoever_would_hang_up_learns_that_there_is_nothing_left() {
    let (ours, _theirs) = duplex(16);
    let hangup = Hangup::default();
    drop(Connection::new(ours, PATIENCE, (), &hangup));
    hangup.ended().await;
}
