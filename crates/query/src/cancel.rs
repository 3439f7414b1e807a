//! Does anybody still wait for the answer?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Error;

/// Shared by a question and whoever works on it, which looks now and then.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Nobody waits any more.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    /// When nobody waits any more.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() { Err(Self::error()) } else { Ok(()) }
    }

    /// What becomes of a question for which nobody waits.
    pub fn error() -> Error {
        Error::execution("query was cancelled: nobody waits for it")
    }
}
