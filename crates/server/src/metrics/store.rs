//! Metrics of the store.

use tacho_model::Kind;
use tacho_store::Stats;
use tacho_store::driver::Health;

use super::registry::{Collect, Counter, Family, Gauge};

/// Metrics of [`Stats`] and of the driver's [`Health`], updated when metrics are read.
pub struct StoreFigures {
    series: Family<Gauge, 1>,
    series_refused: Family<Counter, 0>,
    index_bytes: Family<Gauge, 0>,
    index_bytes_max: Family<Gauge, 0>,
    spellings: SpellingFigures,
    chunk_limit: ChunkLimitFigures,
    records: Family<Counter, 1>,
    samples_replaced: Family<Counter, 0>,
    stored_chunks: Family<Gauge, 1>,
    stored_bytes: Family<Gauge, 1>,
    stored_records: Family<Gauge, 1>,
    open_bytes: Family<Gauge, 0>,
    open_bytes_max: Family<Gauge, 0>,
    journal_bytes: Family<Gauge, 0>,
    journal_syncs: Family<Counter, 0>,
    journal_failures: Family<Counter, 0>,
    journal_damaged: Family<Counter, 0>,
    journals_quarantined: Family<Gauge, 0>,
    disk_full: Family<Gauge, 0>,
    clock_doubted: Family<Gauge, 0>,
    batches: Family<Counter, 1>,
    flushes: Family<Counter, 1>,
    chunks: Family<Counter, 0>,
    chunk_bytes: Family<Counter, 0>,
    chunks_unreadable: Family<Counter, 0>,
    sessions: Family<Gauge, 0>,
    session_gaps_forgotten: Family<Counter, 0>,
    storage: StorageFigures,
}

/// Metrics of series that the store finds by the text with which a sender names them (spellings).
struct SpellingFigures {
    known: Family<Gauge, 0>,
    bytes: Family<Gauge, 0>,
}

impl Default for SpellingFigures {
    fn default() -> Self {
        Self {
            known: Family::new(
                "tacho_index_spellings",
                [],
                "Series that the store finds by the text with which a sender names them, without making their labels.",
            ),
            bytes: Family::new(
                "tacho_index_spellings_bytes",
                [],
                "The part of tacho_index_bytes for the hashes of the texts that tacho_index_spellings counts.",
            ),
        }
    }
}

struct StorageFigures {
    damaged: Family<Gauge, 0>,
    places: Family<Gauge, 0>,
    bytes: Family<Gauge, 0>,
    quarantined: Family<Gauge, 0>,
    torn: Family<Gauge, 0>,
}

impl Default for StorageFigures {
    fn default() -> Self {
        Self {
            damaged: Family::new(
                "tacho_storage_files_damaged",
                [],
                "Damaged files of the driver that stay in use, because their other rows are readable.",
            ),
            places: Family::new(
                "tacho_storage_damaged_places",
                [],
                "Damaged places in the rows of damaged files of the driver.",
            ),
            bytes: Family::new("tacho_storage_damaged_bytes", [], "Bytes of damaged places."),
            quarantined: Family::new(
                "tacho_storage_files_quarantined",
                [],
                "Unreadable files and unreadable ends of files that were moved to quarantine/.",
            ),
            torn: Family::new(
                "tacho_storage_torn_bytes",
                [],
                "Bytes cut off the ends of segments at the last start.",
            ),
        }
    }
}

struct ChunkLimitFigures {
    max: Family<Gauge, 0>,
    refused: Family<Counter, 0>,
}

impl Default for ChunkLimitFigures {
    fn default() -> Self {
        Self {
            max: Family::new(
                "tacho_stored_chunks_max",
                [],
                "Limit on the sum of the chunks in the driver and the chunks that the records in memory will need.",
            ),
            refused: Family::new(
                "tacho_records_far_refused_total",
                [],
                "Records refused at the limit on chunks because their time is more than two days from now.",
            ),
        }
    }
}

impl Default for StoreFigures {
    fn default() -> Self {
        Self {
            series: Family::new("tacho_series", ["kind"], "Series known."),
            series_refused: Family::new("tacho_series_refused_total", [], "Refusals of series at a limit."),
            index_bytes: Family::new("tacho_index_bytes", [], "Memory of the index of series, with labels."),
            index_bytes_max: Family::new("tacho_index_bytes_max", [], "Memory limit of the index of series."),
            spellings: SpellingFigures::default(),
            chunk_limit: ChunkLimitFigures::default(),
            records: Family::new("tacho_records_stored_total", ["kind"], "Records stored."),
            samples_replaced: Family::new(
                "tacho_samples_replaced_total",
                [],
                "Samples that replaced an earlier sample of the same series and time in the same flush.",
            ),
            stored_chunks: Family::new("tacho_stored_chunks", ["kind"], "Chunks in the driver."),
            stored_bytes: Family::new("tacho_stored_bytes", ["kind"], "Bytes of chunks in the driver."),
            stored_records: Family::new("tacho_stored_records", ["kind"], "Records in chunks in the driver."),
            open_bytes: Family::new(
                "tacho_open_bytes",
                [],
                "Memory of records that are not in the driver yet.",
            ),
            open_bytes_max: Family::new("tacho_open_bytes_max", [], "Limit of tacho_open_bytes."),
            journal_bytes: Family::new("tacho_journal_bytes", [], "Bytes of all journal files."),
            journal_syncs: Family::new("tacho_journal_syncs_total", [], "Syncs of the journal to disk."),
            journal_failures: Family::new("tacho_journal_failures_total", [], "Journal writes that failed."),
            journal_damaged: Family::new(
                "tacho_journal_damaged_total",
                [],
                "Damaged places among the records of journals.",
            ),
            journals_quarantined: Family::new(
                "tacho_journals_quarantined",
                [],
                "Journal files in the journal's quarantine directory.",
            ),
            disk_full: Family::new(
                "tacho_disk_full",
                [],
                "1 while new records are refused because only the reserve of the disk is left.",
            ),
            clock_doubted: Family::new(
                "tacho_clock_doubted",
                [],
                "1 while the clock is so far ahead that retention does not use it.",
            ),
            batches: Family::new(
                "tacho_batches_total",
                ["outcome"],
                "Batches stored, repeated, or refused because the memory for records or the disk was full.",
            ),
            flushes: Family::new("tacho_flushes_total", ["outcome"], "Flushes, done or failed."),
            chunks: Family::new("tacho_chunks_written_total", [], "Chunks written to the driver."),
            chunk_bytes: Family::new("tacho_chunk_bytes_written_total", [], "Bytes of written chunks."),
            chunks_unreadable: Family::new(
                "tacho_chunks_unreadable_total",
                [],
                "Stored chunks found to be unreadable, each counted once.",
            ),
            sessions: Family::new("tacho_sessions", [], "Sessions of agents in the deduplication table."),
            session_gaps_forgotten: Family::new(
                "tacho_session_gaps_forgotten_total",
                [],
                "Forgotten gaps in the frame numbers of sessions. A late frame in such a gap counts as repeated.",
            ),
            storage: StorageFigures::default(),
        }
    }
}

