//! A socket that limits how long its peer may leave written bytes unread.
//!
//! A peer is cut off if it reads nothing for [`IDLE_MAX`], or too slowly: less than [`BYTES_MIN`] in `time_max`. Only time
//! during which a write is blocked counts, so a stream with pauses may last indefinitely. A flush does not reset the time,
//! because otherwise a peer could read a stream of small frames arbitrarily slowly.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Bytes that the socket must accept in each `time_max` of blocked writes. The socket accepts more bytes only if the peer
/// reads.
const BYTES_MIN: usize = 64 << 10;

/// Limit on the time of one blocked write.
const IDLE_MAX: Duration = Duration::from_secs(20);

pub struct Paced<S> {
    socket: S,
    time_max: Duration,
    /// Time during which writes were blocked since the last reset. Does not include the current block.
    blocked: Duration,
    /// The time at which the current write was blocked, and the timer at whose end the peer is cut off.
    block: Option<(Instant, Pin<Box<Sleep>>)>,
    /// Bytes that the socket has accepted since the last reset. At `BYTES_MIN`, `taken` and `blocked` are reset.
    taken: usize,
    on_cut: Box<dyn Fn() + Send + Sync>,
}

impl<S> Paced<S> {
    pub fn new(socket: S, time_max: Duration, on_cut: impl Fn() + Send + Sync + 'static) -> Self {
        Self { socket, time_max, blocked: Duration::ZERO, block: None, taken: 0, on_cut: Box::new(on_cut) }
    }

    fn watched(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(bytes)) => {
                if let Some((began, _)) = self.block.take() {
                    self.blocked += began.elapsed();
                }
                self.taken = self.taken.saturating_add(bytes);
                if self.taken >= BYTES_MIN {
                    self.taken = 0;
                    self.blocked = Duration::ZERO;
                }
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(error) => Poll::Ready(error),
            Poll::Pending => {
                let left = self.time_max.saturating_sub(self.blocked).min(IDLE_MAX);
                let (_, timer) = self.block.get_or_insert_with(|| {
                    let now = Instant::now();
                    (now, Box::pin(sleep_until(now + left)))
                });
                if timer.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                (self.on_cut)();
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "peer does not read the response")))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.watched(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.watched(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Repeatedly writes `frame` bytes and flushes, until the peer, which reads 100 bytes per 10 ms, is cut off.
    async fn cut_off(frame: usize) {
        let cuts = Arc::new(AtomicUsize::new(0));
        let count = cuts.clone();
        let (ours, mut theirs) = tokio::io::duplex(1_024);
        let cut = move || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let mut paced = Paced::new(ours, Duration::from_millis(200), cut);
        let dripping = tokio::spawn(async move {
            while let Ok(1..) = theirs.read(&mut [0; 100]).await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let frames = async {
            for _ in 0..(1 << 20) / frame {
                paced.write_all(&vec![7; frame]).await?;
                paced.flush().await?;
            }
            Ok(())
        };
        let error: io::Error = frames.await.unwrap_err();
        assert_eq!((error.kind(), cuts.load(Ordering::Relaxed)), (io::ErrorKind::TimedOut, 1));
        drop(paced);
        dripping.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_peer_is_cut_off() {
        cut_off(1 << 20).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_peer_of_a_stream_of_small_frames_is_cut_off() {
        cut_off(200).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_cut_off_before_the_time_of_slow_peers() {
        let (ours, _theirs) = tokio::io::duplex(1_024);
        let cuts = Arc::new(AtomicUsize::new(0));
        let count = cuts.clone();
        let cut = move || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let mut paced = Paced::new(ours, 3 * IDLE_MAX, cut);
        let began = Instant::now();
        let error = paced.write_all(&[7; 2_048]).await.unwrap_err();
        assert_eq!((error.kind(), cuts.load(Ordering::Relaxed)), (io::ErrorKind::TimedOut, 1));
        assert!(began.elapsed() < 2 * IDLE_MAX, "cut off after {:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_of_the_stream_do_not_count() {
        let (ours, mut theirs) = tokio::io::duplex(1_024);
        let time_max = Duration::from_secs(10);
        let mut paced = Paced::new(ours, time_max, || panic!("cut off"));
        for _ in 0..10 {
            let read = async {
                tokio::time::sleep(time_max / 20).await;
                theirs.read_exact(&mut [0; 2_048]).await.unwrap();
            };
            let (written, ()) = tokio::join!(paced.write_all(&[7; 2_048]), read);
            written.unwrap();
            tokio::time::sleep(time_max * 10).await;
        }
        assert!(
            paced.blocked >= time_max / 2,
            "the peer blocked for only {:?} of {time_max:?}",
            paced.blocked
        );
    }

    #[tokio::test(start_paused = true)]
    async fn reading_64_kib_resets_the_time() {
        let (ours, mut theirs) = tokio::io::duplex(BYTES_MIN);
        let time_max = Duration::from_secs(10);
        let mut paced = Paced::new(ours, time_max, || panic!("cut off"));
        paced.write_all(&[7; BYTES_MIN]).await.unwrap();
        for _ in 0..5 {
            let read = async {
                tokio::time::sleep(time_max * 9 / 10).await;
                theirs.read_exact(&mut vec![0; BYTES_MIN]).await.unwrap();
            };
            let (written, ()) = tokio::join!(paced.write_all(&[7; BYTES_MIN]), read);
            written.unwrap();
        }
        assert_eq!(paced.blocked, Duration::ZERO);
    }
}
