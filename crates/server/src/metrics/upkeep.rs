//! Metrics of merges, deletions, retention and verification.

use std::time::Duration;

use tacho_store::UpkeepStats;

use super::registry::{Collect, Counter, Family, Gauge, Seconds};

/// The metric of one figure of [`UpkeepStats`], and the function that reads the figure.
type Total = (Family<Counter, 0>, fn(&UpkeepStats) -> u64);
type Now = (Family<Gauge, 0>, fn(&UpkeepStats) -> u64);

/// Updated when metrics are read.
pub struct UpkeepFigures {
    totals: Vec<Total>,
    busy: Family<Seconds, 0>,
    now: Vec<Now>,
}

fn total(name: &'static str, help: &'static str, read: fn(&UpkeepStats) -> u64) -> Total {
    (Family::new(name, [], help), read)
}

fn now(name: &'static str, help: &'static str, read: fn(&UpkeepStats) -> u64) -> Now {
    (Family::new(name, [], help), read)
}

impl Default for UpkeepFigures {
    fn default() -> Self {
        let totals: [Total; 17] = [
            total("tacho_merges_total", "Merges of chunks.", |s| s.merges),
            total("tacho_merge_chunks_in_total", "Chunks that merges replaced.", |s| s.chunks_in),
            total("tacho_merge_chunks_out_total", "Chunks that merges wrote.", |s| s.chunks_out),
            total("tacho_merge_read_bytes_total", "Bytes that merges read.", |s| s.bytes_read),
            total("tacho_merge_written_bytes_total", "Bytes that merges wrote.", |s| s.bytes_written),
            total("tacho_merge_records_in_total", "Records in chunks that merges replaced.", |s| {
                s.records_in
            }),
            total("tacho_merge_records_out_total", "Records in chunks that merges wrote.", |s| s.records_out),
            total(
                "tacho_merge_samples_replaced_total",
                "Samples that merges omitted because the same series has a sample of the same time that arrived later.",
                |s| s.samples_replaced,
            ),
            total("tacho_retention_chunks_total", "Chunks deleted by retention.", |s| s.chunks_expired),
            total(
                "tacho_merge_dead_rows_total",
                "Replaced rows that their merge did not delete, for example because of a crash, and that a later job deleted.",
                |s| s.rows_dead,
            ),
            total("tacho_deletions_total", "Deletions requested.", |s| s.deletions),
            total("tacho_deletions_done_total", "Deletions completed.", |s| s.deletions_done),
            total("tacho_series_forgotten_total", "Series removed from the index.", |s| s.series_forgotten),
            total("tacho_rollups_total", "Roll-ups of summaries of calls written.", |s| s.rollups),
            total(
                "tacho_summaries_kept_total",
                "Days whose calls were summed up before they expired, counted for each series.",
                |s| s.days_kept,
            ),
            total("tacho_merge_failures_total", "Failed merges; they are retried.", |s| s.failures),
            total(
                "tacho_verified_bytes_total",
                "Stored bytes verified by checksum in the background.",
                |s| s.verified_bytes,
            ),
        ];
        let now: [Now; 3] = [
            now("tacho_merge_fresh_chunks", "Chunks that were never merged.", |s| s.chunks_fresh),
            now("tacho_merge_debt_chunks", "Chunks that are due for a merge.", |s| s.chunks_due),
            now("tacho_tombstones", "Deletions not completed yet.", |s| s.tombstones),
        ];
        let busy = Family::new(
            "tacho_merge_busy_seconds_total",
            [],
            "Processor time of merges and of sweeps for deletions and retention.",
        );
        Self { totals: totals.into(), busy, now: now.into() }
    }
}

impl UpkeepFigures {
    pub fn read(&self, stats: &UpkeepStats) {
        self.totals.iter().for_each(|(family, read)| family.with([]).raise_to(read(stats)));
        self.busy.with([]).raise_to(Duration::from_nanos(stats.busy_ns));
        let set = |(family, read): &Now| family.with([]).set(i64::try_from(read(stats)).unwrap_or(i64::MAX));
        self.now.iter().for_each(set);
    }

    pub fn families(&self) -> impl Iterator<Item = &dyn Collect> {
        let totals = self.totals.iter().map(|(family, _)| family as &dyn Collect);
        let now = self.now.iter().map(|(family, _)| family as &dyn Collect);
        totals.chain([&self.busy as &dyn Collect]).chain(now)
    }
}
