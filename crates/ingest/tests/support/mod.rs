//! How a vector's keys become frames, and what a decoded frame must be.

pub mod control;
pub mod data;
pub mod declared;
pub mod vector;
