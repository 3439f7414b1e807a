//! How are millions of calls stored in a few bytes each?
//!
//! A segment is split into repeating and unique parts. Its events without times are its [`Shape`], its attributes without
//! values its layout; both are stored once ([`block`]). The rest is a row of numbers: times ([`times`]) and attribute values
//! ([`attributes`]), each kind in its own column ([`encode`], [`decode`]).

mod attributes;
mod block;
mod decode;
mod encode;
mod intern;
mod row;
mod shape;
mod times;

pub(crate) use attributes::parse_id;
pub use attributes::{AttributeData, AttributeRef};
pub use block::ExecutionBlock;
pub(crate) use decode::decode;
pub use encode::{encode_executions, encode_executions_with};
pub use row::RowRef;
pub use shape::{Call, Shape};
