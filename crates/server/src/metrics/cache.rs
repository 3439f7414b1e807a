//! Metrics of the cache of query results (`http/prometheus/cache`).

use super::registry::{Collect, Counter, Family, Gauge};

pub struct CacheFigures {
    pub requests: Family<Counter, 1>,
    pub not_kept: Family<Counter, 1>,
    pub evictions: Family<Counter, 0>,
    pub bytes: Family<Gauge, 0>,
    pub changes_joined: Family<Counter, 0>,
}

impl Default for CacheFigures {
    fn default() -> Self {
        Self {
            requests: Family::new(
                "tacho_query_cache_requests_total",
                ["result"],
                "Range queries by the steps found in the cache: hit (all), partial, miss (none), bypass (cache \
                 not used).",
            ),
            not_kept: Family::new(
                "tacho_query_cache_not_kept_total",
                ["reason"],
                "Range queries whose results were not kept: form (it is not known which samples they need), notes (unreadable or \
                 downsampled samples), size (more than a quarter of the cache).",
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
            changes_joined: Family::new(
                "tacho_query_cache_changes_joined_total",
                [],
                "Intervals of changed times that were joined, because their number is limited; a joined interval is \
                 longer, so more steps are computed again.",
            ),
        }
    }
}

impl CacheFigures {
    pub fn families(&self) -> [&dyn Collect; 5] {
        [&self.requests, &self.not_kept, &self.evictions, &self.bytes, &self.changes_joined]
    }
}
