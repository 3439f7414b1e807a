//! Lets work on another thread check whether its caller is still waiting.

use std::sync::Arc;

/// A marker that the waiting future holds and drops.
#[derive(Debug, Default)]
pub struct Waiter(Arc<()>);

impl Waiter {
    /// Returns a function that any thread can call to check whether the marker still exists.
    pub fn waits(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let held = Arc::downgrade(&self.0);
        move || held.strong_count() > 0
    }
}
