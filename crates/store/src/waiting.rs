//! Lets work on another thread check whether its caller is still waiting.

use std::sync::Arc;

/// Held by the waiting future and dropped with it.
#[derive(Debug, Default)]
pub struct Waiter(Arc<()>);

impl Waiter {
    /// Returns a function that any thread can call to check whether this is still held.
    pub fn waits(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let held = Arc::downgrade(&self.0);
        move || held.strong_count() > 0
    }
}
