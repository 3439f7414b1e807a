//! Errors of a whole message. If only a single record is invalid, the result is a reject instead.
//!
//! This file and `wire/` use each other. The native protocol returns an [`Error`]. [`Error`] uses the limit on frames and
//! the codes of ERROR frames ([`Error::code`]) of `wire/`.

use crate::reader::Flaw;
use crate::wire::{ErrorCode, FRAME_BODY_BYTES_MAX};

/// An error that prevents further decoding. Each message names the value and, if known, the position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// `offset`, here and in [`Error::FrameTooLong`], is a position in the byte stream of the connection.
    #[error("frame checksum mismatch: expected {expected:#010x}, got {got:#010x} (frame at byte {offset})")]
    Checksum { expected: u32, got: u32, offset: u64 },
    #[error("frame of {length} bytes, at most {FRAME_BODY_BYTES_MAX} are allowed (frame at byte {offset})")]
    FrameTooLong { length: u32, offset: u64 },
    /// The position in `flaw` counts the bytes of the message's body.
    #[error("malformed {message}: {flaw}")]
    Malformed { message: &'static str, flaw: Flaw },
    /// The sequence number of a DATA frame is too far above `last`, the number of the last accepted frame of the session.
    #[error(
        "frame number {seq} is too far above {last}, the last frame of the session: the next number may be at most {most}"
    )]
    Number { seq: u64, last: u64, most: u64 },
    #[error("unexpected {what}")]
    Unexpected { what: String },
    #[error("no protocol version in common: the client knows {min} to {max}, the server 1")]
    Version { min: u8, max: u8 },
    #[error("dictionary over its limit: {what}")]
    Dictionary { what: String },
    #[error("snappy block is damaged: {0}")]
    Snappy(String),
    /// `bytes` is the size that the body states.
    #[error("message of {bytes} bytes when decompressed, at most {max} are allowed")]
    MessageTooLong { bytes: usize, max: usize },
}

impl Error {
    /// The code sent to the client in an ERROR frame.
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Checksum { .. } | Self::Snappy(_) => ErrorCode::Damaged,
            Self::FrameTooLong { .. } | Self::MessageTooLong { .. } => ErrorCode::FrameTooLong,
            Self::Malformed { .. } | Self::Unexpected { .. } | Self::Number { .. } => ErrorCode::Malformed,
            Self::Version { .. } => ErrorCode::Version,
            Self::Dictionary { .. } => ErrorCode::Dictionary,
        }
    }

    /// True if sending the same bytes again may succeed, because they were damaged in transit.
    pub const fn retry_may_help(&self) -> bool {
        matches!(self, Self::Checksum { .. })
    }
}
