use super::*;
use crate::{
    error::TurnPageError,
    page::Purpose,
    testing::{Indexed, Model, SESSION, record},
};

/// What is found, and with how many requests.
fn look_for(
    message: &str,
    mut answer: impl FnMut(&PageRequest) -> Answer,
) -> (Result<String, MessageError>, usize) {
    let mut scan = MessageScan::new(SESSION, message, SourceKind::OpenCode).unwrap();
    let mut requests = 0;
    while let Some(request) = scan.want().cloned() {
        requests += 1;
        if let Err(error) = scan.feed(answer(&request)) {
            return (Err(error), requests);
        }
    }
    (scan.finish().map(|text| text.to_string()), requests)
}

#[test]
fn a_message_is_found_on_the_page_it_is_on() {
    let mut model = Model::default();
    for time in 0..250 {
        model.add(&format!("u{time:03}"), time, time);
    }
    for (message, requests) in [("u249", 1), ("u150", 1), ("u149", 2), ("u010", 3)] {
        let (found, asked) = look_for(message, |request| model.answer(request));
        let number = message[1..].parse().unwrap();
        assert_eq!(found, Ok(record(message, Some(number))), "{message}");
        assert_eq!(asked, requests, "{message}");
    }
    let (found, _) = look_for("u999", |request| model.answer(request));
    assert_eq!(found, Err(MessageError::Upstream));
}

#[test]
fn what_cannot_be_encoded_is_read_from_a_page_that_need_not_be() {
    let mut model = Model::new("u1@1 a2@2 u3@3 a4@4 u5@5");
    model.poison("u3");
    let (found, _) = look_for("u3", |request| model.answer(request));
    assert_eq!(found, Ok(record("u3", Some(3))));
}

#[test]
fn the_oldest_message_is_found_as_its_stub() {
    let mut model = Model::new("u1@1 a2@2 u3@3");
    model.poison("u1");
    let (found, _) = look_for("u1", |request| model.answer(request));
    assert!(found.unwrap().starts_with(
        r#"{"info":{"id":"u1","sessionID":"ses_1","role":"user","time":{"created":2},"error":{"name":"TurnkeepUnreadable"}}"#
    ));
}

#[test]
fn a_message_of_which_nothing_is_known_is_found_by_its_placeholder() {
    let mut model = Model::new("u1@1 a2@2 u3@3");
    let (found, _) = look_for("unreadable:ses_1", |request| model.answer(request));
    assert_eq!(found, Err(MessageError::NotFound), "all of it can be read");
    model.poison("u1");
    let (found, _) = look_for("unreadable:ses_1", |request| match request.purpose {
        Purpose::Identify => Answer::Failed,
        _ => model.answer(request),
    });
    assert!(found.unwrap().starts_with(r#"{"info":{"id":"unreadable:ses_1""#));
    let (found, _) = look_for("unreadable:ses_2", |request| model.answer(request));
    assert_eq!(found, Err(MessageError::Upstream), "the one of another session");
}

#[test]
fn trouble_of_the_source_is_told_as_for_a_message() {
    for (answer, error) in [
        (Answer::NotFound, MessageError::SessionNotFound),
        (Answer::Unavailable, MessageError::Unavailable),
        (Answer::TimedOut, MessageError::TimedOut),
        (Answer::Failed, MessageError::Upstream),
        (Answer::BadCursor, MessageError::Upstream),
    ] {
        assert_eq!(look_for("u1", |_| answer.clone()).0, Err(error));
    }
    assert_eq!(MessageError::from(TurnPageError::Internal), MessageError::Internal);
}

#[test]
fn the_search_has_an_end() {
    let ids: Vec<String> = (0..6000).map(|number| format!("u{number}")).collect();
    let source = Indexed::new(&ids.join(" "));
    let (found, requests) = look_for("u0", |request| source.answer(request));
    assert_eq!((found, requests), (Err(MessageError::Upstream), 50));
}

#[test]
fn a_search_that_is_not_done_finds_nothing() {
    let scan = MessageScan::new(SESSION, "u1", SourceKind::OpenCode).unwrap();
    assert_eq!(scan.finish(), Err(MessageError::Internal));
}
