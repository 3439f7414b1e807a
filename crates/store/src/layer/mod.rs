//! Layers around any driver: retry, metrics, faults.

pub mod faults;
pub mod metrics;
pub mod retry;
