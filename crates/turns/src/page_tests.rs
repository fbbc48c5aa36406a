use super::*;

fn page(body: &str, next: Option<&str>) -> Result<SourcePage, TurnPageError> {
    SourcePage::from_opencode(&Text::from(body), next.map(str::to_owned))
}

fn ids(page: &SourcePage) -> Vec<&str> {
    page.rows.iter().map(|row| row.id.as_str()).collect()
}

#[test]
fn both_shapes_of_a_list_are_read() {
    let rows = r#"[{"info":{"id":"a"},"parts":[]},{"id":"b","info":null},{"info":{},"id":"c"}]"#;
    let plain = page(rows, Some("older")).unwrap();
    assert_eq!(ids(&plain), ["a", "b", "c"]);
    assert_eq!(plain.next(), Some("older"));
    assert_eq!(plain.records().next().unwrap().text(), r#"{"info":{"id":"a"},"parts":[]}"#);
    let wrapped = page(&format!(r#" {{"items":{rows}}} "#), Some("")).unwrap();
    assert_eq!(ids(&wrapped), ["a", "b", "c"]);
    assert_eq!(wrapped.next(), None, "an empty cursor is none");
    assert!(page("[]", None).unwrap().rows.is_empty());
}

#[test]
fn other_bodies_are_the_sources_fault() {
    for body in ["", "{}", "null", "7", r#"{"items":{}}"#, "<html>", "[", r#"[{"id":"a"}"#] {
        assert_eq!(page(body, None).unwrap_err(), TurnPageError::Upstream, "{body}");
    }
}

#[test]
fn one_row_without_an_id_fails_the_page() {
    for row in ["{}", "null", "7", r#"{"info":{"id":""}}"#, r#"{"info":{"id":7},"id":"a"}"#] {
        let body = format!(r#"[{{"info":{{"id":"a"}}}},{row}]"#);
        assert_eq!(page(&body, None).unwrap_err(), TurnPageError::MissingId, "{row}");
    }
    let record = JsonText::parse(&Text::from("{}")).unwrap();
    let log = SourcePage::from_log(vec![(Seq(1), record)], None);
    assert_eq!(log.unwrap_err(), TurnPageError::MissingId);
}

fn timed(rows: &[(&str, u64)], next: Option<&str>) -> SourcePage {
    let rows: Vec<String> = rows
        .iter()
        .map(|(id, time)| format!(r#"{{"info":{{"id":"{id}","time":{{"created":{time}}}}}}}"#))
        .collect();
    page(&format!("[{}]", rows.join(",")), next).unwrap()
}

fn at(id: &str, time: u64) -> String {
    Position { time, id: id.to_owned() }.encode()
}

#[test]
fn order_is_strict_by_time_and_id() {
    assert!(timed(&[("a", 1)], None).is_ordered(None));
    assert!(timed(&[("b", 1), ("a", 2), ("b2", 2), ("c", 3)], None).is_ordered(None));
    assert!(!timed(&[("a", 2), ("b", 1)], None).is_ordered(None), "back in time");
    assert!(!timed(&[("b", 1), ("a", 1)], None).is_ordered(None), "back in ids");
    assert!(!timed(&[("a", 1), ("a", 1)], None).is_ordered(None), "the same row twice");
    assert!(!page("[]", None).unwrap().is_ordered(None));
}

#[test]
fn rows_without_a_usable_time_have_no_order() {
    for time in ["{}", "null", r#"{"created":1.5}"#, r#"{"created":-1}"#, r#"{"created":"1"}"#] {
        let body = format!(
            r#"[{{"info":{{"id":"a","time":{{"created":1}}}}}},{{"info":{{"id":"b","time":{time}}}}}]"#
        );
        assert!(!page(&body, None).unwrap().is_ordered(None), "{time}");
    }
    assert!(page(r#"[{"id":"a","time":{"created":1}}]"#, None).unwrap().is_ordered(None));
}

#[test]
fn order_is_checked_against_the_cursors_around_the_page() {
    let rows = [("a", 1), ("b", 2)];
    assert!(timed(&rows, Some(&at("a", 1))).is_ordered(Some(&at("c", 3))));
    assert!(timed(&rows, Some("opaque")).is_ordered(Some("6")));
    assert!(timed(&rows, Some(&at("z", 9))).is_ordered(None), "a cursor of another row");
    assert!(!timed(&rows, Some(&at("a", 2))).is_ordered(None), "ordered by another time");
    assert!(!timed(&rows, None).is_ordered(Some(&at("b", 2))), "not older than asked for");
    assert!(!timed(&rows, None).is_ordered(Some(&at("z", 1))));
}

#[test]
fn rows_make_the_cursors_of_their_source() {
    let rows = timed(&[("a", 1)], None);
    assert_eq!(rows.rows[0].cursor(), Some(at("a", 1)));
    let record = JsonText::parse(&Text::from(r#"{"info":{"id":"a","time":{"created":9}}}"#));
    let log = SourcePage::from_log(vec![(Seq(5), record.unwrap())], None).unwrap();
    assert_eq!(log.rows[0].cursor(), Some(encode_seq(Seq(5))));
    assert_eq!(page(r#"[{"id":"a"}]"#, None).unwrap().rows[0].cursor(), None);
}
