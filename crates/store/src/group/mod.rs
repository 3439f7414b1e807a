//! Groups: series that are written together (`docs/format/keys.md`).
//!
//! ```text
//!   home.rs   which group is each series of a generation in?
//!   form.rs   which of these new series share their times?          at their first seal, once
//!   plan.rs   chunks, open samples, a range -> what must be decoded, what the statistics answer
//!   piece.rs  pieces that overlap      -> pieces that do not
//!   resent.rs samples that came later  -> which are samples whose times were moved, sent again
//!   row.rs    the group's row in the Series table, and the prefix of rows that replace others
//! ```

pub mod form;
pub mod home;
pub mod piece;
pub mod plan;
pub mod resent;
pub mod row;
