use std::collections::HashMap;

use super::*;

fn configured<const N: usize>(settings: [(&str, &str); N]) -> Budgets {
    let settings = HashMap::from(settings);
    Budgets::configured(|name| {
        let what = name.strip_prefix("OPENCHAMBER_SESSION_RECONCILE_").expect("the common prefix");
        settings.get(what).map(|&value| value.to_owned())
    })
}

const DEFAULT: Budgets =
    Budgets { records: 100, page_bytes: 524_288, pages: 20, total_bytes: 67_108_864 };

#[test]
fn nothing_set_is_the_default() {
    assert_eq!(Budgets::default(), DEFAULT);
    assert_eq!(configured([]), DEFAULT);
}

#[test]
fn each_setting_has_a_range_that_it_can_reach_the_ends_of() {
    let least = configured([
        ("PAGE_RECORDS", "1"),
        ("PAGE_BYTES", "1024"),
        ("TOTAL_PAGES", "1"),
        ("TOTAL_BYTES", "1024"),
    ]);
    assert_eq!(least, Budgets { records: 1, page_bytes: 1024, pages: 1, total_bytes: 1024 });
    let most = configured([
        ("PAGE_RECORDS", "500"),
        ("PAGE_BYTES", "4194304"),
        ("TOTAL_PAGES", "100"),
        ("TOTAL_BYTES", "1073741824"),
    ]);
    let expected =
        Budgets { records: 500, page_bytes: 4_194_304, pages: 100, total_bytes: 1_073_741_824 };
    assert_eq!(most, expected);
}

#[test]
fn what_is_out_of_range_or_no_integer_is_not_set() {
    for (what, wrong) in [
        ("PAGE_RECORDS", ["0", "501", "-1", "1e2"]),
        ("PAGE_BYTES", ["1023", "4194305", "", "64k"]),
        ("TOTAL_PAGES", ["0", "101", "3.0", "all"]),
        ("TOTAL_BYTES", ["1023", "1073741825", "0x400", "99999999999999999999999"]),
    ] {
        for value in wrong {
            assert_eq!(configured([(what, value)]), DEFAULT, "{what}={value}");
        }
    }
}
