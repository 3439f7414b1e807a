//! Sealed generations go into the driver, in order, until it has taken them.
//!
//! ```text
//!   cut a broken journal -> put series -> put chunks -> put sessions -> put "flushed"
//!     -> drop from memory -> delete journal
//! ```
//! A crash between any two steps is repaired by doing all of them again: keys follow from the records. A failing
//! step is repeated with growing waits; nothing is given up.
//!
//! Path of one record: before, `seal.rs` encoded its chunk; after, `Driver::put` has it, and `read.rs` finds it there.

use std::sync::Arc;

use tacho_model::{Kind, SeriesId};
use tokio::sync::watch;

use crate::commit::closed;
use crate::driver::Row;
use crate::generation::Generation;
use crate::group::row::series_row;
use crate::keys::{flushed_row, session_delete, session_row, stored_row};
use crate::layer::retry::Backoff;
use crate::shared::{Progress, Shared};
use crate::stats::Stored;
use crate::{Error, ErrorKind, Result};

/// Bytes of chunks in one `put`: bounds memory, and makes one sync worth while.
const PUT_BYTES: usize = 4 << 20;

/// Works until the store is dropped.
pub async fn run(shared: Arc<Shared>) {
    let _ended = Ended(shared.clone());
    let mut sealed: watch::Receiver<u64> = shared.sealed.subscribe();
    loop {
        sealed.borrow_and_update();
        while let Some(generation) = oldest_sealed(&shared) {
            flush(&shared, &generation).await;
        }
        if sealed.changed().await.is_err() {
            return;
        }
    }
}

/// Tells those who wait, however the task ends.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.progress.send_modify(|progress| progress.ended = true);
    }
}

fn oldest_sealed(shared: &Shared) -> Option<Arc<Generation>> {
    shared.generations.read().sealed.front().cloned()
}

async fn flush(shared: &Arc<Shared>, generation: &Arc<Generation>) {
    insist(shared, || cut_journal(shared, generation)).await;
    let series = generation.series();
    put_series(shared, &series).await;
    let stored = put_chunks(shared, generation, series).await;
    let number = generation.number;
    let sessions = generation.sessions.iter().map(|(id, seq)| session_row(*id, *seq, number));
    put(shared, sessions.collect()).await;
    put(shared, vec![flushed_row(number), stored_row(&stored)]).await;
    *shared.stored.write() = stored;
    forget(shared, generation).await;
}

/// Returns what lies in the driver with these.
async fn put_chunks(
    shared: &Shared,
    generation: &Arc<Generation>,
    series: Vec<(Kind, SeriesId)>,
) -> [Stored; 3] {
    let mut stored = *shared.stored.read();
    let mut left = series;
    while !left.is_empty() {
        let some = encode_some(generation.clone(), left).await;
        left = some.left;
        for (sum, new) in stored.iter_mut().zip(some.stored) {
            sum.chunks += new.chunks;
            sum.bytes += new.bytes;
            sum.records += new.records;
            shared.counters.chunks_written.add(new.chunks);
            shared.counters.chunk_bytes_written.add(new.bytes);
        }
        put(shared, some.rows).await;
    }
    stored
}

/// Chunks for one `put`.
struct Encoded {
    rows: Vec<Row>,
    stored: [Stored; 3],
    left: Vec<(Kind, SeriesId)>,
}

