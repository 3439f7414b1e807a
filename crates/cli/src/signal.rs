//! SIGTERM and SIGINT, which end a command in an orderly way.

/// Resolves at SIGTERM or SIGINT (Ctrl-C). Neither ends the process any more from the call on, before the first poll.
pub fn stop() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
