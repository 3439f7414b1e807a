//! Reads a store: all records of some series, or the entries that match a search. Used by HTTP handlers, and by commands that
//! open a data directory themselves.

pub mod damage;
pub mod pattern;
pub mod reader;
pub mod search;
