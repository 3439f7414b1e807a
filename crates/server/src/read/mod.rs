//! Reads a store: all records of some series, their number and checksum, the entries that match a search, or why a selector
//! matches no series. HTTP handlers use this module, and commands that open a data directory themselves.

pub mod damage;
pub mod pattern;
pub mod reader;
pub mod search;
pub mod tally;
pub mod unmatched;
