use super::PartNumber;

#[test]
fn the_text_of_part_numbers_sorts_as_they_do() {
    let numbers = [0, 1, 2, 9, 10, 11, 99, 100, 999, 1000, 1001, 9999, 10_000, 99_999, 100_000];
    let texts: Vec<String> = numbers.iter().map(|&number| PartNumber(number).to_string()).collect();
    assert_eq!(&texts[..5], ["000", "001", "002", "009", "010"]);
    assert!(texts.is_sorted(), "{texts:?}");
    // The attachments of a tool's result stand between its part and the next one.
    assert!(*"m.000" < *"m.000.000" && *"m.000.000" < *"m.001");
}

#[test]
fn every_number_has_a_text_of_its_own() {
    let texts: Vec<String> = (0..12_000).map(|number| PartNumber(number).to_string()).collect();
    assert!(texts.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(PartNumber(usize::MAX).to_string().trim_start_matches('z'), usize::MAX.to_string());
}
