//! Pages of transcripts, and rounds of reconciling.

use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::Label;

/// Up to the 5000 rows at which a page ends.
const ROWS: [f64; 10] = [10.0, 25.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0, 5000.0];

/// From a page without tools to one that a phone does not want.
const BYTES: [f64; 9] = [
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    524_288.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// What is counted of pages.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    rows: Family<[Label; 1], Histogram, fn() -> Histogram>,
    bytes: Family<[Label; 1], Histogram, fn() -> Histogram>,
    rounds: Family<[Label; 1], Counter>,
    steps: Family<[Label; 1], Counter>,
    resets: Family<[Label; 1], Counter>,
}

impl Pages {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let rows: fn() -> Histogram = || Histogram::new(ROWS);
        let bytes: fn() -> Histogram = || Histogram::new(BYTES);
        let pages = Self {
            rows: Family::new_with_constructor(rows),
            bytes: Family::new_with_constructor(bytes),
            rounds: Family::default(),
            steps: Family::default(),
            resets: Family::default(),
        };
        registry.register(
            "turn_page_rows",
            "Rows read for one turn page, by source",
            pages.rows.clone(),
        );
        registry.register_with_unit(
            "turn_page_size",
            "Size of the records of one turn page, before compression, by source",
            Unit::Bytes,
            pages.bytes.clone(),
        );
        registry.register(
            "reconcile_rounds",
            "Rounds of reconciling that were begun, by source",
            pages.rounds.clone(),
        );
        registry.register(
            "reconcile_pages",
            "Pages of such rounds, by source",
            pages.steps.clone(),
        );
        registry.register(
            "reconcile_resets",
            "Rounds that ended with the client having to start over, by source",
            pages.resets.clone(),
        );
        pages
    }

    /// A turn page was made of so many rows, and its records have so many bytes.
    #[expect(clippy::cast_precision_loss, reason = "a histogram tells buckets apart, not bytes")]
    pub(crate) fn turn_page(&self, source: &'static str, rows: usize, bytes: usize) {
        self.rows.get_or_create(&[("source", source)]).observe(rows as f64);
        self.bytes.get_or_create(&[("source", source)]).observe(bytes as f64);
    }

    /// A page of a round was made: its first one, or one that goes on.
    pub(crate) fn reconciled(&self, source: &'static str, first: bool, reset: bool) {
        let source = [("source", source)];
        for (counted, family) in [(first, &self.rounds), (true, &self.steps), (reset, &self.resets)]
        {
            family.get_or_create(&source).inc_by(u64::from(counted));
        }
    }
}
