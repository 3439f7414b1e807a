//! Has the caller of a query cancelled it?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Error;

/// A cancellation flag. The caller of a query sets it; the code that computes the query polls it.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Sets the flag: the caller no longer waits.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() { Err(Self::error()) } else { Ok(()) }
    }

    pub fn error() -> Error {
        Error::execution("query cancelled: the caller no longer waits")
    }
}
