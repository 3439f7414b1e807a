//! Metrics of the cache of query results (`http/prometheus/cache`).

use super::registry::{Collect, Counter, Family, Gauge};

pub struct CacheFigures {
    /// Range queries by the use of the cache.
    pub requests: Family<Counter, 1>,
    /// Queries whose results were removed to make room.
    pub evictions: Family<Counter, 0>,
    /// Memory of the results.
    pub bytes: Family<Gauge, 0>,
}

impl Default for CacheFigures {
    fn default() -> Self {
        Self {
            requests: Family::new(
                "tacho_query_cache_requests_total",
                ["result"],
                "Range queries by the steps found in the cache: hit (all), partial, miss (none), bypass (not looked for).",
            ),
            evictions: Family::new(
                "tacho_query_cache_evictions_total",
                [],
                "Queries whose results were removed from the cache to make room for others.",
            ),
            bytes: Family::new(
                "tacho_query_cache_bytes",
                [],
                "Memory of the results of range queries that are kept.",
            ),
        }
    }
}

impl CacheFigures {
    pub fn families(&self) -> [&dyn Collect; 3] {
        [&self.requests, &self.evictions, &self.bytes]
    }
}
