//! The reason for the end of a connection, and its last frame.

use tacho_ingest::Error;
use tacho_ingest::wire::{ErrorCode, ServerFrame};

use super::http_peer;
use super::incoming::Ended;
use super::outgoing::Gone;

/// Why the server ends a connection.
#[derive(Debug)]
pub(super) struct Farewell {
    pub code: ErrorCode,
    pub message: String,
}

impl Farewell {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn shutting_down() -> Self {
        Self::new(ErrorCode::ShuttingDown, "server is shutting down")
    }

    pub(super) fn superseded() -> Self {
        Self::new(ErrorCode::Superseded, "the same session connected again")
    }

    pub(super) fn frame(&self) -> ServerFrame {
        ServerFrame::error(self.code, self.message.as_str())
    }

    /// Label value of the metric.
    pub(super) const fn reason(&self) -> &'static str {
        match self.code {
            ErrorCode::Damaged => "damaged",
            ErrorCode::Version => "version",
            ErrorCode::FrameTooLong => "frame-too-long",
            ErrorCode::Dictionary => "dictionary",
            ErrorCode::Malformed => "malformed",
            ErrorCode::Superseded => "superseded",
            ErrorCode::ShuttingDown => "shutting-down",
            ErrorCode::Storage => "storage",
            ErrorCode::TooManyConnections => "too-many",
            ErrorCode::Session => "session",
        }
    }
}

/// Why reading stops.
#[derive(Debug)]
pub(super) enum Stop {
    /// The peer left or was silent: no frame can be sent to it.
    Left,
    /// The peer speaks HTTP.
    Http,
    Farewell(Farewell),
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Self::Left
    }
}

impl From<Ended> for Stop {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Closed | Ended::Silent => Self::Left,
            Ended::Damaged(error) => error.into(),
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        if let Error::FrameTooLong { length, offset: 0 } = error
            && http_peer::is_request(length)
        {
            return Self::Http;
        }
        Self::Farewell(Farewell::new(error.code(), error.to_string()))
    }
}

impl From<Farewell> for Stop {
    fn from(farewell: Farewell) -> Self {
        Self::Farewell(farewell)
    }
}
