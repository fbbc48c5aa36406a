use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use super::carry;

const LINGER: std::time::Duration = std::time::Duration::from_millis(20);

#[tokio::test]
async fn one_direction_may_end_before_the_other() {
    let (mut client, client_side) = duplex(16);
    let (mut upstream, upstream_side) = duplex(16);
    let carrying = tokio::spawn(carry(client_side, upstream_side, 500 * LINGER));
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut heard = String::new();
    upstream.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "question");
    upstream.write_all(b"a long answer to it").await.unwrap();
    drop(upstream);
    heard.clear();
    client.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "a long answer to it");
    carrying.await.unwrap();
}

#[tokio::test]
async fn a_side_that_is_gone_ends_both() {
    let (client, client_side) = duplex(16);
    let (mut upstream, upstream_side) = duplex(16);
    let carrying = tokio::spawn(carry(client_side, upstream_side, LINGER));
    drop(client);
    assert_eq!(upstream.read_u8().await.unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
    // The upstream does not care.
    carrying.await.unwrap();
}
