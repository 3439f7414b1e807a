//! What can be put around any driver without it knowing: retry, metrics, faults.

pub mod faults;
pub mod metrics;
pub mod retry;
