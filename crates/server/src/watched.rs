//! The socket of an accepted connection. It answers a question of `connection_limit.rs`: have bytes arrived that the
//! connection has not read?
//!
//! A read that is pending does not prove that no bytes have arrived: tokio reads only after the event loop has reported them,
//! which takes time on a busy machine. So the answer comes from the kernel.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What the socket did during one poll of the connection's task. Only this task uses the probe.
#[derive(Debug, Default)]
pub struct Probe(AtomicU8);

/// Set from [`Probe::begin`] to [`Probe::end_is_idle`]. The socket reports only during this time.
const IS_ON: u8 = 1;
/// A read waits, and no bytes have arrived for it.
const WAITS: u8 = 2;
/// Bytes were read, have arrived, or wait to be written.
const IS_ACTIVE: u8 = 4;

impl Probe {
    pub fn begin(&self) {
        self.0.store(IS_ON, Ordering::Relaxed);
    }

    /// Whether, since [`Self::begin`], the connection has only waited for bytes of its peer.
    pub fn end_is_idle(&self) -> bool {
        self.0.swap(0, Ordering::Relaxed) & (WAITS | IS_ACTIVE) == WAITS
    }

    pub fn waits(&self) {
        self.report(WAITS);
    }

    fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed) & IS_ON != 0
    }

    fn report(&self, bit: u8) {
        self.0.fetch_or(bit, Ordering::Relaxed);
    }
}

pub struct Watched {
    stream: TcpStream,
    probe: Arc<Probe>,
}

impl Watched {
    pub const fn new(stream: TcpStream, probe: Arc<Probe>) -> Self {
        Self { stream, probe }
    }

    pub fn peer(&self) -> Option<SocketAddr> {
        self.stream.peer_addr().ok()
    }

    /// Waits for bytes, and copies them without removing them from the socket.
    pub async fn peek(&self, bytes: &mut [u8]) -> io::Result<usize> {
        std::future::poll_fn(|context| {
            let peeked = self.stream.poll_peek(context, &mut ReadBuf::new(bytes));
            self.report_read(peeked.is_pending());
            peeked
        })
        .await
    }

    fn report_read(&self, is_pending: bool) {
        if self.probe.is_on() {
            // An error counts as idle: the connection ends soon.
            let is_idle = is_pending
                && !matches!(
                    recv(&self.stream, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT),
                    Ok((_, 1..))
                );
            self.probe.report(if is_idle { WAITS } else { IS_ACTIVE });
        }
    }

    fn report_write<T>(&self, written: Poll<T>) -> Poll<T> {
        if written.is_pending() && self.probe.is_on() {
            self.probe.report(IS_ACTIVE);
        }
        written
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.report_read(read.is_pending());
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.report_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.report_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
