use super::{is_mark, mark_after};
use crate::{event::Event, id::Seq};

#[test]
fn a_mark_is_an_event_of_its_own() {
    let mark = mark_after(None, 7).unwrap();
    assert_eq!(mark.text().as_str(), r#"{"type":"session/end-seed","seq":0,"time":7,"data":{}}"#);
    assert_eq!(Event::parse(mark.text()), Ok(mark.clone()));
    assert_eq!((mark.event_type(), mark.seq(), mark.time()), ("session/end-seed", Seq(0), 7));
    assert_eq!(mark.data().text(), "{}");
    assert!(is_mark(&mark));
}

#[test]
fn a_log_that_ends_with_a_mark_gets_no_other() {
    let last = r#"{"type":"turn/end","seq":41,"time":90,"data":{"turn":1}}"#;
    let last = Event::parse(&last.into()).unwrap();
    assert!(!is_mark(&last));
    let mark = mark_after(Some(&last), -5).unwrap();
    assert_eq!((mark.seq(), mark.time()), (Seq(42), -5));
    assert_eq!(mark_after(Some(&mark), 100), None);
}
