//! Shared by the server and its clients: JSON structures, parameters, times, amounts as text.
//!
//! Contains no HTTP and no command line.

pub mod export;
pub mod json;
pub mod printable;
pub mod refusal;
pub mod replace;
pub mod settings;
pub mod tally;
pub mod time;
pub mod units;
