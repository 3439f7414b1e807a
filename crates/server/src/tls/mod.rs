//! TLS of the listeners (RFC 8446). All ports use the same certificate, which is read again when its files change.
//!
//! Step before: a listener accepts a connection. Step after: the listener reads and writes the [`Socket`], with or without TLS.
//!
//! `files.rs` reads certificates and keys with `pem.rs`. This file holds the current certificates, does the handshake, and logs
//! failed handshakes and certificates that expire soon. `refusals.rs` and `expiry.rs` decide when a line is due.

pub(crate) mod expiry;
mod files;
pub mod pem;
mod refusals;

use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use expiry::{Due, Notice};
use refusals::{Refusal, Refusals, reason};
use tacho_model::Clock;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

pub use files::{Files, TlsError};

use crate::metrics::Metrics;
use crate::metrics::registry::{Counter, Family};
use crate::shutdown::Shutdown;
use crate::watched::Watched;

const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// Limits on the refusal of a peer without TLS: its time, and the bytes that are read from the peer.
const REFUSAL_TIME_MAX: Duration = Duration::from_secs(1);
const REFUSED_BYTES_MAX: u64 = 1 << 20;
/// Interval at which the files are checked for changes.
const RELOAD_EVERY: Duration = Duration::from_secs(5);

/// The first two bytes of every TLS connection: type and major version of the first record (RFC 8446, 5.1).
const HANDSHAKE: [u8; 2] = [22, 3];

pub type Socket = Box<dyn Io>;

pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Io for S {}

pub struct Tls {
    files: Files,
    loaded: RwLock<files::Loaded>,
    /// State of the files at the last attempt to read them.
    seen: Mutex<files::State>,
    refusals: Mutex<Refusals>,
}

pub enum Opened {
    /// After the handshake, or at a listener without TLS.
    Ready(Socket),
    /// The peer does not use TLS, but the listener does. The listener may answer in its own protocol.
    Plain(Socket),
}

impl Tls {
    pub fn open(files: Files) -> Result<Arc<Self>, TlsError> {
        let seen = Mutex::new(files.state());
        let loaded = RwLock::new(files.read()?);
        Ok(Arc::new(Self { files, loaded, seen, refusals: Mutex::default() }))
    }

    /// Earliest expiry of the certificates in `tls_cert`, in UTC.
    pub fn expires(&self) -> Option<String> {
        self.expires_seconds().map(expiry::utc)
    }

    fn expires_seconds(&self) -> Option<i64> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).expires
    }

    /// Returns whether the files have changed. After an error, the earlier certificates stay in use.
    fn reload(&self) -> Result<bool, TlsError> {
        let state = self.files.state();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == state {
            return Ok(false);
        }
        *seen = state;
        let loaded = self.files.read()?;
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(true)
    }

    async fn handshake(&self, stream: impl Io + 'static) -> io::Result<Socket> {
        let config = self.loaded.read().unwrap_or_else(PoisonError::into_inner).config.clone();
        Ok(Box::new(TlsAcceptor::from(config).accept(stream).await?))
    }

    /// Logs the refusals if a line is due.
    fn log_refusals(&self, new: Option<Refusal>) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        new.into_iter().for_each(|refusal| refusals.add(refusal));
        let Some((refused, Refusal { listener, peer, reason })) = refusals.due(Instant::now()) else {
            return;
        };
        drop(refusals);
        let peer = peer.map_or_else(|| "unknown".to_owned(), |peer| peer.to_string());
        tracing::warn!(
            listener,
            peer,
            reason,
            refused,
            "TLS handshake failed (at most one such line a minute)"
        );
    }
}

