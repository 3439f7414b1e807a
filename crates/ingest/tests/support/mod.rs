//! Encodes frames from the keys of a test vector, and compares decoded frames with these keys.

pub mod control;
pub mod data;
pub mod declared;
pub mod vector;
