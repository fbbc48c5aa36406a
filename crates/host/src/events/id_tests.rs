use super::{Epoch, EventId};

#[test]
fn an_id_is_read_as_it_is_written() {
    for number in [0, 1, 41, u64::MAX] {
        let id = EventId { epoch: Epoch::new(), number };
        assert_eq!(EventId::parse(&id.to_string()), Some(id));
    }
}

#[test]
fn nothing_else_is_an_id() {
    for text in [
        "",
        "-",
        "evt-1",
        "0123456789abcdef",
        "0123456789abcdef-",
        "0123456789abcdef-1-",
        "0123456789abcdef-01",
        "0123456789abcdef-+1",
        "0123456789abcdef--1",
        "0123456789ABCDEF-1",
        "123456789abcdef-1",
        "00123456789abcdef-1",
        "0123456789abcdef-18446744073709551616",
    ] {
        assert_eq!(EventId::parse(text), None, "{text:?}");
    }
}

#[test]
fn epochs_differ() {
    assert_ne!(Epoch::new(), Epoch::new());
}