/// Encodes series until a `put` is full. Encoding takes long: not on the threads that serve others.
async fn encode_some(generation: Arc<Generation>, mut left: Vec<(Kind, SeriesId)>) -> Encoded {
    let work = tokio::task::spawn_blocking(move || {
        let (mut rows, mut stored, mut bytes) = (Vec::new(), [Stored::default(); 3], 0);
        while bytes < PUT_BYTES
            && let Some((kind, id)) = left.pop()
        {
            let sealed = generation.seal(kind, id);
            let stored = &mut stored[kind as usize - 1];
            stored.chunks += sealed.rows.len() as u64;
            stored.bytes += sealed.rows.iter().map(|row| row.value.len() as u64).sum::<u64>();
            stored.records += sealed.records;
            bytes += sealed.rows.iter().map(|row| row.value.len() + row.clustering.len()).sum::<usize>();
            rows.extend(sealed.rows);
        }
        Encoded { rows, stored, left }
    });
    match work.await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

async fn put_series(shared: &Shared, series: &[(Kind, SeriesId)]) {
    let new: Vec<(Kind, SeriesId, Row)> = {
        let index = shared.index.read();
        let unknown = series.iter().filter(|(kind, id)| !index.is_persisted(*kind, *id));
        let row = |(kind, id): &(Kind, SeriesId)| {
            index.labels(*id).map(|labels| (*kind, *id, series_row(*kind, *id, &[&**labels])))
        };
        unknown.filter_map(row).collect()
    };
    for some in new.chunks(10_000) {
        put(shared, some.iter().map(|(_, _, row)| row.clone()).collect()).await;
    }
    let mut index = shared.index.write();
    new.iter().for_each(|(kind, id, _)| index.set_persisted(*kind, *id));
}

async fn put(shared: &Shared, rows: Vec<Row>) {
    if !rows.is_empty() {
        insist(shared, || shared.driver.put(rows.clone())).await;
    }
}

/// Tries until it is done. Every failure is counted, told, and seen by those who wait for a flush.
async fn insist<F: Future<Output = Result<()>>>(shared: &Shared, mut step: impl FnMut() -> F) {
    let options = &shared.options;
    let mut backoff = Backoff::new(options.flush_wait_first, options.flush_wait_max, shared.id as u64);
    while let Err(error) = step().await {
        let wait = backoff.next_wait();
        tracing::error!(%error, wait_ms = wait.as_millis() as u64, "flush failed, records stay in the journal");
        shared.counters.flush_failures.add(1);
        shared.progress.send_modify(|progress| {
            progress.failures += 1;
            progress.last_failure = Some(error);
        });
        tokio::time::sleep(wait).await;
    }
}

/// A recovery must read exactly what is flushed here: no rest of a write that failed.
async fn cut_journal(shared: &Shared, generation: &Generation) -> Result<()> {
    let journal = &generation.journal;
    if !journal.cut {
        return Ok(());
    }
    shared
        .options
        .disk
        .cut(&journal.path, journal.length)
        .map_err(|e| Error::io("cut journal", &journal.path, e).with("length", journal.length))
}

/// From here on the generation is read from the driver.
async fn forget(shared: &Arc<Shared>, generation: &Generation) {
    shared.generations.write().sealed.pop_front();
    shared.budget.release(generation.bytes);
    shared.counters.flushes.add(1);
    let options = &shared.options;
    let expired =
        shared.sessions.write().expire(generation.number, options.session_age_max, options.sessions_max);
    if !expired.is_empty()
        && let Err(error) = shared.driver.delete(expired.into_iter().map(session_delete).collect()).await
    {
        tracing::warn!(%error, "expired sessions stay in the driver");
    }
    remove_journal(shared, generation);
    tracing::info!(
        generation = generation.number,
        series = generation.samples.len() + generation.entries.len() + generation.executions.len(),
        bytes = generation.bytes,
        "generation flushed"
    );
    shared.progress.send_modify(|progress| progress.flushed = generation.number);
}

/// A file that stays is no harm: the next start sees that its generation was flushed.
fn remove_journal(shared: &Shared, generation: &Generation) {
    let path = &generation.journal.path;
    let removed = if generation.journal.damaged {
        std::fs::rename(path, path.with_extension("damaged"))
    } else {
        shared.options.disk.remove(path)
    };
    let result = removed.and_then(|()| shared.options.disk.sync_directory(&shared.directory));
    if let Err(error) = result {
        tracing::warn!(path = %path.display(), %error, "journal of a flushed generation was not removed");
    }
}

/// Waits until all generations up to `through` are flushed; a failure on the way is reported and ends the wait.
pub async fn wait_for(shared: &Shared, through: u64) -> Result<()> {
    let mut progress = shared.progress.subscribe();
    let failures = progress.borrow().failures;
    let moved = |p: &Progress| p.flushed >= through || p.failures > failures || p.ended;
    let seen = progress.wait_for(moved).await.map_err(|_| closed())?;
    match &seen.last_failure {
        _ if seen.flushed >= through => Ok(()),
        Some(error) if seen.failures > failures => Err(error.clone()),
        _ => Err(Error::new(ErrorKind::Closed, "flusher has ended, records stay in the journal")),
    }
}
