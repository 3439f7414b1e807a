//! How are millions of calls stored in a few bytes each?
//!
//! A segment is divided into parts that repeat and parts that are unique. Its events without times are its [`Shape`]. Its
//! attributes without values are its layout. Both are stored once ([`block`]). The remaining numbers form a row: times
//! ([`times`]) and attribute values ([`attributes`]). Each kind of number has its own column ([`encode`], [`decode`]).

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
