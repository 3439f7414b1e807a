//! How answers look in a terminal: tables, plots, amounts.
#[macro_use]
pub mod out;

pub mod plot;
pub mod printable;
pub mod progress;
pub mod table;
pub mod units;
