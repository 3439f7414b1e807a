//! Reads frames from the peer, with limits on time and memory.

use std::time::Duration;

use tacho_ingest::Error;
use tacho_ingest::wire::{Frame, FrameDecoder};
use tokio::io::{AsyncReadExt, ReadHalf};
use tokio::time::Instant;

use super::large::{LargeFrames, Turn};
use super::patience::Patience;
use crate::tls::Socket;

const READ_BYTES: usize = 32 << 10;
/// Limit on the bytes that every connection may buffer. To buffer a larger frame, a connection needs a turn, one of a few permits
/// (`large.rs`).
const SMALL_BYTES_MAX: usize = 256 << 10;
/// After the last frame was sent, the peer's data is read up to these limits. Closing a socket with unread bytes resets the
/// connection, and the peer might not get the last frame.
const LINGER_TIME_MAX: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(super) enum Ended {
    /// The peer closed the connection, or the connection failed.
    Closed,
    /// No byte or no complete frame arrived in time, or a large frame lost its turn.
    Silent,
    Damaged(Error),
}

pub(super) struct Incoming<'a> {
    socket: ReadHalf<Socket>,
    decoder: FrameDecoder,
    buffer: Vec<u8>,
    patience: Patience,
    large_frames: &'a LargeFrames,
    large: Option<Turn<'a>>,
    /// Start time of the incomplete frame.
    frame_began: Option<Instant>,
}

impl<'a> Incoming<'a> {
    pub(super) fn new(socket: ReadHalf<Socket>, patience: Patience, large_frames: &'a LargeFrames) -> Self {
        let buffer = vec![0; READ_BYTES];
        Self {
            socket,
            decoder: FrameDecoder::new(),
            buffer,
            patience,
            large_frames,
            large: None,
            frame_began: None,
        }
    }

    /// Waits for a complete frame, which [`Self::frame`] then returns. Cancel-safe.
    pub(super) async fn wait(&mut self) -> Result<(), Ended> {
        while !self.decoder.is_whole().map_err(Ended::Damaged)? {
            self.read().await?;
        }
        Ok(())
    }

    pub(super) fn frame(&mut self) -> Result<Option<Frame<'_>>, Error> {
        self.frame_began = None;
        self.large = None;
        self.decoder.pull()
    }

    async fn read(&mut self) -> Result<(), Ended> {
        let gathered = self.decoder.gathered();
        if gathered == 0 {
            self.large = None;
        } else if gathered > SMALL_BYTES_MAX && self.large.is_none() {
            let since = Instant::now();
            self.large = self.large_frames.turn().await;
            // The server made the peer wait, so this time does not count.
            self.frame_began = self.frame_began.map(|began| began + since.elapsed());
        }
        let patience = self.next_patience()?;
        let read = tokio::time::timeout(patience, self.socket.read(&mut self.buffer));
        let read = match &self.large {
            None => read.await,
            Some(turn) => tokio::select! {
                biased;
                read = read => read,
                () = self.large_frames.lost(turn) => return Err(Ended::Silent),
            },
        };
        match read {
            Err(_) => Err(Ended::Silent),
            Ok(Ok(0) | Err(_)) => Err(Ended::Closed),
            Ok(Ok(count)) => {
                self.decoder.push(self.buffer.get(..count).unwrap_or_default());
                if let Some(turn) = &mut self.large {
                    turn.progress(count);
                }
                self.frame_began.get_or_insert_with(Instant::now);
                Ok(())
            }
        }
    }

    fn next_patience(&mut self) -> Result<Duration, Ended> {
        if self.decoder.gathered() == 0 {
            self.frame_began = None;
        }
        match self.frame_began.map(|began| self.patience.frame.saturating_sub(began.elapsed())) {
            None => Ok(self.patience.silence),
            Some(Duration::ZERO) => Err(Ended::Silent),
            Some(left) => Ok(left.min(self.patience.silence)),
        }
    }

    pub(super) async fn discard_rest(mut self) {
        let discard = async {
            let mut bytes = 0;
            while bytes < LINGER_BYTES_MAX {
                match self.socket.read(&mut self.buffer).await {
                    Ok(0) | Err(_) => return,
                    Ok(count) => bytes += count,
                }
            }
        };
        // The connection is closed next, so the result does not matter.
        let _ = tokio::time::timeout(LINGER_TIME_MAX, discard).await;
    }
}

#[cfg(test)]
mod tests {
    use tacho_ingest::wire::FRAME_BODY_BYTES_MAX;
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::metrics::registry::Counter;

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_sends_a_frame_byte_by_byte_is_cut_off() {
        let patience = Patience::default();
        let large_frames = LargeFrames::new(1, Counter::default());
        let (ours, mut theirs) = tokio::io::duplex(1_024);
        let (read, _write) = tokio::io::split(Box::new(ours) as Socket);
        let mut incoming = Incoming::new(read, patience, &large_frames);
        // The complete frame would take months.
        let drip = async {
            for byte in FRAME_BODY_BYTES_MAX.to_le_bytes().into_iter().chain(std::iter::repeat(0)) {
                theirs.write_all(&[byte]).await.unwrap();
                tokio::time::sleep(patience.silence / 5).await;
            }
        };
        let begun = Instant::now();
        tokio::select! {
            ended = incoming.wait() => assert!(matches!(ended, Err(Ended::Silent)), "{ended:?}"),
            () = drip => unreachable!("the bytes do not end"),
        }
        assert_eq!(begun.elapsed().as_secs(), patience.frame.as_secs());
    }
}
