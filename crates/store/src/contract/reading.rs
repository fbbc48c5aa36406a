//! What comes back.

use std::fmt::Write as _;

use crate::{Access, EventRange};
use turnkeep_log::{Event, Origin, SessionHeader};

use super::{
    Backend,
    steps::{
        append, batch, create, event_of, header, id, never, open, read, read_range, seqs,
        store_session, texts,
    },
};

/// A range of a log is read by index, and cut where the log ends.
pub async fn slices_of_a_log(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    append(&*handle, 0, 3).await;
    append(&*handle, 3, 4).await;
    assert_eq!(seqs(&read(&*handle).await), [0, 1, 2, 3, 4, 5, 6]);
    let from = |offset| EventRange { offset, length: None };
    assert_eq!(seqs(&handle.read(from(5), &never()).await.unwrap()), [5, 6]);
    assert_eq!(read_range(&*handle, 0, 2).await, [0, 1]);
    assert_eq!(read_range(&*handle, 2, 3).await, [2, 3, 4]);
    assert_eq!(read_range(&*handle, 6, 100).await, [6]);
    assert!(read_range(&*handle, 3, 0).await.is_empty());
    handle.flush(&never()).await.unwrap();
    assert_eq!(texts(&read(&*handle).await), texts(&batch(0, 7)));
}

/// Reading at or past the end is no error.
pub async fn reads_past_the_end_are_empty(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    append(&*handle, 0, 2).await;
    for offset in [2, 3, u64::MAX] {
        assert!(read_range(&*handle, offset, u64::MAX).await.is_empty());
        assert!(
            handle.read(EventRange { offset, length: None }, &never()).await.unwrap().is_empty()
        );
    }
}

/// A read that starts after an append has returned sees it, through old handles and new ones.
pub async fn reads_are_fresh(backend: &impl Backend) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    append(&*writer, 0, 1).await;
    let early = open(&*store, "s", Access::Read).await;
    assert_eq!(read(&*early).await.len(), 1);
    for seq in 1..20 {
        append(&*writer, seq, 1).await;
        let late = open(&*store, "s", Access::Read).await;
        assert_eq!(read(&*early).await.len() as u64, seq + 1);
        assert_eq!(read(&*late).await.len() as u64, seq + 1);
        assert_eq!(read_range(&*early, seq, 9).await, [seq]);
    }
}

/// What one handle has read before does not get in the way of what it reads next.
pub async fn reads_of_one_handle_follow_the_log(backend: &impl Backend) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    let mut next = 0;
    append(&*writer, 0, 1).await;
    next += 1;
    let elsewhere = backend.instance();
    let reader = open(&*elsewhere, "s", Access::Read).await;
    for count in [1, 7, 300, 2, 1000, 1] {
        append(&*writer, next, count).await;
        // Only what is new, only what is old, and across both.
        assert_eq!(
            read_range(&*reader, next, u64::MAX).await,
            (next..next + count).collect::<Vec<_>>()
        );
        assert_eq!(read_range(&*reader, next / 2, 3).await.first(), Some(&(next / 2)));
        let across: Vec<_> = (next - 1..next + count).collect();
        assert_eq!(read_range(&*reader, next - 1, count + 1).await, across);
        next += count;
    }
    assert_eq!(read(&*reader).await, read(&*writer).await);
}

/// A writer reads what was there before it appended, and is not confused by what came after.
pub async fn a_writer_reads_on_both_sides_of_its_appends(backend: &impl Backend) {
    store_session(&*backend.instance(), "s", 3).await;
    let store = backend.instance();
    let writer = open(&*store, "s", Access::Write).await;
    for next in [3, 5, 7] {
        append(&*writer, next, 2).await;
        assert_eq!(read_range(&*writer, 0, 1).await, [0]);
        assert_eq!(read_range(&*writer, 1, 2).await, [1, 2]);
        assert_eq!(read_range(&*writer, 2, 2).await, [2, 3]);
        assert_eq!(read_range(&*writer, next, 9).await, [next, next + 1]);
    }
    assert_eq!(read(&*writer).await, batch(0, 9));
}

/// Events come back with the bytes they were given with.
pub async fn texts_come_back_byte_for_byte(backend: &impl Backend) {
    let data = [
        r#"{"b":1,"a":2,"b":3}"#,
        r#"{"text":"\ud83d lone, \u00e9 escaped, é not, \/"}"#,
        "[4.435375000000022,1e400,-0,12345678901234567890123,1.0E+2]",
        r#""just a string""#,
        "null",
        r#"{ "white" : [ 1 , 2 ] }"#,
    ];
    let mut events: Vec<Event> = Vec::new();
    for data in data {
        let seq = events.len() as u64;
        events.push(event_of("todo/write", seq, data));
    }
    let seq = events.len() as u64;
    let odd = format!(
        r#"{{ "extra":[],"data":{{}},"time":-5,"seq":{seq}.0,"type":"\u0074odo/write","ignorable":true}}"#
    );
    events.push(Event::parse(&odd.into()).unwrap());

    let store = backend.instance();
    let handle = create(&*store, "s").await;
    handle.append(events.clone(), &never()).await.unwrap();
    assert_eq!(texts(&read(&*handle).await), texts(&events));
    let elsewhere = open(&*backend.instance(), "s", Access::Read).await;
    assert_eq!(read(&*elsewhere).await, events);
}

