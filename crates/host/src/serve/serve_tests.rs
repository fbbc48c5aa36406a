use super::room_for;
use crate::options::ConnectionLimits;

#[test]
fn places_follow_the_open_files_within_bounds() {
    assert_eq!(room_for(256), 64);
    assert_eq!(room_for(1024), 448);
    assert_eq!(room_for(4096), 1984);
    assert_eq!(room_for(u64::MAX), 8192);
}

#[test]
fn nobody_gets_all_places() {
    let limits = ConnectionLimits::default();
    assert!(limits.connections_of_one < limits.connections);
}
