//! Does anybody still wait for what another thread works on?

use std::sync::Arc;

/// Held by who waits: dropped with the future that does.
#[derive(Debug, Default)]
pub struct Waiter(Arc<()>);

impl Waiter {
    /// Says, wherever it is asked, whether this is still held.
    pub fn waits(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let held = Arc::downgrade(&self.0);
        move || held.strong_count() > 0
    }
}
