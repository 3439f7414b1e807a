//! Groups: series that are written together (`docs/format/keys.md`).
//!
//! ```text
//!   home.rs   the group of each series of a generation
//!   form.rs   groups of new series with the same times, once, at their first seal
//!   plan.rs   chunks, open samples, a range -> columns to decode, chunks answered by statistics
//!   piece.rs  pieces that overlap      -> pieces that do not
//!   resent.rs later samples            -> resent copies of samples with moved times
//!   row.rs    the group's row in the Series table, and the prefix of rows that replace others
//! ```

pub mod form;
pub mod home;
pub mod piece;
pub mod plan;
pub mod resent;
pub mod row;
