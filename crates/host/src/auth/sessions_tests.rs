use std::time::{Duration, Instant};

use super::{AGE, IDLE, LOGINS, LoginBy, Sessions};
use crate::auth::Secret;

const HOUR: Duration = Duration::from_secs(3600);

fn begin(sessions: &Sessions, now: Instant) -> Secret {
    sessions.begin(LoginBy::Password, now).unwrap()
}

fn is_in(sessions: &Sessions, id: &Secret, now: Instant) -> bool {
    sessions.find(&id.digest(), now).is_some()
}

#[test]
fn a_login_ends_after_twelve_idle_hours() {
    let (sessions, now) = (Sessions::default(), Instant::now());
    let (used, idle) = (begin(&sessions, now), begin(&sessions, now));
    let later = now + IDLE.saturating_sub(HOUR);
    assert!(sessions.used(&used.digest(), later).is_some());
    assert!(is_in(&sessions, &idle, later), "looking at it does not use it");
    assert!(is_in(&sessions, &used, now + IDLE));
    assert!(!is_in(&sessions, &idle, now + IDLE));
}

#[test]
fn a_login_ends_after_seven_days_however_much_it_is_used() {
    let (sessions, now) = (Sessions::default(), Instant::now());
    let id = begin(&sessions, now);
    let mut at = now;
    while at + HOUR < now + AGE {
        at += HOUR;
        assert!(sessions.used(&id.digest(), at).is_some());
    }
    assert!(sessions.used(&id.digest(), now + AGE).is_none());
}

#[test]
fn a_login_ends_when_it_is_told_to_and_the_oldest_when_there_are_too_many() {
    let (sessions, now) = (Sessions::default(), Instant::now());
    let (first, second) = (begin(&sessions, now), begin(&sessions, now));
    sessions.end(&first.digest(), now);
    assert!(!is_in(&sessions, &first, now) && is_in(&sessions, &second, now));
    let later = now + HOUR;
    let third = begin(&sessions, later);
    for _ in 0..LOGINS - 1 {
        begin(&sessions, later);
    }
    assert!(!is_in(&sessions, &second, later) && is_in(&sessions, &third, later));
    assert_eq!(sessions.logins.lock().unwrap().len(), LOGINS);
    assert!(!is_in(&sessions, &Secret::new("made up".to_owned()), later));
}
