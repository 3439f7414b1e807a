//! Helpers of several fuzz targets.

use std::path::Path;
use std::sync::Arc;

use peak_alloc::PeakAlloc;
use tacho_model::Clock;
use tacho_server::access::Gate;
use tacho_server::metrics::Metrics;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Runs `work` and asserts that it adds at most `bytes_max` bytes to the memory in use.
pub fn bounded<T>(bytes_max: usize, work: impl FnOnce() -> T) -> T {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let result = work();
    let needed = MEMORY.peak_usage().saturating_sub(before);
    assert!(needed <= bytes_max, "{needed} bytes of memory, at most {bytes_max} are expected");
    result
}

/// An empty directory, in memory if the system has such a file system.
pub fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary directory")
}

/// The bytes of a file, or nothing if there is no such file.
pub fn content(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_default()
}

/// The texts of the tokens in [`TOKENS_FILE`], and one that the file does not have.
pub const TOKENS: [&str; 5] = ["tacho_admin", "tacho_writer", "tacho_reader", "tacho_shop", "tacho_unknown"];

/// A file of tokens: all roles, a selector, and limits that do not depend on time.
pub const TOKENS_FILE: &str = r#"{ "version": 1, "tokens": [
    { "name": "admin", "sha256": "e4ce27f9d2b892bbf2e5e05976a827f0f01ae7967854145773fc7caee9f93f74",
      "roles": ["admin"], "limits": {}, "created": "2026-11-28T00:00:00Z" },
    { "name": "writer", "sha256": "66f73c3a81587bdd267a90995ec2141ee4910d5bf9ea96333ddbcc2f58ebe809",
      "roles": ["write"], "limits": { "series": 2, "sessions": 1 }, "created": "2026-11-28T00:00:00Z" },
    { "name": "reader", "sha256": "a40e5722413de8d80295538b0aeeb6eae5f0152c1c607efe9128be788fe3c833",
      "roles": ["read"], "limits": { "query_samples": 1 }, "created": "2026-11-28T00:00:00Z" },
    { "name": "shop", "sha256": "1c361446f983b3d750526960c99a7369dceec39ccf7b86c78423fd7fcbd26ed5",
      "roles": ["read", "write"], "match": "{service=\"shop\"}", "limits": {}, "created": "2026-11-28T00:00:00Z" }
] }"#;

/// The gate of a server with the data directory `data`, which gets the file of tokens if `has_tokens` is set.
pub fn gate(data: &Path, has_tokens: bool, metrics: Arc<Metrics>, clock: Arc<dyn Clock>) -> Arc<Gate> {
    if !has_tokens {
        return Gate::open(metrics, clock);
    }
    std::fs::write(data.join("tokens"), TOKENS_FILE).expect("the file of tokens is written");
    let gate = Gate::of(data, metrics, clock);
    assert_eq!(gate.standing(), "used", "the file of tokens cannot be used");
    gate
}

/// A runtime without worker threads.
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Bytes that a connection between a server and a client in this process can hold.
pub const CONNECTION_BYTES: usize = 1 << 12;

/// Sends these bytes to a server in pieces of `step` bytes, and ends the connection. Returns the bytes that the server sent.
pub async fn talk_to(server: impl Future, client: DuplexStream, sent: &[u8], step: usize) -> Vec<u8> {
    let (mut read, mut write) = tokio::io::split(client);
    let sending = async {
        for piece in sent.chunks(step) {
            // The server may have closed the connection.
            if write.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let _ = write.shutdown().await;
    };
    let mut answer = vec![];
    let reading = async { read.read_to_end(&mut answer).await };
    let ((), read, _) = tokio::join!(sending, reading, server);
    read.expect("the stream ends");
    answer
}

/// Reads an input from its front as numbers and byte strings, which control a target. After its end, numbers are 0, and byte
/// strings are shorter than requested.
pub struct Script<'a>(pub &'a [u8]);

impl<'a> Script<'a> {
    pub fn byte(&mut self) -> u8 {
        let Some((byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *byte
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number % end.max(1)
    }

    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
