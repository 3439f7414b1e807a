//! Output in a terminal: tables, plots, progress.
#[macro_use]
pub mod out;

pub mod plot;
pub mod progress;
pub mod table;
