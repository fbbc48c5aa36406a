use std::ops::RangeInclusive;

use crate::query::strict_integer;

/// How much a page may hold and a round may take.
///
/// The server sets these, never a client. Once the anchor has been found the round's own budgets
/// count no more: what is left to send is known to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Records of a page.
    pub records: usize,
    /// Bytes of a page's records, as they are sent. A single record may be larger.
    pub page_bytes: usize,
    /// Pages of a round.
    pub pages: usize,
    /// Bytes of the rows that a round goes through, as they are read, each row counted once.
    pub total_bytes: usize,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { records: 100, page_bytes: 512 * 1024, pages: 20, total_bytes: 64 * 1024 * 1024 }
    }
}

impl Budgets {
    /// How many records a page may be set to hold.
    pub const RECORDS: RangeInclusive<usize> = 1..=500;
    /// How many bytes of records a page may be set to hold.
    pub const PAGE_BYTES: RangeInclusive<usize> = 1024..=4 << 20;
    /// How many pages a round may be set to take.
    pub const PAGES: RangeInclusive<usize> = 1..=100;
    /// How many bytes a round may be set to go through.
    pub const TOTAL_BYTES: RangeInclusive<usize> = 1024..=1 << 30;

    /// The budgets that these settings give; `setting` looks one up by its name, as in the
    /// environment. What is not set, or set to anything but an integer of the right size, is as it
    /// is by default.
    ///
    /// | setting | from | to |
    /// |---|---|---|
    /// | `OPENCHAMBER_SESSION_RECONCILE_PAGE_RECORDS` | 1 | 500 |
    /// | `OPENCHAMBER_SESSION_RECONCILE_PAGE_BYTES` | 1024 | 4194304 |
    /// | `OPENCHAMBER_SESSION_RECONCILE_TOTAL_PAGES` | 1 | 100 |
    /// | `OPENCHAMBER_SESSION_RECONCILE_TOTAL_BYTES` | 1024 | 1073741824 |
    #[must_use]
    pub fn configured(setting: impl Fn(&str) -> Option<String>) -> Self {
        let size = |what: &str, range: RangeInclusive<usize>, default| {
            setting(&format!("OPENCHAMBER_SESSION_RECONCILE_{what}"))
                .and_then(|text| strict_integer(&text, *range.start(), *range.end()))
                .unwrap_or(default)
        };
        let default = Self::default();
        Self {
            records: size("PAGE_RECORDS", Self::RECORDS, default.records),
            page_bytes: size("PAGE_BYTES", Self::PAGE_BYTES, default.page_bytes),
            pages: size("TOTAL_PAGES", Self::PAGES, default.pages),
            total_bytes: size("TOTAL_BYTES", Self::TOTAL_BYTES, default.total_bytes),
        }
    }
}

#[cfg(test)]
#[path = "budgets_tests.rs"]
mod tests;
