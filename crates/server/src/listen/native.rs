//! The listener of the native record protocol over TCP: accepts connections and drains them (`docs/format/wire.md`).
//!
//! Step before: the agent's sender. Step after: `connection.rs` serves each connection.

use std::io::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tacho_ingest::wire::{ErrorCode, ServerFrame};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

pub use super::shared::Native;
use super::{connection, http_request};
use crate::connection_limit::ConnectionLimit;
use crate::shutdown::Shutdown;
use crate::tls::{self, Opened, Socket, Tls};
use crate::watched::Watched;

/// Time limit for connections to acknowledge their frames at shutdown.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// Time limit for the first bytes of a peer that does not use TLS on a port with TLS.
const FIRST_BYTES_TIME_MAX: Duration = Duration::from_secs(1);

/// Serves until `shutdown`. Then waits, at most [`DRAIN_TIME_MAX`], until every connection has acknowledged its frames and sent
/// its last frame.
pub async fn serve(
    (listener, tls): (TcpListener, Option<Arc<Tls>>),
    native: Native,
    connections_max: usize,
    mut shutdown: Shutdown,
) {
    let native = Arc::new(native);
    let limit = ConnectionLimit::new(connections_max, 0);
    loop {
        let accepted = tokio::select! {
            () = shutdown.wait() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            limit.relieve("native").await;
            continue;
        };
        let entered = tokio::select! {
            () = shutdown.wait() => break,
            entered = limit.enter() => entered,
        };
        let Some(seat) = entered else {
            native.metrics.connections_refused.with(["native", "too-many"]).add(1);
            refuse(stream, connections_max);
            continue;
        };
        // Acknowledgements are small and must not be delayed. If this option cannot be set, they only arrive later.
        let _ = stream.set_nodelay(true);
        let (native, shutdown, seat) = (Arc::clone(&native), shutdown.clone(), Arc::new(seat));
        let stream = Watched::new(stream, seat.probe());
        let tls = tls.clone();
        let handshakes = native.metrics.connections_refused.with(["native", "handshake"]);
        tokio::spawn(async move {
            let open = native.metrics.connections.with(["native"]);
            open.add(1);
            let connection = async {
                let tls = ("native", tls.as_deref());
                match tls::open(tls, stream, |stream| stream, &handshakes, &mut shutdown.clone()).await {
                    None => {}
                    Some(Opened::Plain(mut stream)) => {
                        let answer = answer_without_tls(&mut stream, &native).await;
                        tls::refuse(stream, &answer).await;
                    }
                    Some(Opened::Ready(stream)) => {
                        connection::run(&native, (stream, peer.ip()), &seat, shutdown).await;
                    }
                }
            };
            // Only a connection that has not sent HELLO is closed for a new one. It has no frames to acknowledge.
            if seat.serve(connection).await.is_none() {
                native.metrics.connections_refused.with(["native", "idle"]).add(1);
                tracing::debug!(listener = "native", "connection without HELLO closed for a new one");
            }
            open.add(-1);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_TIME_MAX, limit.emptied()).await.is_err() {
        tracing::warn!(listener = "native", "connections did not end in time");
    }
}

/// Serves one connection over any byte stream, such as the network of a simulation.
pub async fn serve_stream(native: &Native, socket: Socket, peer: IpAddr, shutdown: Shutdown) {
    if let Some(seat) = ConnectionLimit::new(1, 0).enter().await {
        connection::run(native, (socket, peer), &Arc::new(seat), shutdown).await;
    }
}

/// The answer to a client that does not use TLS on a port with TLS: an HTTP client or an agent.
async fn answer_without_tls(stream: &mut Socket, native: &Native) -> Vec<u8> {
    let mut first = [0; 4];
    let read = tokio::time::timeout(FIRST_BYTES_TIME_MAX, stream.read_exact(&mut first)).await;
    if matches!(read, Ok(Ok(_))) && http_request::begins_request(first) {
        return http_request::refusal(native.http).into_bytes();
    }
    let mut bytes = Vec::new();
    ServerFrame::error(ErrorCode::Tls, "this port requires TLS: set tls_ca").encode(&mut bytes);
    bytes
}

fn refuse(stream: TcpStream, connections_max: usize) {
    let mut bytes = Vec::new();
    let message = format!("{connections_max} connections are open, which is the limit");
    ServerFrame::error(ErrorCode::TooManyConnections, message).encode(&mut bytes);
    if let Ok(mut stream) = stream.into_std() {
        // One frame fits into the buffer of a new socket. If the write fails, the peer only sees a closed connection.
        let _ = stream.write(&bytes);
    }
}
