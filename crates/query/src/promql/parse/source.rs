//! The text of a query, and errors that name a position in the text.

use crate::error::{Error, Place};

#[derive(Clone, Copy, Debug)]
pub struct Source<'t> {
    pub text: &'t str,
}

impl Source<'_> {
    pub fn error(self, at: usize, message: impl Into<String>) -> Error {
        Error::bad_data(message).at(self.place(at))
    }

    pub fn place(self, at: usize) -> Place {
        Place::in_text(self.text, at)
    }
}