impl StoreFigures {
    pub fn read(&self, stats: &Stats, health: &Health) {
        let storage = &self.storage;
        storage.damaged.with([]).set(signed(health.damaged.len()));
        storage.places.with([]).set(signed(health.damaged_places));
        storage.bytes.with([]).set(signed(health.damaged_bytes));
        storage.quarantined.with([]).set(signed(health.set_aside.len() + health.torn_ends.len()));
        storage.torn.with([]).set(signed(health.torn_bytes));
        for ((kind, series), records) in Kind::ALL.iter().zip(stats.series).zip(stats.records) {
            self.series.with([kind.name()]).set(signed(series));
            self.records.with([kind.name()]).raise_to(records);
        }
        for (kind, stored) in Kind::ALL.iter().zip(&stats.stored) {
            self.stored_chunks.with([kind.name()]).set(signed(stored.chunks));
            self.stored_bytes.with([kind.name()]).set(signed(stored.bytes));
            self.stored_records.with([kind.name()]).set(signed(stored.records));
        }
        self.series_refused.with([]).raise_to(stats.series_refused);
        self.index_bytes.with([]).set(signed(stats.index_bytes));
        self.index_bytes_max.with([]).set(signed(stats.index_bytes_max));
        self.spellings.known.with([]).set(signed(stats.spellings));
        self.spellings.bytes.with([]).set(signed(stats.spellings_bytes));
        self.chunk_limit.max.with([]).set(signed(stats.chunks_max));
        self.chunk_limit.refused.with([]).raise_to(stats.records_far_refused);
        self.samples_replaced.with([]).raise_to(stats.samples_replaced);
        self.open_bytes.with([]).set(signed(stats.open_bytes));
        self.open_bytes_max.with([]).set(signed(stats.open_bytes_max));
        self.journal_bytes.with([]).set(signed(stats.journal_bytes));
        self.journal_syncs.with([]).raise_to(stats.journal_syncs);
        self.journal_failures.with([]).raise_to(stats.journal_failures);
        self.journal_damaged.with([]).raise_to(stats.recovered_damaged);
        self.journals_quarantined.with([]).set(signed(stats.journals_quarantined));
        self.disk_full.with([]).set(i64::from(stats.disk_full));
        self.clock_doubted.with([]).set(i64::from(stats.clock_doubted));
        self.batches.with(["disk_full"]).raise_to(stats.batches_disk_full);
        self.batches.with(["stored"]).raise_to(stats.batches);
        self.batches.with(["repeated"]).raise_to(stats.batches_repeated);
        self.batches.with(["full"]).raise_to(stats.batches_full);
        self.session_gaps_forgotten.with([]).raise_to(stats.session_gaps_forgotten);
        self.flushes.with(["done"]).raise_to(stats.flushes);
        self.flushes.with(["failed"]).raise_to(stats.flush_failures);
        self.chunks.with([]).raise_to(stats.chunks_written);
        self.chunk_bytes.with([]).raise_to(stats.chunk_bytes_written);
        self.chunks_unreadable.with([]).raise_to(stats.chunks_unreadable);
        self.sessions.with([]).set(signed(stats.sessions));
    }

    pub fn families(&self) -> [&dyn Collect; 34] {
        [
            &self.series,
            &self.series_refused,
            &self.index_bytes,
            &self.index_bytes_max,
            &self.spellings.known,
            &self.spellings.bytes,
            &self.chunk_limit.max,
            &self.chunk_limit.refused,
            &self.records,
            &self.samples_replaced,
            &self.stored_chunks,
            &self.stored_bytes,
            &self.stored_records,
            &self.open_bytes,
            &self.open_bytes_max,
            &self.journal_bytes,
            &self.journal_syncs,
            &self.journal_failures,
            &self.journal_damaged,
            &self.journals_quarantined,
            &self.disk_full,
            &self.clock_doubted,
            &self.batches,
            &self.flushes,
            &self.chunks,
            &self.chunk_bytes,
            &self.chunks_unreadable,
            &self.sessions,
            &self.session_gaps_forgotten,
            &self.storage.damaged,
            &self.storage.places,
            &self.storage.bytes,
            &self.storage.quarantined,
            &self.storage.torn,
        ]
    }
}

fn signed(n: impl TryInto<i64>) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}
