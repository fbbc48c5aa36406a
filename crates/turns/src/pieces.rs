//! Large bodies in pieces.
//!
//! A record may be hundreds of megabytes long. A body that holds it is handed on in pieces, so that
//! the record need not be copied into one text with all the others.

/// A record of this many bytes is a piece by itself; smaller ones are put together.
const PIECE_BYTES: usize = 64 << 10;

/// The pieces of a body: `{"records":[`, the records, and what comes after them.
pub(crate) fn of_body(records: Vec<String>, tail: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut open = String::from(HEAD);
    for (index, record) in records.into_iter().enumerate() {
        if index > 0 {
            open.push(',');
        }
        if record.len() >= PIECE_BYTES {
            pieces.push(std::mem::take(&mut open));
            pieces.push(record);
        } else {
            open.push_str(&record);
            if open.len() >= PIECE_BYTES {
                pieces.push(std::mem::take(&mut open));
            }
        }
    }
    open.push_str(tail);
    pieces.push(open);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// The whole body at once.
pub(crate) fn body(records: &[String], tail: &str) -> String {
    let bytes: usize = records.iter().map(|record| record.len() + 1).sum();
    let mut body = String::with_capacity(HEAD.len() + bytes + tail.len());
    body.push_str(HEAD);
    for (index, record) in records.iter().enumerate() {
        if index > 0 {
            body.push(',');
        }
        body.push_str(record);
    }
    body.push_str(tail);
    body
}

const HEAD: &str = r#"{"records":["#;

#[cfg(test)]
mod tests {
    use super::{PIECE_BYTES, body, of_body};

    #[test]
    fn the_pieces_make_up_the_body() {
        let large = "x".repeat(PIECE_BYTES);
        let small = "y".repeat(PIECE_BYTES / 3);
        let all = [&large, &small, &small, &small, &small, &large, &large];
        for count in 0..=all.len() {
            let records: Vec<String> = all.iter().take(count).map(|&text| text.clone()).collect();
            let whole = body(&records, "]}");
            let pieces = of_body(records, "]}");
            assert_eq!(pieces.concat(), whole);
            assert!(pieces.iter().all(|piece| !piece.is_empty()));
        }
    }

    #[test]
    fn a_large_record_is_not_copied_and_small_ones_are_put_together() {
        let large = "x".repeat(PIECE_BYTES);
        let at = large.as_ptr();
        let pieces = of_body(vec!["1".to_owned(), "2".to_owned(), large, "3".to_owned()], "]}");
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces[1].as_ptr(), at);
    }
}
