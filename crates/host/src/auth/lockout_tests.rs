use std::{
    net::{IpAddr, Ipv4Addr},
    time::{Duration, Instant},
};

use super::{FAILURES, LOCK, Lockout, NETWORKS, WINDOW, Wait};

const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 2));
const SECOND: Duration = Duration::from_secs(1);

fn fail(lockout: &Lockout, times: usize, now: Instant) {
    for _ in 0..times {
        lockout.failed(ONE, now);
    }
}

#[test]
fn the_tenth_failure_locks_for_a_quarter_of_an_hour() {
    let (lockout, now) = (Lockout::default(), Instant::now());
    fail(&lockout, FAILURES - 1, now);
    assert_eq!(lockout.wait(ONE, now), None);
    fail(&lockout, 1, now);
    assert_eq!(lockout.wait(ONE, now), Some(Wait(LOCK)));
    assert_eq!(lockout.attempt(ONE, now).unwrap_err(), Wait(LOCK));
    assert_eq!(lockout.wait(OTHER, now), None, "others are not affected");
    assert!(lockout.attempt(OTHER, now).is_ok());

    let before = now + LOCK.saturating_sub(SECOND);
    fail(&lockout, 20, before);
    assert_eq!(lockout.wait(ONE, before), Some(Wait(SECOND)), "trying on does not lengthen it");
    assert_eq!(lockout.wait(ONE, now + LOCK), None);
    fail(&lockout, FAILURES - 1, now + LOCK);
    assert_eq!(lockout.wait(ONE, now + LOCK), None, "it starts from none");
}

#[test]
fn failures_are_forgotten_after_five_minutes() {
    let (lockout, now) = (Lockout::default(), Instant::now());
    fail(&lockout, FAILURES - 1, now);
    let later = now + WINDOW;
    fail(&lockout, FAILURES - 1, later);
    assert_eq!(lockout.wait(ONE, later), None);
    fail(&lockout, 1, later + SECOND);
    assert!(lockout.wait(ONE, later + SECOND).is_some());
}

#[test]
fn guesses_under_way_count_and_so_do_those_given_up() {
    let (lockout, now) = (Lockout::default(), Instant::now());
    let attempts: Vec<_> = (0..FAILURES).map(|_| lockout.attempt(ONE, now).unwrap()).collect();
    assert_eq!(lockout.attempt(ONE, now).unwrap_err().seconds(), 1);
    drop(attempts);
    assert!(lockout.wait(ONE, Instant::now()).is_some(), "all ten have guessed");
}

#[test]
fn a_success_clears_what_was_mistyped_and_no_comparison_is_no_guess() {
    let lockout = Lockout::default();
    for _ in 0..3 {
        let now = Instant::now();
        fail(&lockout, FAILURES - 1, now);
        lockout.attempt(ONE, now).unwrap().succeeded();
        assert_eq!(lockout.wait(ONE, now), None);
    }
    for _ in 0..2 * FAILURES {
        lockout.attempt(ONE, Instant::now()).unwrap().void();
    }
    assert!(lockout.networks.lock().unwrap().is_empty(), "nothing is kept without need");
    for _ in 1..FAILURES {
        assert_eq!(lockout.attempt(ONE, Instant::now()).unwrap().failed(), None);
    }
    let wait = lockout.attempt(ONE, Instant::now()).unwrap().failed().unwrap();
    assert!((LOCK.as_secs() - 1..=LOCK.as_secs()).contains(&wait.seconds()), "{wait:?}");
}

#[test]
fn many_networks_take_bounded_memory_and_do_not_free_a_locked_one() {
    let (lockout, now) = (Lockout::default(), Instant::now());
    fail(&lockout, FAILURES, now);
    for number in 0..u32::try_from(NETWORKS).unwrap() + 50 {
        lockout.failed(IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + number)), now + SECOND);
    }
    assert!(lockout.networks.lock().unwrap().len() <= NETWORKS);
    assert!(lockout.wait(ONE, now + SECOND).is_some());
    // What is over makes room for all.
    lockout.failed(OTHER, now + LOCK);
    assert_eq!(lockout.networks.lock().unwrap().len(), 1);
}

#[test]
fn a_wait_is_told_in_whole_seconds() {
    for (millis, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (900_000, 900)] {
        assert_eq!(Wait(Duration::from_millis(millis)).seconds(), seconds);
    }
}
