//! Why did a query fail?

use std::fmt;

/// Class of an error. It decides the HTTP status: 400, 422, 422.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The query or its parameters are invalid.
    BadData,
    /// The query is valid, but cannot be computed over this data.
    Execution,
    /// The query exceeds a limit; the message names the value and the limit.
    Limit,
}

impl ErrorKind {
    /// `errorType` in Prometheus' API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BadData => "bad_data",
            Self::Execution | Self::Limit => "execution",
        }
    }
}

/// Retrying the same query over the same data fails the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
    /// Position of the error in the query, in bytes from 0.
    pub position: Option<usize>,
}

impl Error {
    pub(crate) fn bad_data(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::BadData, message: message.into(), position: None }
    }

    pub(crate) fn execution(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Execution, message: message.into(), position: None }
    }

    /// `what` is a plural noun with its unit: "steps", "samples".
    pub(crate) fn limit(what: &str, value: u128, limit: usize) -> Self {
        let message = format!("query needs {value} {what}, at most {limit} are allowed");
        Self { kind: ErrorKind::Limit, message, position: None }
    }

    pub(crate) fn at(mut self, position: usize) -> Self {
        self.position = Some(position);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(at) => write!(f, "{} (at character {})", self.message, at + 1),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}
