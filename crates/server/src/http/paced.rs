//! A socket whose peer has to take what is written: one that does not, or only drop by drop, is cut off.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Bytes that a peer has to take in the time that it has; less only where there is no more.
const BYTES_MIN: usize = 64 << 10;

pub struct Paced<S> {
    socket: S,
    time_max: Duration,
    /// Runs while the peer is behind.
    deadline: Option<Pin<Box<Sleep>>>,
    /// Bytes that it has taken since.
    taken: usize,
    on_cut: Box<dyn Fn() + Send + Sync>,
}

impl<S> Paced<S> {
    /// `on_cut` is called when the peer was too slow.
    pub fn new(socket: S, time_max: Duration, on_cut: impl Fn() + Send + Sync + 'static) -> Self {
        Self { socket, time_max, deadline: None, taken: 0, on_cut: Box::new(on_cut) }
    }

    fn watched(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(bytes)) => {
                self.taken = self.taken.saturating_add(bytes);
                if self.taken >= BYTES_MIN {
                    self.deadline = None;
                }
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(error) => Poll::Ready(error),
            Poll::Pending => {
                let time_max = self.time_max;
                let taken = &mut self.taken;
                let deadline = self.deadline.get_or_insert_with(|| {
                    *taken = 0;
                    Box::pin(sleep_until(Instant::now() + time_max))
                });
                if deadline.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                (self.on_cut)();
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "peer does not take the answer")))
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

    /// Comes when all is written.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.deadline = None;
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

    #[tokio::test]
    async fn who_takes_too_little_is_cut_off() {
        let cuts = Arc::new(AtomicUsize::new(0));
        let count = cuts.clone();
        let (ours, mut theirs) = tokio::io::duplex(1_024);
        let time_max = Duration::from_millis(200);
        let cut = move || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let mut paced = Paced::new(ours, time_max, cut);
        let dripping = tokio::spawn(async move {
            while let Ok(1..) = theirs.read(&mut [0; 100]).await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let error = paced.write_all(&[7; 1 << 20]).await.unwrap_err();
        assert_eq!((error.kind(), cuts.load(Ordering::Relaxed)), (io::ErrorKind::TimedOut, 1));
        drop(paced);
        dripping.await.unwrap();
    }

    #[tokio::test]
    async fn the_time_begins_anew_with_all_that_is_taken() {
        let (ours, mut theirs) = tokio::io::duplex(8_192);
        let mut paced = Paced::new(ours, Duration::from_secs(600), || panic!("cut off"));
        let mut context = Context::from_waker(std::task::Waker::noop());
        let bytes = [7; 16_384];
        let mut write = |paced: &mut Paced<_>| Pin::new(paced).poll_write(&mut context, &bytes).is_ready();
        assert!(write(&mut paced) && !write(&mut paced));
        assert!(paced.deadline.is_some());
        let mut buffer = [0; 8_192];
        for _ in 0..BYTES_MIN / 8_192 {
            assert!(paced.deadline.is_some());
            theirs.read_exact(&mut buffer).await.unwrap();
            assert!(write(&mut paced));
        }
        assert!(paced.deadline.is_none(), "enough was taken");
        assert!(!write(&mut paced) && paced.deadline.is_some());
        paced.flush().await.unwrap();
        assert!(paced.deadline.is_none(), "all is written");
    }
}
