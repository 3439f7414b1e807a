//! Is what a store has stored what it wrote? The meaning of rows and of journals, for `tacho check` and `tacho repair`.
//!
//! ```text
//!   driver's image -> Known::read   series, facts, keys
//!                  -> Checker::row  each row with its place      -> Verdict: findings, and what can be kept
//!   Journals::hold -> Journals::check each record                -> findings, and the batches
//! ```
//! Only `salvage.rs`, for `tacho repair`, writes, and to another directory. Nothing locks, or keeps more than the series and
//! one row or one journal in memory.

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
