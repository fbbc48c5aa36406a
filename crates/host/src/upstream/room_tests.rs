use std::time::Duration;

use super::{Rooms, UNIT_BYTES};

async fn waits<T>(future: impl Future<Output = T>) -> bool {
    tokio::time::timeout(Duration::from_millis(20), future).await.is_err()
}

#[tokio::test]
async fn a_body_waits_until_there_is_room_for_it() {
    let rooms = Rooms::new(4 * UNIT_BYTES);
    let mut first = rooms.take(3 * UNIT_BYTES).await;
    let small = rooms.take(UNIT_BYTES).await;
    assert!(waits(rooms.take(2 * UNIT_BYTES)).await);
    first.shrink_to(UNIT_BYTES + 1);
    let second = rooms.take(2 * UNIT_BYTES).await;
    assert!(waits(rooms.take(UNIT_BYTES + 1)).await);
    drop((first, second, small));
    assert!(!waits(rooms.take(4 * UNIT_BYTES)).await);
}

#[tokio::test]
async fn the_largest_body_fits_alone() {
    let rooms = Rooms::new(5 * UNIT_BYTES + 7);
    assert_eq!(rooms.largest(), 5 * UNIT_BYTES);
    let all = rooms.take(rooms.largest()).await;
    assert!(waits(rooms.take(UNIT_BYTES + 1)).await);
    assert!(!waits(rooms.take(10)).await, "what is small needs none");
    drop(all);
    assert!(!waits(rooms.take(rooms.largest())).await);
    assert_eq!(Rooms::new(0).largest(), UNIT_BYTES);
}
