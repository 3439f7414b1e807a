//! Frames to the peer: written in the order in which they were sent, several at a time.

use std::time::Duration;

use tacho_ingest::wire::ServerFrame;
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::mpsc;

/// Frames that wait for a slow peer before whoever sends them waits too.
const FRAMES_MAX: usize = 64;

/// The sending end; cheap to clone. When all are dropped the connection is closed for writing.
#[derive(Clone)]
pub(super) struct Outgoing(mpsc::Sender<ServerFrame>);

/// The peer does not take what is sent.
pub(super) struct Gone;

impl Outgoing {
    pub(super) async fn send(&self, frame: ServerFrame) -> Result<(), Gone> {
        self.0.send(frame).await.map_err(|_| Gone)
    }
}

pub(super) fn channel() -> (Outgoing, mpsc::Receiver<ServerFrame>) {
    let (sender, receiver) = mpsc::channel(FRAMES_MAX);
    (Outgoing(sender), receiver)
}

/// Writes until nobody sends any more, or the peer takes nothing for as long as `patience`.
pub(super) async fn write(
    mut frames: mpsc::Receiver<ServerFrame>,
    mut socket: OwnedWriteHalf,
    patience: Duration,
) {
    let mut list = Vec::new();
    let mut bytes = Vec::new();
    while frames.recv_many(&mut list, FRAMES_MAX).await > 0 {
        bytes.clear();
        list.drain(..).for_each(|frame| frame.encode(&mut bytes));
        match tokio::time::timeout(patience, socket.write_all(&bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
    // A peer that has left does not mind.
    let _ = socket.shutdown().await;
}
