//! Records on their way into a store or out of it: counted and summed at both ends, so that the ends can be compared.
//!
//! `tacho import`, `tacho export` and the HTTP endpoints behind them share this.

pub mod frames;
pub mod reader;
pub mod refusal;
pub mod search;
pub mod tally;
pub mod thinned;
