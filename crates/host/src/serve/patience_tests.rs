use std::{io::ErrorKind, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
    time::{Instant, sleep},
};

use super::Connection;

const PATIENCE: Duration = Duration::from_millis(100);

#[tokio::test]
async fn who_does_not_read_is_given_up() {
    let (ours, _theirs) = duplex(16);
    let mut ours = Connection::new(ours, PATIENCE, ());
    let start = Instant::now();
    let error = ours.write_all(&[0; 64]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(start.elapsed() >= PATIENCE);
}

#[tokio::test]
async fn who_reads_slowly_is_waited_for() {
    let (ours, mut theirs) = duplex(16);
    let mut ours = Connection::new(ours, PATIENCE, ());
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
    let mut ours = Connection::new(ours, PATIENCE, ());
    for _ in 0..3 {
        sleep(PATIENCE * 2).await;
        ours.write_all(b"event").await.unwrap();
        theirs.read_exact(&mut [0; 5]).await.unwrap();
    }
}
