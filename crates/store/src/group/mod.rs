//! Groups: series that are written together (`docs/format/keys.md`).
//!
//! ```text
//!   home.rs    assigns each series of a generation to a group
//!   form.rs    forms groups of new series with the same times, at their first flush
//!   order.rs   orders series by their labels
//!   plan.rs    selects the columns that a read decodes, and the chunks whose statistics are enough
//!   piece.rs   merges overlapping parts into pieces that do not overlap
//!   resent.rs  recognises resent copies of samples with moved times
//!   row.rs     the group's row in the Series table, and the prefix of rows that replace others
//! ```

pub mod form;
pub mod home;
pub mod order;
pub mod piece;
pub mod plan;
pub mod resent;
pub mod row;
