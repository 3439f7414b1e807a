//! Writes frames to the peer in the order of sending, several in one write.

use std::time::Duration;

use tacho_ingest::wire::ServerFrame;
use tokio::io::{AsyncWriteExt, WriteHalf};
use tokio::sync::{mpsc, oneshot};

use crate::tls::Socket;

/// Limit on the queued messages. Above it, senders wait.
const FRAMES_MAX: usize = 64;
/// Limit on the buffer that a connection keeps between writes. A write that needs more is rare: for example a long list of
/// rules.
const BUFFER_BYTES_KEPT: usize = 64 << 10;

/// The sending end, cheap to clone. When all clones are dropped, the connection is closed for writing.
#[derive(Clone)]
pub(super) struct Outgoing(mpsc::Sender<Queued>);

pub(super) enum Message {
    Frame(ServerFrame),
    /// Text for an HTTP client.
    Text(String),
}

impl From<ServerFrame> for Message {
    fn from(frame: ServerFrame) -> Self {
        Self::Frame(frame)
    }
}

impl Message {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Frame(frame) => frame.encode(out),
            Self::Text(text) => out.extend_from_slice(text.as_bytes()),
        }
    }
}

/// A queued message. `written` is dropped after the message is written to the socket, or when it cannot be written.
pub(super) struct Queued {
    message: Message,
    #[expect(dead_code, reason = "only its drop has an effect")]
    written: Option<oneshot::Sender<()>>,
}

/// The peer has disconnected or does not read the sent frames.
pub(super) struct Gone;

impl Outgoing {
    pub(super) async fn send(&self, message: impl Into<Message>) -> Result<(), Gone> {
        self.0.send(Queued { message: message.into(), written: None }).await.map_err(|_| Gone)
    }

    /// Returns when the frame is written to the socket, or the socket has failed.
    pub(super) async fn deliver(&self, frame: ServerFrame) -> Result<(), Gone> {
        let (sender, written) = oneshot::channel();
        self.0.send(Queued { message: frame.into(), written: Some(sender) }).await.map_err(|_| Gone)?;
        // Ends when `Queued::written` is dropped. If the socket has failed, the next call returns an error.
        let _ = written.await;
        Ok(())
    }
}

pub(super) fn channel() -> (Outgoing, mpsc::Receiver<Queued>) {
    let (sender, receiver) = mpsc::channel(FRAMES_MAX);
    (Outgoing(sender), receiver)
}

/// Writes until all clones of [`Outgoing`] are dropped, a write fails, or a write takes longer than `patience`. A write takes
/// long if the peer does not read.
pub(super) async fn write(
    mut frames: mpsc::Receiver<Queued>,
    mut socket: WriteHalf<Socket>,
    patience: Duration,
) {
    let mut list = Vec::new();
    let mut bytes = Vec::new();
    while frames.recv_many(&mut list, FRAMES_MAX).await > 0 {
        list.iter().for_each(|queued: &Queued| queued.message.encode(&mut bytes));
        match tokio::time::timeout(patience, socket.write_all(&bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
        // The memory is released before `written` is dropped. `rule_updates.rs` waits for this drop, and then releases its share
        // of the memory budget.
        bytes.clear();
        bytes.shrink_to(BUFFER_BYTES_KEPT);
        list.clear();
    }
    // Fails if the peer has disconnected, which is harmless.
    let _ = socket.shutdown().await;
}
