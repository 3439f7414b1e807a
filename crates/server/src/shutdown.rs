//! Telling every part of the server that it is time to stop.

use tokio::sync::watch;

/// Held by whoever decides; dropping it stops everything too.
pub struct Trigger(watch::Sender<bool>);

/// Held by every listener and background task.
#[derive(Clone)]
pub struct Shutdown(watch::Receiver<bool>);

pub fn channel() -> (Trigger, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (Trigger(sender), Shutdown(receiver))
}

impl Trigger {
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    pub fn is_stopping(&self) -> bool {
        *self.0.borrow()
    }

    /// Resolves when the server is to stop. May be dropped and called again.
    pub async fn wait(&mut self) {
        // An error says that the trigger is gone, which means the same.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
