//! Frames to the peer: written in the order in which they were sent, several at a time.

use std::time::Duration;

use tacho_ingest::wire::ServerFrame;
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::{mpsc, oneshot};

/// Frames that wait for a slow peer before whoever sends them waits too.
const FRAMES_MAX: usize = 64;
/// Bytes of the buffer that a connection keeps: a long list of rules is seldom sent.
const BUFFER_BYTES_KEPT: usize = 64 << 10;

/// The sending end; cheap to clone. When all are dropped the connection is closed for writing.
#[derive(Clone)]
pub(super) struct Outgoing(mpsc::Sender<Queued>);

/// A frame on its way; `written` is dropped once the socket has it.
pub(super) struct Queued {
    frame: ServerFrame,
    #[expect(dead_code, reason = "dropping it is what it does")]
    written: Option<oneshot::Sender<()>>,
}

/// The peer does not take what is sent.
pub(super) struct Gone;

impl Outgoing {
    pub(super) async fn send(&self, frame: ServerFrame) -> Result<(), Gone> {
        self.0.send(Queued { frame, written: None }).await.map_err(|_| Gone)
    }

    /// As [`Self::send`]; waits until the socket has taken the frame.
    pub(super) async fn deliver(&self, frame: ServerFrame) -> Result<(), Gone> {
        let (sender, written) = oneshot::channel();
        self.0.send(Queued { frame, written: Some(sender) }).await.map_err(|_| Gone)?;
        // Nothing is ever said; where the socket has failed, the next frame finds out.
        let _ = written.await;
        Ok(())
    }
}

pub(super) fn channel() -> (Outgoing, mpsc::Receiver<Queued>) {
    let (sender, receiver) = mpsc::channel(FRAMES_MAX);
    (Outgoing(sender), receiver)
}

/// Writes until nobody sends any more, or the peer takes nothing for as long as `patience`.
pub(super) async fn write(
    mut frames: mpsc::Receiver<Queued>,
    mut socket: OwnedWriteHalf,
    patience: Duration,
) {
    let mut list = Vec::new();
    let mut bytes = Vec::new();
    while frames.recv_many(&mut list, FRAMES_MAX).await > 0 {
        bytes.clear();
        bytes.shrink_to(BUFFER_BYTES_KEPT);
        list.iter().for_each(|queued: &Queued| queued.frame.encode(&mut bytes));
        match tokio::time::timeout(patience, socket.write_all(&bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
        list.clear();
    }
    // A peer that has left does not mind.
    let _ = socket.shutdown().await;
}
