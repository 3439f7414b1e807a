//! Which records does the byte stream of an agent hold? Defines the native protocol (`docs/format/wire.md`).
//!
//! ```text
//!   bytes ── frame ──▶ Frame ── message ──▶ HELLO, PING, ...       (probes: PROBES, PROBED)
//!                        ├─ DICT ── dict ──▶ Dictionary
//!                        └─ DATA ── data ──▶ Batch + rejects      (record, segment, declared: one record each)
//! ```
//!
//! Path of one record: `server/src/listen/connection.rs` pushes bytes. [`Session::data`] returns the batch, and
//! `server/src/listen/commit.rs` passes the batch to the store. [`DictFrame`] and [`DataFrame`] are the encoder, for
//! `tacho import`, generators of load, the simulator and tests.

mod data;
mod declared;
mod descriptor;
mod dict;
mod encode;
mod frame;
mod message;
mod object;
mod probes;
mod record;
mod secret;
mod segment;
mod token;

pub use data::{Data, Numbering, Refused, Sequence, Session};
pub use descriptor::{FieldType, RecordField, RecordType, RecordTypeError};
pub use dict::{DictFrame, Dictionary};
pub use encode::{
    AttributeForm, CallRef, Continued, DataFrame, DeclaredRecord, FieldValue, SegmentRecord, TraceForm,
};
pub use frame::{Frame, FrameDecoder, FrameType, HEADER_BYTES};
pub use message::{ClientFrame, ErrorCode, Hello, Ping, Reject, ServerFrame, Welcome};
pub use probes::{Moved, ProbeRule, ProbeState, Probed, Probes, RuleOutcome};
pub use secret::Secret;
pub use token::Token;

pub const VERSION: u8 = 1;
/// Features that were added to this protocol version later. WELCOME states which of them the server has.
pub mod feature {
    /// DICT kind 4 and DATA tag 4: records of declared types.
    pub const RECORDS: u64 = 1;
}

/// Limit on the bytes of one frame's body. It bounds the memory of a connection. Senders aim at 64 KiB.
pub const FRAME_BODY_BYTES_MAX: u32 = 4_194_304;
/// Largest step from the highest number accepted on a connection to the number of its next DATA frame.
pub const SEQ_JUMP_MAX: u64 = 1_048_576;
/// The first DATA frame of a connection may have any number up to this one. The step may exceed [`SEQ_JUMP_MAX`], because a
/// server that has lost its data does not know the last number. The limit allows decades of frames.
pub const SEQ_FIRST_MAX: u64 = 1_099_511_627_776;
/// Limit on the ids of one kind on one connection.
pub const DICT_IDS_MAX: u64 = 65_536;
/// Limit on the bytes of all strings in the dictionary of a connection.
pub const DICT_BYTES_MAX: usize = 16_777_216;
/// Limit on the pairs in HELLO, which describe a process.
pub const HELLO_PAIRS_MAX: usize = 32;
/// Limit on the bytes of all pairs in HELLO. The server keeps the pairs as long as the connection is open.
pub const HELLO_PAIRS_BYTES_MAX: usize = 65_536;
pub const TOKEN_BYTES_MAX: usize = 256;
/// Interval at which a client sends PING, ms. The server closes a connection after three intervals without a byte of the client.
pub const HEARTBEAT_MS: u64 = 5_000;
/// Limit on the rejects of one frame that are named. Further rejects are only counted.
pub const REJECTS_MAX: usize = 16;
const _: () = assert!(REJECTS_MAX == crate::reject::REJECTS_NAMED_MAX);
/// Limit on the rules of one PROBES frame, and on the rules of a server.
pub const PROBE_RULES_MAX: usize = 1_000;
pub const PROBE_PATTERN_BYTES_MAX: usize = 1_024;
pub const RECORD_FIELDS_MAX: usize = 64;
pub const RECORD_UNIT_BYTES_MAX: usize = 64;
/// Limit on the operations in one PROBED frame. The frame lists the operations that the client itself aggregates or has switched
/// off. If there are more, the frame lists those that the client changed last.
pub const PROBED_MOVED_MAX: usize = 256;
/// Limit on the bytes of a text in PROBED that are kept. A longer text is truncated.
pub const PROBED_TEXT_BYTES_MAX: usize = 512;
