//! Executions: how do millions of calls become a few bytes each?
//!
//! A segment is split into what repeats and what does not. Its events without times are its [`Shape`], its attributes without
//! values its layout, and both are kept once ([`block`]). What is left is a row of numbers, the times ([`times`]) and the
//! attributes' values ([`attributes`]), each kind in a column of its own ([`encode`], [`decode`]).

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
pub use encode::encode_executions;
pub use row::RowRef;
pub use shape::{Call, Shape};
