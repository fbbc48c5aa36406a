use super::{
    Channel, ResetReason, backpressure, block, error, heartbeat, message, ready, socket_heartbeat,
};
use crate::events::id::{Epoch, EventId};

fn text(bytes: &bytes::Bytes) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_block_carries_an_event_as_its_channel_wraps_it() {
    let id = EventId { epoch: Epoch::new(), number: 7 };
    let payload = r#"{"type":"t","properties":{}}"#;
    assert_eq!(
        text(&block(Channel::Global, Some(id), Some("/a\"b"), Some("p"), payload)),
        format!(
            "id: {id}\ndata: {{\"directory\":\"/a\\\"b\",\"project\":\"p\",\"payload\":{payload}}}\n\n"
        )
    );
    assert_eq!(
        text(&block(Channel::Global, None, None, None, payload)),
        format!("data: {{\"payload\":{payload}}}\n\n")
    );
    assert_eq!(
        text(&block(Channel::Directory, Some(id), Some("/a"), Some("p"), payload)),
        format!("id: {id}\ndata: {payload}\n\n")
    );
}

#[test]
fn a_message_names_its_event_and_a_directory() {
    let id = EventId { epoch: Epoch::new(), number: 7 };
    assert_eq!(
        text(&message(Some(id), Some("/a"), "{}")),
        format!(r#"{{"type":"event","payload":{{}},"eventId":"{id}","directory":"/a"}}"#)
    );
    for none in [None, Some("")] {
        assert_eq!(
            text(&message(None, none, "{}")),
            r#"{"type":"event","payload":{},"directory":"global"}"#
        );
    }
}

#[test]
fn the_other_messages_are_spelled_as_clients_know_them() {
    assert_eq!(ready(Channel::Global), r#"{"type":"ready","scope":"global"}"#);
    assert_eq!(ready(Channel::Directory), r#"{"type":"ready","scope":"directory"}"#);
    assert_eq!(error("no \"stream\""), r#"{"type":"error","message":"no \"stream\""}"#);
    assert_eq!(backpressure(12, 16), r#"{"type":"backpressure","bufferedBytes":12,"maxBytes":16}"#);
    assert_eq!(
        text(&socket_heartbeat(5)),
        r#"{"type":"event","payload":{"type":"openchamber:heartbeat","timestamp":5},"directory":"global"}"#
    );
}

#[test]
fn a_heartbeat_is_a_comment_and_an_event() {
    let event = r#"{"type":"server.heartbeat","properties":{}}"#;
    let expected = format!(":heartbeat\n\ndata: {event}\n\n");
    assert_eq!(text(&heartbeat(Channel::Directory)), expected);
    let expected = format!(":heartbeat\n\ndata: {{\"payload\":{event}}}\n\n");
    assert_eq!(text(&heartbeat(Channel::Global)), expected);
}

#[test]
fn a_reset_says_why() {
    for (reason, word) in [
        (ResetReason::UnknownEpoch, "unknown_epoch"),
        (ResetReason::TooOld, "too_old"),
        (ResetReason::UpstreamReconnected, "upstream_reconnected"),
        (ResetReason::Slow, "slow"),
    ] {
        assert_eq!(
            reason.payload(),
            format!(r#"{{"type":"turnkeep.reset","properties":{{"reason":"{word}"}}}}"#)
        );
    }
}
