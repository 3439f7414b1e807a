//! State that the handlers share: the store, settings, and permits that limit concurrent work.

use std::sync::Arc;

use tacho_model::{Clock, Timestamp};
use tacho_store::Store;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answers::Answers;
use super::decoders::Decoders;
use super::error::ApiError;
use super::executions::fetch::{LIGHT_BLOCK_BYTES_MAX, block_bytes_max};
use super::origin;
use super::prometheus::ResultCache;
use super::route::Needs;
use super::running::Listing;
use crate::access::{Access, Gate, View, Whole, Writer};
use crate::config::{Config, memory};
use crate::control::Control;
use crate::decoding::Decoding;
use crate::metrics::Metrics;
use crate::received::Services;
use crate::record_types::RecordTypes;
use crate::snapshots::Snapshots;
use crate::tls::Tls;

/// Limit on concurrent analyses of executions, each of which uses one core. `App::heavy` limits their memory.
pub(super) const ANALYSES_MAX: usize = 2;

/// Limit on concurrent PromQL queries, selections of series and searches of entries.
pub(super) const QUERIES_MAX: usize = 8;

/// Limit on requested merges and clean-ups: one runs, one waits.
const MERGES_MAX: usize = 2;

pub struct App {
    pub config: Config,
    /// Handlers use the store only through their access.
    store: Arc<Store>,
    pub gate: Arc<Gate>,
    pub(super) needs: Needs,
    pub metrics: Arc<Metrics>,
    pub clock: Arc<dyn Clock>,
    pub control: Arc<Control>,
    pub record_types: Arc<RecordTypes>,
    pub tls: Option<Arc<Tls>>,
    pub snapshots: Arc<Snapshots>,
    pub started: Timestamp,
    /// Permits of running analyses of executions.
    pub(super) analyses: Arc<Semaphore>,
    /// Permits of running PromQL queries, selections of series and searches of entries.
    pub(super) queries: Arc<Semaphore>,
    /// The single permit for heavy queries of all kinds, which need much memory.
    pub(super) heavy: Arc<Semaphore>,
    /// The single permit for selections of many series that need no other permit.
    pub(super) lists: Arc<Semaphore>,
    /// One permit per request that waits for the permit of `heavy` or `lists`, or holds that permit. There are half as many
    /// as `requests_max`, so that writes and small queries are served.
    alone: Arc<Semaphore>,
    pub(super) results: Arc<ResultCache>,
    /// Memory limit for the execution blocks of one query, bytes.
    pub(super) block_bytes_max: usize,
    /// Memory limit for the execution blocks of a query that runs at the same time as a heavy query, bytes.
    pub(super) light_block_bytes_max: usize,
    pub(super) answers: Answers,
    pub(super) decoding: Decoding,
    /// Permits of requested merges and clean-ups, running or waiting.
    pub(super) merges: Arc<Semaphore>,
    pub(super) decoders: Arc<Decoders>,
    pub(super) services: Arc<Services>,
    /// One permit per request, from the end of its body until its response begins. Health checks and `/metrics` need none.
    pub(super) permits: Arc<Semaphore>,
    pub(super) names: origin::Names,
    /// The requests that read records now.
    pub(super) listing: Arc<Listing>,
}

impl App {
    pub fn new(
        config: Config,
        store: Arc<Store>,
        metrics: Arc<Metrics>,
        clock: Arc<dyn Clock>,
        control: Arc<Control>,
        record_types: Arc<RecordTypes>,
        (tls, gate): (Option<Arc<Tls>>, Arc<Gate>),
    ) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(config.requests_max));
        let names = origin::Names::new(&config.allowed_hosts, config.http.is_loopback());
        let decoding = Decoding::new(config.decoding_bytes_max, config.body_bytes_max);
        let alone_max = config.requests_max.div_ceil(2);
        let answers = Answers::new(config.answer_bytes_max, &metrics);
        Arc::new(Self {
            started: clock.now(),
            snapshots: Snapshots::new(&config.data, store.clone(), clock.clone()),
            results: ResultCache::new(config.query_cache_bytes_max, &metrics),
            config,
            store,
            gate,
            needs: Needs::of(&super::routes()),
            metrics,
            clock,
            control,
            record_types,
            tls,
            analyses: Arc::new(Semaphore::new(ANALYSES_MAX)),
            queries: Arc::new(Semaphore::new(QUERIES_MAX)),
            heavy: Arc::new(Semaphore::new(1)),
            lists: Arc::new(Semaphore::new(1)),
            alone: Arc::new(Semaphore::new(alone_max)),
            block_bytes_max: block_bytes_max(memory::usable_bytes()),
            light_block_bytes_max: LIGHT_BLOCK_BYTES_MAX,
            answers,
            decoding,
            merges: Arc::new(Semaphore::new(MERGES_MAX)),
            decoders: Arc::default(),
            services: Arc::default(),
            permits,
            names,
            listing: Arc::default(),
        })
    }

    /// Lets a request wait for `heavy` or `lists`. An error when too many requests wait.
    pub(super) fn wait_alone(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        self.alone.clone().try_acquire_owned().map_err(|_| {
            let waiting = self.config.requests_max.div_ceil(2);
            ApiError::unavailable(
                format!("{waiting} requests that need much memory are waiting: retry later"),
                1,
            )
        })
    }

    pub(super) fn view(&self, access: &Access) -> View {
        View::new(self.store.clone(), access)
    }

    /// For a request that reads records without PromQL. Its reads count toward the token's limit on the records of a query.
    pub(super) fn bounded_view(&self, access: &Access) -> View {
        View::bounded(self.store.clone(), access)
    }

    pub(super) fn writer(&self, access: &Access) -> Writer {
        Writer::new(self.store.clone(), access.clone())
    }

    pub(super) const fn whole(&self, _: &Whole) -> &Arc<Store> {
        &self.store
    }

    /// Whether other machines can use the server without authentication, or their tokens can be read on the network.
    pub(super) fn is_exposed(&self) -> bool {
        self.config.is_exposed(self.gate.needs_tokens())
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let exposed = self.is_exposed().then(|| self.config.exposure(self.gate.needs_tokens()));
        exposed.into_iter().collect()
    }

    pub(super) fn ready(&self) -> tacho_store::Result<()> {
        self.store.ready()
    }

    #[cfg(test)]
    pub(super) const fn store_of_tests(&self) -> &Arc<Store> {
        &self.store
    }
}
