//! State that all connections of the native protocol share.

use std::sync::Arc;

use tacho_ingest::budget::memory_bytes_max;
use tacho_ingest::wire::FRAME_BODY_BYTES_MAX;
use tacho_model::Clock;
use tacho_store::Store;
use tokio::sync::Semaphore;

use super::large::LargeFrames;
use super::patience::Patience;
use super::rule_updates::Lists;
use super::sessions::Sessions;
use crate::access::{Access, Gate, Writer};
use crate::control::Control;
use crate::decoding::Frames;
use crate::metrics::Metrics;
use crate::record_types::RecordTypes;

/// Memory limit for decoded records of DATA frames that are not yet on disk, over all connections, bytes. The records
/// of the largest frame may take 208 MiB while they are decoded (`tacho_ingest::budget::memory_bytes_max`).
const IN_FLIGHT_BYTES_MAX: usize = 256 << 20;
const _: () = assert!(memory_bytes_max(FRAME_BODY_BYTES_MAX as usize) <= IN_FLIGHT_BYTES_MAX);
/// Limit on the number of connections that may concurrently buffer a frame larger than `incoming::SMALL_BYTES_MAX`.
const LARGE_FRAMES_MAX: usize = 16;
const DICTIONARY_BYTES_MAX: usize = 256 << 20;

pub struct Native {
    pub(super) store: Arc<Store>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) control: Arc<Control>,
    pub(super) record_types: Arc<RecordTypes>,
    pub(super) gate: Arc<Gate>,
    pub(super) sessions: Sessions,
    pub(super) in_flight: Frames,
    pub(super) large_frames: LargeFrames,
    pub(super) lists: Lists,
    /// Memory budget of the dictionaries, with one permit per byte.
    pub(super) dictionary_bytes: Arc<Semaphore>,
    pub(super) patience: Patience,
    /// Scheme and port of the HTTP listener, for the answer to HTTP clients that connect to the native port by mistake.
    pub(super) http: Option<(&'static str, u16)>,
}

impl Native {
    pub fn new(
        store: Arc<Store>,
        metrics: Arc<Metrics>,
        clock: Arc<dyn Clock>,
        control: Arc<Control>,
    ) -> Self {
        let slow = metrics.connections_refused.with(["native", "slow-frame"]);
        Self {
            gate: Gate::open(metrics.clone(), clock.clone()),
            store,
            metrics,
            clock,
            control,
            record_types: Arc::default(),
            sessions: Sessions::default(),
            in_flight: Frames::new(IN_FLIGHT_BYTES_MAX),
            large_frames: LargeFrames::new(LARGE_FRAMES_MAX, slow),
            lists: Lists::default(),
            dictionary_bytes: Arc::new(Semaphore::new(DICTIONARY_BYTES_MAX)),
            patience: Patience::default(),
            http: None,
        }
    }

    pub(super) fn writer(&self, access: &Access) -> Writer {
        Writer::new(self.store.clone(), access.clone())
    }

    #[must_use]
    pub fn with_record_types(self, record_types: Arc<RecordTypes>) -> Self {
        Self { record_types, ..self }
    }

    #[must_use]
    pub fn with_gate(self, gate: Arc<Gate>) -> Self {
        Self { gate, ..self }
    }

    #[must_use]
    pub fn with_http(self, scheme: &'static str, port: u16) -> Self {
        Self { http: Some((scheme, port)), ..self }
    }

    #[must_use]
    pub fn with_patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }
}
