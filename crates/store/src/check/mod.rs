//! Does a store still have the rows and journal records that it wrote? Checks their meaning, for `tacho check` and
//! `tacho repair`.
//!
//! ```text
//!   driver's image -> Known::read   series, facts, keys
//!                  -> Checker::row  each row with its place      -> Verdict: findings, and what can be kept
//!   Journals::hold -> Journals::check each record                -> findings, and the batches
//! ```
//! Only `salvage.rs` writes. It belongs to `tacho repair`, and writes to another directory. No code here takes a lock. Memory
//! holds the series, and one row or one journal at a time.

mod checker;
mod chunks;
mod finding;
mod journals;
mod known;
mod salvage;

pub use checker::{Checker, Depth, Verdict};
pub use chunks::time;
pub use finding::{
    FINDINGS_MAX, Finding, FindingKind, Findings, Loss, Lost, LostTotals, Place, PlacedRow, SERIES_NAMED_MAX,
    Severity,
};
pub use journals::{JournalChecked, Journals};
pub use known::Known;
pub use salvage::{Salvage, is_derived};

pub use crate::evidence::Gap;