/// So do streamed deltas, whether or not they are packed, and from any of them on.
pub async fn deltas_come_back_as_they_were(backend: &impl Backend) {
    let delta = |seq: u64, time: i64, chunk: &str| {
        let text = format!(
            r#"{{"type":"assistant/chunk","seq":{seq},"time":{time},"data":{{"turn":1,"step":1,"chunk":{chunk}}}}}"#
        );
        Event::parse(&text.into()).unwrap()
    };
    let text = |index: u64, text: &str| {
        format!(r#"{{"type":"text-delta","index":{index},"text":{text}}}"#)
    };
    let mut chunks = vec![];
    for word in ["\"a\"", r#""\ud83d""#, r#""\ude00""#, "\"\"", r#""\u0061""#] {
        chunks.push(text(0, word));
    }
    for word in ["\"x\"", "\"y\""] {
        chunks.push(text(1, word));
    }
    for part in 0..40 {
        let mut chunk = String::new();
        write!(
            chunk,
            r#"{{"type":"tool-call-delta","index":2,"id":"c","name":"bash","argumentsDelta":"{part}"}}"#
        )
        .unwrap();
        chunks.push(chunk);
    }
    let events: Vec<Event> = chunks
        .iter()
        // Time goes back now and then.
        .zip([1000, 1007, 1003, 1003, 990].into_iter().cycle())
        .zip(0..)
        .map(|((chunk, time), seq)| delta(seq, time, chunk))
        .collect();
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    handle.append(events.clone(), &never()).await.unwrap();
    assert_eq!(texts(&read(&*handle).await), texts(&events));
    // Any event inside a packed run is a place to read from.
    for offset in [0, 1, 4, 20, events.len() as u64 - 1] {
        let tail = handle.read(EventRange { offset, length: None }, &never()).await.unwrap();
        assert_eq!(texts(&tail), texts(&events[usize::try_from(offset).unwrap()..]));
    }
}

/// Headers come back whole, from handles as from `stat`, in every instance.
pub async fn headers_come_back_with_all_their_fields(backend: &impl Backend) {
    let full = SessionHeader {
        cwd: Some("/work/é 😀".to_owned()),
        parent_session: Some("parent \"quoted\"".to_owned()),
        seed_length: Some(0),
        origin: Some(Origin::Subagent),
        delegation_depth: 3,
        agent_preset: Some("reviewer".to_owned()),
        ..SessionHeader::new(id("../full"), 0)
    };
    let bare = SessionHeader::new(id("bare"), 9_007_199_254_740_991);
    let store = backend.instance();
    for header in [full, bare] {
        let handle = store.create(header.clone(), &never()).await.unwrap();
        assert_eq!(*handle.header(), header);
        append(&*handle, 0, 1).await;
        handle.close().await.unwrap();
        for access in [Access::Read, Access::Write] {
            let store = backend.instance();
            let handle = store.open(&header.id, access, &never()).await.unwrap();
            assert_eq!(*handle.header(), header);
            assert_eq!(handle.access(), access);
            assert_eq!(*handle.id(), header.id);
            let stat = store.stat(&header.id, &never()).await.unwrap().unwrap();
            assert_eq!(stat.header, header);
        }
    }
}

/// A header of another version is stored as it is, and refused by readers.
pub async fn a_header_of_another_version_is_stored_and_not_read(backend: &impl Backend) {
    let store = backend.instance();
    let foreign = SessionHeader { version: 7, ..header("s") };
    let handle = store.create(foreign, &never()).await.unwrap();
    append(&*handle, 0, 1).await;
    handle.close().await.unwrap();
    for access in [Access::Read, Access::Write] {
        let error = store.open(&id("s"), access, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "format_unsupported");
        let text = error.to_string();
        assert!(text.starts_with("session \"s\" uses log format v7"), "{text}");
        assert!(text.contains("upgrade the harness to open it"), "{text}");
    }
    assert_eq!(store.stat(&id("s"), &never()).await.unwrap_err().kind(), "format_unsupported");
}

/// An event of an unknown type is stored, and refused by readers unless it may be ignored.
pub async fn unknown_types_are_stored_and_not_read(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    append(&*handle, 0, 1).await;
    let unknown = event_of("acme/telemetry", 1, "{}");
    handle.append(vec![unknown], &never()).await.unwrap();
    handle.close().await.unwrap();

    let store = backend.instance();
    // Twice: a refused open gives its claim back.
    for _ in 0..2 {
        let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "format_unsupported");
        assert!(error.to_string().contains("\"acme/telemetry\" (seq 1)"), "{error}");
    }
    let reader = open(&*store, "s", Access::Read).await;
    let error = reader.read(EventRange::ALL, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "format_unsupported");

    // One that says it may be skipped is kept, and read.
    let handle = create(&*store, "t").await;
    let ignorable = r#"{"type":"acme/telemetry","seq":0,"time":1,"data":{"x":1},"ignorable":true}"#;
    let ignorable = Event::parse(&ignorable.into()).unwrap();
    handle.append(vec![ignorable.clone()], &never()).await.unwrap();
    assert_eq!(read(&*handle).await, [ignorable]);
}

