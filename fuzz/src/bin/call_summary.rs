//! The decoder of summaries of calls never panics. A decoded summary stays equal when it is encoded and decoded again.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tacho_chunk::CallSummary;
use tacho_model::{Operation, OperationKind};

fuzz_target!(|bytes: &[u8]| {
    let operation =
        |n: usize| Operation { kind: OperationKind::Method, name: format!("operation {n}").into() };
    let operations: Arc<[Operation]> = (0..8).map(operation).collect();
    if let Ok(summary) = CallSummary::decode(bytes, operations.clone()) {
        assert_eq!(CallSummary::decode(&summary.encode(), operations), Ok(summary));
    }
});
