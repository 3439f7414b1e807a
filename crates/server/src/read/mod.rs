//! Reads a store: all records of some series, their number and checksum, the entries that match a search, or the reason why a
//! selector matches no series. HTTP handlers and commands that open a data directory themselves use this module.

pub mod damage;
pub mod pattern;
pub mod reader;
pub mod search;
pub mod tally;
pub mod unmatched;