/// A log that is both of a newer build and malformed is reported as the former.
pub async fn unknown_types_count_before_malformed_messages(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    let malformed = r#"{"type":"user/message","seq":0,"time":1,"data":{},"surfaceOp":"append"}"#;
    let malformed = Event::parse(&malformed.into()).unwrap();
    handle.append(vec![malformed], &never()).await.unwrap();
    let error = handle.read(EventRange::ALL, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "corrupt");
    handle.append(vec![event_of("acme/message", 1, "{}")], &never()).await.unwrap();
    append(&*handle, 2, 1).await;
    let error = handle.read(EventRange::ALL, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "format_unsupported");
}

/// Event types that the format has given up are refused by readers.
pub async fn retired_types_are_not_read(backend: &impl Backend) {
    for event_type in ["steering/message", "mode/set", "request/header-delta"] {
        let store = backend.instance();
        let handle = create(&*store, event_type).await;
        handle.append(vec![event_of(event_type, 0, "{}")], &never()).await.unwrap();
        let error = handle.read(EventRange::ALL, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "format_unsupported", "{error}");
    }
}

/// Messages that are none are stored, and refused by readers.
pub async fn malformed_messages_are_not_read(backend: &impl Backend) {
    let store = backend.instance();
    let cases = [
        ("user/message", r#"{"role":"user","content":[],"source":{"kind":"user"}}"#),
        ("request/header", r#"{"header":{},"reason":"fallback"}"#),
    ];
    for (event_type, data) in cases {
        let handle = create(&*store, event_type).await;
        let surface = if event_type == "user/message" { r#","surfaceOp":"append""# } else { "" };
        let text = format!(r#"{{"type":"{event_type}","seq":0,"time":1,"data":{data}{surface}}}"#);
        let event = Event::parse(&text.into()).unwrap();
        handle.append(vec![event], &never()).await.unwrap();
        let error = handle.read(EventRange::ALL, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "corrupt", "{event_type}");
        assert!(error.to_string().contains("failed validation"), "{error}");
        handle.close().await.unwrap();
        let error = store.open(&id(event_type), Access::Write, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "corrupt");
    }
}

/// What an interrupted append left is never read, and gone after the next append.
pub async fn a_torn_tail_is_never_served_and_cut_by_the_next_append(backend: &impl Backend) {
    store_session(&*backend.instance(), "s", 3).await;
    backend.tear("s");
    let store = backend.instance();
    let reader = open(&*store, "s", Access::Read).await;
    assert_eq!(seqs(&read(&*reader).await), [0, 1, 2]);
    assert_eq!(read_range(&*reader, 2, 5).await, [2]);

    let writer = open(&*store, "s", Access::Write).await;
    assert_eq!(seqs(&read(&*writer).await), [0, 1, 2]);
    // Opening repairs nothing, nor does flushing.
    writer.flush(&never()).await.unwrap();
    append(&*writer, 3, 2).await;
    assert_eq!(seqs(&read(&*reader).await), [0, 1, 2, 3, 4]);
    writer.close().await.unwrap();
    let again = open(&*backend.instance(), "s", Access::Write).await;
    assert_eq!(seqs(&read(&*again).await), [0, 1, 2, 3, 4]);
    append(&*again, 5, 1).await;
}

/// A range may reach past every number there is.
pub async fn no_range_is_too_large(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    append(&*handle, 0, 3).await;
    handle.close().await.unwrap();
    for access in [Access::Read, Access::Write] {
        let handle = open(&*store, "s", access).await;
        for length in [2, u64::MAX - 1, u64::MAX] {
            assert_eq!(read_range(&*handle, 1, length).await, [1, 2]);
        }
        assert!(read_range(&*handle, u64::MAX, 1).await.is_empty());
        assert!(read_range(&*handle, 1 << 53, 1).await.is_empty());
        handle.close().await.unwrap();
    }
}

/// What was read is the caller's own: whatever becomes of it, the next read gives the log again.
pub async fn what_was_read_is_the_callers_own(backend: &impl Backend) {
    let store = backend.instance();
    store_session(&*store, "s", 3).await;
    let writer = open(&*store, "s", Access::Write).await;
    let reader = open(&*store, "s", Access::Read).await;
    for handle in [&writer, &reader] {
        let mut events = read(&**handle).await;
        let kept = events.clone();
        events.reverse();
        events.truncate(1);
        drop(events);
        assert_eq!(read(&**handle).await, batch(0, 3));
        // And stays what it was while the log grows.
        assert_eq!(kept, batch(0, 3));
    }
    let kept = read(&*reader).await;
    append(&*writer, 3, 1).await;
    assert_eq!(kept, batch(0, 3));
}

/// A log in a form that this build does not read is said to be that, and never to be damaged.
pub async fn a_refused_format_is_not_called_damage(backend: &impl Backend) {
    let store = backend.instance();
    for event_type in ["acme/telemetry", "steering/message", "mode/set", "request/header-delta"] {
        let handle = create(&*store, event_type).await;
        handle.append(vec![event_of(event_type, 0, "{}")], &never()).await.unwrap();
        let read = handle.read(EventRange::ALL, &never()).await.unwrap_err();
        handle.close().await.unwrap();
        let opened = store.open(&id(event_type), Access::Write, &never()).await.unwrap_err();
        for (kind, text) in [(read.kind(), read.to_string()), (opened.kind(), opened.to_string())] {
            assert_eq!(kind, "format_unsupported", "{text}");
            assert!(text.contains(&format!("\"{event_type}\" (seq 0)")), "{text}");
            assert!(!text.contains("corrupt") && !text.contains("failed validation"), "{text}");
        }
    }
}

/// What other builds put into events that we know passes as it is, the parts that none of ours
/// writes included: no read turns it into something newer.
pub async fn no_read_rewrites_what_other_builds_wrote(backend: &impl Backend) {
    let data = [
        ("turn/start", r#"{"turn":1,"trigger":{"kind":"user"}}"#),
        ("turn/start", r#"{"turn":0,"trigger":7}"#),
        ("turn/end", r#"{"turn":1,"reason":{"kind":"acme-paused","why":[]}}"#),
        ("turn/end", r#"{"turn":1,"reason":{"kind":"aborted"}}"#),
        ("turn/end", r#"{"turn":1,"reason":{"kind":"disposed"}}"#),
        ("turn/end", r#"{"turn":1,"reason":{"kind":"completed","note":1}}"#),
        (
            "turn/end",
            r#"{"turn":1,"reason":{"kind":"error","step":2,"failure":{"message":"m","code":"C"}}}"#,
        ),
        ("turn/end", r#"{"turn":1,"reason":{"kind":"error","step":2,"message":"m"}}"#),
        ("request/header", r#"{"header":{},"reason":"initial"}"#),
    ];
    let mut events: Vec<Event> = data
        .into_iter()
        .zip(0..)
        .map(|((event_type, data), seq)| event_of(event_type, seq, data))
        .collect();
    let message = format!(
        r#"{{"type":"user/message","seq":{},"time":1,"data":{{"id":"m","role":"user","content":[{{"type":"hologram"}}],"source":{{"kind":"oracle"}}}},"surfaceOp":"append"}}"#,
        events.len()
    );
    events.push(Event::parse(&message.into()).unwrap());
    let handle = create(&*backend.instance(), "s").await;
    handle.append(events.clone(), &never()).await.unwrap();
    handle.close().await.unwrap();
    for access in [Access::Read, Access::Write] {
        let handle = open(&*backend.instance(), "s", access).await;
        assert_eq!(texts(&read(&*handle).await), texts(&events));
    }
}

/// A turn that was never ended is served as it is stored: nobody but a resume closes it.
pub async fn an_open_turn_is_served_as_it_is_stored(backend: &impl Backend) {
    let opened = vec![
        event_of("turn/start", 0, r#"{"turn":1}"#),
        event_of("step/start", 1, r#"{"turn":1,"step":1}"#),
    ];
    let handle = create(&*backend.instance(), "s").await;
    handle.append(opened.clone(), &never()).await.unwrap();
    handle.close().await.unwrap();
    for access in [Access::Read, Access::Write, Access::Read] {
        let store = backend.instance();
        let handle = open(&*store, "s", access).await;
        assert_eq!(read(&*handle).await, opened);
        handle.close().await.unwrap();
    }
    assert_eq!(turnkeep_log::repair::closers(&opened).len(), 2, "it is an open turn");
}
