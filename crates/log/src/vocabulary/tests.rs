use super::{KNOWN, RETIRED, Vocabulary};

#[test]
fn the_tables_are_sorted_and_apart() {
    assert!(KNOWN.is_sorted_by(|before, after| before < after));
    assert!(RETIRED.iter().all(|retired| !Vocabulary::v0().knows(retired)));
}

#[test]
fn a_build_can_know_more() {
    let more = Vocabulary::v0().with(["acme/b".to_owned(), "turn/end".to_owned()]).with(["acme/a"]);
    for event_type in ["acme/a", "acme/b", "turn/end", "web/deepseek-search-llm-request"] {
        assert!(more.knows(event_type), "{event_type}");
    }
    for event_type in ["", "acme", "acme/c", "turn", "Turn/end", "text-chunks"] {
        assert!(!more.knows(event_type), "{event_type}");
    }
    assert_eq!(Vocabulary::v0().types().count(), 51);
    assert_eq!(more.types().count(), 53);
    assert!(more.types().is_sorted());
}
