//! Lets work on another thread check whether its caller still waits.

use std::sync::Arc;

/// Held by the waiting future: dropped with it.
#[derive(Debug, Default)]
pub struct Waiter(Arc<()>);

impl Waiter {
    /// A function that returns, on any thread, whether this is still held.
    pub fn waits(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let held = Arc::downgrade(&self.0);
        move || held.strong_count() > 0
    }
}
