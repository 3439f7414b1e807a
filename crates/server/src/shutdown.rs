//! Signals all parts of the server to stop.

use tokio::sync::watch;

/// The sending end. Dropping it also ends each [`Shutdown::wait`].
pub struct Trigger(watch::Sender<bool>);

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

    /// Resolves at shutdown. Cancel-safe.
    pub async fn wait(&mut self) {
        // An error means that the trigger was dropped, which has the same effect.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
