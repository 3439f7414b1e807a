//! What the handlers share: the store, settings, and the permits that bound them.

use std::sync::Arc;

use tacho_model::{Clock, Timestamp};
use tacho_store::Store;
use tokio::sync::Semaphore;

use super::decoders::Decoders;
use super::origin;
use crate::config::Config;
use crate::control::Control;
use crate::decoding::Decoding;
use crate::metrics::Metrics;
use crate::record_types::RecordTypes;

/// Analyses of executions at the same time: each may hold a GiB and keeps one core busy.
const ANALYSES_MAX: usize = 2;

/// PromQL queries that are computed at the same time.
const QUERIES_MAX: usize = 8;

/// Merges and clean-ups that were asked for: one is carried out, one waits.
const MERGES_MAX: usize = 2;

/// What the handlers share.
pub struct App {
    pub config: Config,
    pub store: Arc<Store>,
    pub metrics: Arc<Metrics>,
    pub clock: Arc<dyn Clock>,
    pub control: Arc<Control>,
    pub record_types: Arc<RecordTypes>,
    pub started: Timestamp,
    /// One permit for each analysis of executions that is being computed; more wait their turn.
    pub(super) analyses: Arc<Semaphore>,
    /// The same for PromQL.
    pub(super) queries: Arc<Semaphore>,
    /// Turns and memory of writes.
    pub(super) decoding: Decoding,
    /// The same for merges and clean-ups that were asked for, carried out or waiting.
    pub(super) merges: Arc<Semaphore>,
    pub(super) decoders: Arc<Decoders>,
    /// One permit for each request, from the end of its body until its answer is sent.
    pub(super) permits: Arc<Semaphore>,
    pub(super) names: origin::Names,
}

impl App {
    pub fn new(
        config: Config,
        store: Arc<Store>,
        metrics: Arc<Metrics>,
        clock: Arc<dyn Clock>,
        control: Arc<Control>,
        record_types: Arc<RecordTypes>,
    ) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(config.requests_max));
        let names = origin::Names::new(&config.allowed_hosts, config.http.is_loopback());
        let decoding = Decoding::new(config.decoding_bytes_max, config.body_bytes_max);
        Arc::new(Self {
            started: clock.now(),
            config,
            store,
            metrics,
            clock,
            control,
            record_types,
            analyses: Arc::new(Semaphore::new(ANALYSES_MAX)),
            queries: Arc::new(Semaphore::new(QUERIES_MAX)),
            decoding,
            merges: Arc::new(Semaphore::new(MERGES_MAX)),
            decoders: Arc::default(),
            permits,
            names,
        })
    }
}
