//! The native record protocol over TCP: who may come in, and how does it all end? (`docs/format/wire.md`)
//!
//! Step before: the agent's sender. Step after: `connection.rs`, once for each connection.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use tacho_ingest::budget::memory_bytes_max;
use tacho_ingest::wire::{ErrorCode, FRAME_BODY_BYTES_MAX, ServerFrame};
use tacho_model::Clock;
use tacho_store::Store;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::connection;
use super::patience::Patience;
use super::sessions::Sessions;
use crate::control::Control;
use crate::decoding::Frames;
use crate::metrics::Metrics;
use crate::record_types::RecordTypes;
use crate::room::{Entered, Room};
use crate::shutdown::Shutdown;

/// How long connections may take to acknowledge what they have, once the server is to stop.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// Pause after accept failed (no file descriptors are left), so that the failure is not repeated in a tight loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Memory of the records of DATA frames that are decoded and not yet on disk, over all connections, bytes; a frame at its
/// longest may come to `tacho_ingest::budget::memory_bytes_max` of it, 208 MiB, while it is decoded.
const IN_FLIGHT_BYTES_MAX: usize = 256 << 20;
const _: () = assert!(memory_bytes_max(FRAME_BODY_BYTES_MAX as usize) <= IN_FLIGHT_BYTES_MAX);
/// Connections that may gather a frame larger than `incoming::SMALL_BYTES_MAX` at the same time.
const LARGE_FRAMES_MAX: usize = 16;
/// Memory of the dictionaries of all connections, bytes.
const DICTIONARY_BYTES_MAX: usize = 256 << 20;

/// What all connections share.
pub struct Native {
    pub(super) store: Arc<Store>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) control: Arc<Control>,
    pub(super) record_types: Arc<RecordTypes>,
    pub(super) sessions: Sessions,
    pub(super) in_flight: Frames,
    pub(super) large_frames: Semaphore,
    /// One permit a byte.
    pub(super) dictionary_bytes: Arc<Semaphore>,
    pub(super) patience: Patience,
}

impl Native {
    pub fn new(
        store: Arc<Store>,
        metrics: Arc<Metrics>,
        clock: Arc<dyn Clock>,
        control: Arc<Control>,
    ) -> Self {
        Self {
            store,
            metrics,
            clock,
            control,
            record_types: Arc::default(),
            sessions: Sessions::default(),
            in_flight: Frames::new(IN_FLIGHT_BYTES_MAX),
            large_frames: Semaphore::new(LARGE_FRAMES_MAX),
            dictionary_bytes: Arc::new(Semaphore::new(DICTIONARY_BYTES_MAX)),
            patience: Patience::default(),
        }
    }

    /// Tells these of what agents declare.
    #[must_use]
    pub fn with_record_types(self, record_types: Arc<RecordTypes>) -> Self {
        Self { record_types, ..self }
    }

    #[must_use]
    pub fn with_patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }
}

/// Serves until `shutdown`, then until every connection has acknowledged what is on disk and said why it ends.
pub async fn serve(listener: TcpListener, native: Native, connections_max: usize, mut shutdown: Shutdown) {
    let native = Arc::new(native);
    let room = Room::new(connections_max, 0);
    loop {
        let accepted = tokio::select! {
            () = shutdown.wait() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tracing::warn!(listener = "native", "accept failed");
            // Perhaps no file descriptors are left.
            room.evict();
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Some(Entered { seat, evicted }) = room.enter() else {
            native.metrics.connections_refused.with(["native", "too-many"]).add(1);
            turn_away(stream, connections_max);
            continue;
        };
        if evicted {
            native.metrics.connections_refused.with(["native", "idle"]).add(1);
        }
        let (native, shutdown, seat) = (Arc::clone(&native), shutdown.clone(), Arc::new(seat));
        tokio::spawn(async move {
            let open = native.metrics.connections.with(["native"]);
            open.add(1);
            tokio::select! {
                () = connection::run(&native, stream, &seat, shutdown) => {}
                // Before it has said HELLO there is nothing to bring to an end.
                () = seat.sent_away() => tracing::debug!(listener = "native", "connection without HELLO made room"),
            }
            open.add(-1);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_TIME_MAX, room.emptied()).await.is_err() {
        tracing::warn!(listener = "native", "connections did not end in time");
    }
}

/// Says that there is no room, without waiting for the peer.
fn turn_away(stream: TcpStream, connections_max: usize) {
    let mut bytes = Vec::new();
    let message = format!("{connections_max} connections are open, which is as many as are allowed");
    ServerFrame::error(ErrorCode::TooManyConnections, message).encode(&mut bytes);
    if let Ok(mut stream) = stream.into_std() {
        // A fresh socket has room for one frame; whoever does not get it finds the connection closed.
        let _ = stream.write(&bytes);
    }
}
