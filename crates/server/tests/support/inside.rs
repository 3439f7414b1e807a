//! Runs the HTTP server inside the process of the test, on a given driver.
#![allow(dead_code, reason = "each test binary uses its own part of this module")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tacho_model::Clock;
use tacho_server::access::Gate;
use tacho_server::clock::SystemClock;
use tacho_server::config::{self, Settings};
use tacho_server::control::Control;
use tacho_server::http::{self, App};
use tacho_server::metrics::Metrics;
use tacho_server::record_types::RecordTypes;
use tacho_server::shutdown::{self, Trigger};
use tacho_store::{Driver, Options, Store};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// A running server, which stops when dropped.
pub struct Inside {
    pub http: SocketAddr,
    _runtime: Runtime,
    _trigger: Trigger,
    _directory: tempfile::TempDir,
}

impl Inside {
    pub fn start(driver: Arc<dyn Driver>, body_bytes_max: usize) -> Self {
        let settings = Settings { body_bytes_max: Some(body_bytes_max), ..Settings::default() };
        Self::start_with(driver, Options::default(), settings)
    }

    pub fn start_with(driver: Arc<dyn Driver>, options: Options, settings: Settings) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let data = directory.path().to_owned();
        let (trigger, shutdown) = shutdown::channel();
        let http = runtime.block_on(async move {
            let settings = Settings { data: Some(data.clone()), ..settings };
            let config = config::load(None, [], settings).unwrap();
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            let metrics = Arc::new(Metrics::default());
            let journal = data.join("journal");
            let store = Store::open(driver, &journal, options, clock.clone()).await.unwrap();
            let control = Arc::new(Control::open(&data, metrics.clone()).unwrap());
            let record_types = Arc::new(RecordTypes::open(&data));
            let gate = Gate::open(metrics.clone(), clock.clone());
            let app = App::new(config, store, metrics.clone(), clock, control, record_types, (None, gate));
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let at = listener.local_addr().unwrap();
            let bounds = (64, Duration::from_secs(60));
            tokio::spawn(http::serve((listener, None), http::router(app), bounds, metrics, shutdown));
            at
        });
        Self { http, _runtime: runtime, _trigger: trigger, _directory: directory }
    }
}
