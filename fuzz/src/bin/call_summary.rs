//! The decoder of summaries of calls never panics. A decoded summary stays equal when it is encoded and decoded again. Any
//! summaries can be added.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tacho_chunk::{CallSummary, Caller};
use tacho_model::{Operation, OperationKind, SeriesId};

fuzz_target!(|bytes: &[u8]| {
    let operation =
        |n: usize| Operation { kind: OperationKind::Method, name: format!("operation {n}").into() };
    let operations: Arc<[Operation]> = (0..8).map(operation).collect();
    let caller = |n: usize| Caller { series: SeriesId(n as u128), operation: operation(n) };
    let callers: Arc<[Caller]> = (0..4).map(caller).collect();
    if let Ok(summary) = CallSummary::decode(bytes, operations.clone(), callers.clone()) {
        assert_eq!(CallSummary::decode(&summary.encode(), operations, callers), Ok(summary.clone()));
        add(&summary);
    }
    if let Ok(summary) = CallSummary::decode_with_names(bytes) {
        assert_eq!(CallSummary::decode_with_names(&summary.encode_with_names()), Ok(summary.clone()));
        add(&summary);
    }
});

/// Adds a summary to itself. The sum can be added again.
fn add(summary: &CallSummary) {
    if let Some(twice) = CallSummary::merged(&[summary, summary]) {
        assert!(twice.slot_s >= summary.slot_s);
        let cells =
            |summary: &CallSummary| summary.cells.iter().map(|cell| cell.count).fold(0, u64::saturating_add);
        assert!(cells(&twice) >= cells(summary));
        CallSummary::merged(&[&twice, summary]);
    }
}
