use futures_util::FutureExt as _;

use super::{Place, Room};

fn place(room: &Room) -> Place {
    room.place().now_or_never().flatten().expect("there is room")
}

#[test]
fn one_network_gets_no_more_than_its_share() {
    let room = Room::new(4, 2);
    let first = room.take(place(&room), "2001:db8::1".parse().unwrap()).unwrap();
    let _second = room.take(place(&room), "2001:db8::2".parse().unwrap()).unwrap();
    assert!(room.take(place(&room), "2001:db8::3".parse().unwrap()).is_none(), "a third");
    assert!(room.take(place(&room), "2001:db8:0:1::1".parse().unwrap()).is_some(), "another");
    drop(first);
    assert!(room.take(place(&room), "2001:db8::3".parse().unwrap()).is_some(), "one has left");
}

#[test]
fn nobody_gets_in_when_it_is_full_and_all_places_come_back() {
    let room = Room::new(2, 2);
    let held = [place(&room), place(&room)];
    assert!(room.place().now_or_never().is_none());
    assert!(room.is_empty().now_or_never().is_none());
    drop(held);
    assert!(room.is_empty().now_or_never().is_some());
    assert!(room.held.lock().unwrap().is_empty(), "nothing is kept of who has left");
}
