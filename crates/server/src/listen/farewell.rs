//! Reasons for the end of a connection. The last frame to the peer reports a [`Farewell`].

use tacho_ingest::Error;
use tacho_ingest::wire::{ErrorCode, ServerFrame};

use super::http_request;
use super::incoming::Ended;
use super::outgoing::Gone;

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

    pub(super) fn of_token() -> Self {
        Self::new(
            ErrorCode::Unauthorized,
            "the token is not valid any more, or the tokens of the server have changed",
        )
    }

    pub(super) fn frame(&self) -> ServerFrame {
        ServerFrame::error(self.code, self.message.as_str())
    }

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
            ErrorCode::Tls => "tls",
            ErrorCode::Unauthorized => "unauthorized",
            ErrorCode::Forbidden => "forbidden",
        }
    }
}

#[derive(Debug)]
pub(super) enum Stop {
    /// The peer has disconnected or was silent. No last frame is sent.
    Left,
    /// The peer sent an HTTP request, so it would not understand a frame.
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
            Ended::Damaged(error) if http_request::is_request(&error) => Self::Http,
            Ended::Damaged(error) => error.into(),
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Farewell(Farewell::new(error.code(), error.to_string()))
    }
}

impl From<Farewell> for Stop {
    fn from(farewell: Farewell) -> Self {
        Self::Farewell(farewell)
    }
}
