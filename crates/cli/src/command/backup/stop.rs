//! Ends long work at Ctrl-C or SIGTERM. The work calls [`Stop::check`], and can remove its incomplete files before it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tacho_store::{Error, ErrorKind, Result};
use tokio::runtime::Runtime;

use crate::failure::Failure;
use crate::signal;

/// The message of the error that ends work after a signal.
pub const INTERRUPTED: &str = "interrupted";

#[derive(Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// From now on, the first signal ends the work instead of the process. The second one ends the process.
    pub fn of_signals(runtime: &Runtime) -> Result<Self, Failure> {
        let stop = Self::default();
        let on_signal = stop.clone();
        let first = {
            let _inside = runtime.enter();
            signal::stop().map_err(|e| Failure::new(format!("cannot watch for signals: {e}")))?
        };
        runtime.spawn(async move {
            first.await;
            on_signal.0.store(true, Ordering::Relaxed);
            if let Ok(second) = signal::stop() {
                second.await;
                // The user does not want to wait until the work calls `check` again.
                std::process::exit(Failure::INTERRUPTED);
            }
        });
        Ok(stop)
    }

    /// # Errors
    /// `Closed` if the work should end.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Closed, INTERRUPTED));
        }
        Ok(())
    }
}
