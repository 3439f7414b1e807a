//! How much memory does sorting a vector by labels take?
//!
//! This file has only one test, because the allocator counts the memory of all threads of the process.

use std::sync::Arc;

use peak_alloc::PeakAlloc;
use tacho_model::{Labels, NAME};
use tacho_query::promql::{self, Params, SeriesData};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const VALUE_BYTES: usize = 4_000;

#[test]
fn labels_are_compared_without_copying() {
    let series = |nth: usize| {
        let value = format!("{}{nth}", "x".repeat(VALUE_BYTES));
        let labels = Labels::new([(NAME, "m"), ("host", &value)]).unwrap();
        SeriesData::new(Arc::new(labels), vec![0], vec![nth as f64])
    };
    let plan = promql::parse("sort_by_label(m, \"host\")").unwrap().plan(&Params::instant(0)).unwrap();
    let data = vec![(0..12).rev().map(series).collect::<Vec<_>>()];
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let sorted = plan.evaluate(&data).unwrap();
    let peak = MEMORY.peak_usage().saturating_sub(before);
    assert!(peak < VALUE_BYTES, "{peak} bytes for values of {VALUE_BYTES}");
    drop(sorted);
}
