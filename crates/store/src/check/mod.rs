//! Are the rows and journals of a store consistent? Used by `tacho check` and `tacho repair`.
//!
//! ```text
//!   driver         -> Known::read   series, the store's facts about itself, keys
//!                  -> Checker::row  each row with its place      -> Verdict: findings, and the part that can be kept
//!   Journals::hold -> Journals::check each journal record        -> findings, and the batches
//! ```
//! Only `salvage.rs` writes, for `tacho repair`, and only to another directory. This code does not lock the checked directory. In
//! memory are the labels of all series, and either one row per thread or one journal.

mod checker;
mod chunks;
mod finding;
mod journals;
mod known;
mod salvage;

pub use checker::{Checker, Depth, Verdict, is_derived};
pub use finding::{
    FINDINGS_MAX, Finding, FindingKind, Findings, Loss, Lost, LostTotals, Place, PlacedRow, SERIES_NAMED_MAX,
    SERIES_SHOWN_MAX, Severity, unusable_lock,
};
pub use journals::{JournalChecked, Journals};
pub use known::{Known, is_store_key, store_of};
pub use salvage::Salvage;

pub use crate::damage::time;
pub use crate::evidence::Gap;
