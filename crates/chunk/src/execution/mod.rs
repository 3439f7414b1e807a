//! How are millions of calls stored in a few bytes each?
//!
//! The [`Shape`] of a segment has its events without times, and its carried calls: those that are already open at its start. Its
//! attributes without values are its layout. Equal shapes and equal layouts are stored once ([`block`]). The remaining data of a
//! segment form a row: ids, times ([`times`]), attribute values ([`attributes`]), and the call that caused the segment
//! ([`callers`]). Each kind of number has its own columns ([`encode`], [`decode`]). A search for an attribute decodes only a few
//! columns ([`probe`]). A reader of a few segments decodes only the columns of times and values that they need ([`selected`]).

mod attributes;
mod block;
mod caller;
mod callers;
mod decode;
mod encode;
mod intern;
mod probe;
mod row;
mod selected;
mod shape;
mod times;
mod walk;

pub(crate) use attributes::parse_id;
pub use attributes::{AttributeData, AttributeRef};
pub use block::ExecutionBlock;
pub use caller::Caller;
pub use callers::{BlockCallers, find_callers};
pub(crate) use decode::{callers, decode, operation, operations, traces};
pub use encode::{encode_executions, encode_executions_with};
pub(crate) use intern::Interner;
pub(crate) use probe::with_value;
pub use row::RowRef;
pub(crate) use selected::decode_selected;
pub use shape::{Call, Shape};
pub use walk::{HTTP_STATUS, Visit, Walker, is_refused, part_gap};
