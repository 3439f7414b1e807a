//! How answers look in a terminal: tables, plots, amounts.
pub mod plot;
pub mod progress;
pub mod table;
pub mod units;
