//! Why did a query fail?

use std::fmt;

/// Class of an error. The HTTP status is 400 for [`Self::BadData`], otherwise 422.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The query or its parameters are invalid.
    BadData,
    /// The computation failed because of the data or of an argument, or the query was cancelled.
    Execution,
    /// The query exceeds a limit, which the message names.
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

/// Why a query failed. A retry of the same query over the same data fails in the same way, unless the query was cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
    /// The position of the error in the text of the query.
    pub place: Option<Place>,
}

/// A position in a text. Lines and columns start at 1; columns are counted in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

impl Place {
    /// The position of the byte `at`, or of the end of the text if the text is shorter.
    pub(crate) fn in_text(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or("");
        Self { line: 1 + before.matches('\n').count(), column: 1 + line.chars().count() }
    }

    /// Reads the place from the end of a message that is the text of an [`Error`].
    pub fn of_message(message: &str) -> Option<Self> {
        let (_, place) = message.strip_suffix(')')?.rsplit_once(" (at ")?;
        let (line, column) = match place.strip_prefix("line ") {
            Some(place) => place.split_once(", ")?,
            None => ("1", place),
        };
        Some(Self { line: line.parse().ok()?, column: column.strip_prefix("column ")?.parse().ok()? })
    }
}

/// `column 5` if the place is in the first line, otherwise `line 2, column 5`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            1 => write!(f, "column {}", self.column),
            line => write!(f, "line {line}, column {}", self.column),
        }
    }
}

impl Error {
    pub(crate) fn bad_data(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::BadData, message: message.into(), place: None }
    }

    pub(crate) fn execution(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Execution, message: message.into(), place: None }
    }

    /// `what` names what was counted: "steps", "bytes of text".
    pub(crate) fn limit(what: &str, value: u128, limit: usize) -> Self {
        let message = format!("query needs {value} {what}, at most {limit} are allowed");
        Self { kind: ErrorKind::Limit, message, place: None }
    }

    pub(crate) fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(place) => write!(f, "{} (at {place})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_lines_and_characters() {
        for (text, at, line, column) in
            [("", 0, 1, 1), ("abc", 2, 1, 3), ("é+b", 3, 1, 3), ("a\nb\n", 3, 2, 2), ("a\nb\n", 9, 3, 1)]
        {
            let place = Place::in_text(text, at);
            assert_eq!(place, Place { line, column }, "{text:?} {at}");
            let message = Error::bad_data("(a (at column 9) b").at(place).to_string();
            assert_eq!(Place::of_message(&message), Some(place), "{message}");
        }
        for other in ["", "a", "a (at column x)", "a (at column 1) b", "a (at line 1)", "(at column 1)"] {
            assert_eq!(Place::of_message(other), None, "{other}");
        }
    }
}
