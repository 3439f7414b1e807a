//! Handles SIGTERM and SIGINT, which end a command in an orderly way.

/// Returns a future that resolves at SIGTERM or SIGINT (Ctrl-C). After this call neither signal ends the process, even before the
/// future is polled.
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
