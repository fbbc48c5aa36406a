use axum::http::Method;

use super::{Needs, needs};
use crate::auth::Scope;

const READ: Option<Needs> = Some(Needs::Scope(Scope::Read));
const WRITE: Option<Needs> = Some(Needs::Scope(Scope::Write));
const ADMIN: Option<Needs> = Some(Needs::Scope(Scope::Admin));

fn get(path: &str) -> Option<Needs> {
    needs(&Method::GET, path).ok()
}

#[test]
fn what_shows_nothing_of_anyones_takes_nothing() {
    for path in
        ["/", "/assets/main.js", "/auth/login", "/auth/status", "/health", "/openapi.json", "/x"]
    {
        assert_eq!(get(path), Some(Needs::Nothing), "{path}");
    }
}

#[test]
fn every_other_route_takes_reading_or_writing() {
    let read = [
        "/metrics",
        "/api/turnkeep/sessions",
        "/api/turnkeep/sessions/s",
        "/api/turnkeep/sessions/s/events",
        "/api/turnkeep/sessions/s/events/stream",
        "/api/openchamber/sessions/s/messages",
        "/api/openchamber/sessions/s/messages/reconcile",
        "/api/openchamber/sessions/s/changes",
        "/api/openchamber/transcript-cache/manifest",
        "/api/session/s/message",
        "/api/session/s/message/m",
        "/api/session.export",
        "/api/event",
        "/api/global/event",
        "/api/event/ws",
        "/API/Global/Event/WS/",
        "/api/session",
        "/api",
        "/api/",
    ];
    for path in read {
        assert_eq!(get(path), READ, "{path}");
        assert_eq!(needs(&Method::HEAD, path).ok(), READ, "{path}");
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(needs(&method, path).ok(), WRITE, "{method} {path}");
        }
        let other = Method::from_bytes(b"PROPFIND").unwrap();
        assert_eq!(needs(&other, path).ok(), WRITE, "{path}");
    }
}

#[test]
fn terminals_take_everything_however_they_are_spelled() {
    for path in [
        "/api/pty",
        "/api/pty/",
        "/api/pty/1/connect",
        "/API/PTY",
        "/api/%70ty",
        "/api/%50%54%59/1",
        "/api//pty",
        "/api/x/pty",
        "/api/x%2fpty",
        "/api/x%5cpty",
        "/api/pty-next",
    ] {
        assert_eq!(get(path), ADMIN, "{path}");
        assert_eq!(needs(&Method::POST, path).ok(), ADMIN, "{path}");
    }
}

#[test]
fn a_path_that_could_mean_another_one_means_nothing() {
    for path in [
        "/api/../pty",
        "/api/session/../pty",
        "/api/session/%2e%2e/pty",
        "/api/session/.%2E/x",
        "/api/session/..%2fx",
        "/api/session/..%5cx",
        "/api/session/a%2f..%2fb",
        "/api/./session",
        "/api/%00",
        "/api/a%0ab",
        "/api/%zz",
        "/api/%ff",
        "/api/%",
    ] {
        assert_eq!(get(path), None, "{path}");
    }
    assert_eq!(get("/api/session/a..b"), READ, "dots are no trick by themselves");
    assert_eq!(get("/api/session/..."), READ);
}