/// If the listener uses TLS, does the handshake of a connection. Before the handshake, `wrap` wraps the socket. Failed handshakes
/// and peers without TLS are counted and logged. Returns `None` after a failed handshake, and at `shutdown`.
pub async fn open<S: Io + 'static>(
    (listener, tls): (&'static str, Option<&Tls>),
    socket: Watched,
    wrap: impl FnOnce(Watched) -> S,
    failures: &Counter,
    shutdown: &mut Shutdown,
) -> Option<Opened> {
    let Some(tls) = tls else { return Some(Opened::Ready(Box::new(wrap(socket)))) };
    let peer = socket.peer();
    let opening = async {
        let mut first = [0; 2];
        match socket.peek(&mut first).await? {
            0 => Err(io::ErrorKind::NotConnected.into()),
            1 if first[0] != HANDSHAKE[0] => Ok(Opened::Plain(Box::new(wrap(socket)))),
            2 if first != HANDSHAKE => Ok(Opened::Plain(Box::new(wrap(socket)))),
            _ => tls.handshake(wrap(socket)).await.map(Opened::Ready),
        }
    };
    let opened = tokio::select! {
        opened = tokio::time::timeout(HANDSHAKE_TIME_MAX, opening) => opened,
        () = shutdown.wait() => return None,
    };
    let opened = opened.unwrap_or_else(|_| {
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("no handshake within {HANDSHAKE_TIME_MAX:?}")))
    });
    let reason = match &opened {
        Ok(Opened::Ready(_)) => return opened.ok(),
        Ok(Opened::Plain(_)) => Some("the peer does not use TLS".to_owned()),
        // The peer closed the connection without a byte, for example to check whether the port is open. Counted, but not
        // logged.
        Err(error) if error.kind() == io::ErrorKind::NotConnected => None,
        Err(error) => Some(reason(error)),
    };
    failures.add(1);
    if let Some(reason) = reason {
        tls.log_refusals(Some(Refusal { listener, peer, reason }));
    }
    opened.ok()
}

/// Answers a peer without TLS, then reads and discards its bytes. Closing a socket with unread bytes would reset the
/// connection, and the peer might not get the answer.
pub async fn refuse(mut socket: Socket, answer: &[u8]) {
    let refusal = async {
        socket.write_all(answer).await?;
        socket.shutdown().await?;
        tokio::io::copy(&mut socket.take(REFUSED_BYTES_MAX), &mut tokio::io::sink()).await
    };
    // A failure is harmless: the peer may have disconnected.
    let _ = tokio::time::timeout(REFUSAL_TIME_MAX, refusal).await;
}

/// Until `shutdown`: reads changed files, reports a certificate that expires soon, and logs refusals that were not logged yet.
pub async fn watch(tls: Arc<Tls>, metrics: Arc<Metrics>, clock: Arc<dyn Clock>, mut shutdown: Shutdown) {
    let mut ticks = tokio::time::interval(RELOAD_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut notice = Notice::default();
    // Both series exist from the start, so that the increase of the first failure can be computed.
    for result in ["ok", "failed"] {
        metrics.tls.reloads.with([result]);
    }
    loop {
        tokio::select! {
            () = shutdown.wait() => return,
            _ = ticks.tick() => {}
        }
        let reading = tls.clone();
        match tokio::task::spawn_blocking(move || reading.reload()).await {
            Ok(reloaded) => tell(reloaded, &metrics.tls.reloads),
            Err(error) => return tracing::error!(%error, "certificates are no longer reloaded"),
        }
        if let Some(expires) = tls.expires_seconds() {
            metrics.tls.certificate_expires.with([]).set(expires);
            warn_of_expiry(&mut notice, expires, clock.now());
        }
        tls.log_refusals(None);
    }
}

fn warn_of_expiry(notice: &mut Notice, expires: i64, now_ns: i64) {
    let at = || expiry::utc(expires);
    match notice.due(expires, now_ns.div_euclid(1_000_000_000)) {
        None => {}
        Some(Due::Expires { days }) => {
            tracing::warn!(expires = at(), days, "the TLS certificate expires soon: renew it");
        }
        Some(Due::Expired) => {
            tracing::error!(expires = at(), "the TLS certificate has expired, clients refuse it: renew it");
        }
    }
}

fn tell(reloaded: Result<bool, TlsError>, reloads: &Family<Counter, 1>) {
    match reloaded {
        Ok(false) => {}
        Ok(true) => {
            reloads.with(["ok"]).add(1);
            tracing::info!("new TLS certificates are in use");
        }
        Err(error) => {
            reloads.with(["failed"]).add(1);
            tracing::error!(%error, "changed TLS files cannot be used, the earlier certificates stay in use");
        }
    }
}
