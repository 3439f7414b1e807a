//! Reads the execution blocks that a query needs.
//!
//! Path of one record: before, `crates/store/src/read/series.rs` returns it; after, `crates/query/src/executions/` computes with
//! it.

use std::sync::atomic::AtomicUsize;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use tacho_model::{Kind, Matcher, TimeRange, Timestamp, TraceId};
use tacho_query::executions::{self, SourceBlock, Trace};
use tacho_store::{ErrorKind, Read, Store};

use crate::http::error::ApiError;

/// Memory limit for the blocks of one query, bytes: some 30 million calls.
const BLOCK_BYTES_MAX: usize = 1 << 30;
/// Series read concurrently.
const READS_AT_ONCE: usize = 4;

const HOUR_NS: i64 = 3_600_000_000_000;

/// Selects blocks.
#[derive(Clone, Copy)]
pub enum Wanted<'a> {
    /// Blocks of one service, or of all services if it is `None`.
    Service(Option<&'a str>),
    /// Blocks with a part of one trace, of any service.
    Trace(TraceId),
    All,
}

impl Wanted<'_> {
    fn matchers(self) -> Vec<Matcher> {
        match self {
            Self::Service(Some(service)) => vec![Matcher::equal("service", service)],
            Self::Service(None) | Self::Trace(_) | Self::All => Vec::new(),
        }
    }

    const fn trace(self) -> Option<TraceId> {
        match self {
            Self::Trace(id) => Some(id),
            Self::Service(_) | Self::All => None,
        }
    }
}

pub async fn blocks(
    store: &Store,
    wanted: Wanted<'_>,
    range: TimeRange,
) -> Result<Read<Vec<SourceBlock>>, ApiError> {
    let room = &AtomicUsize::new(BLOCK_BYTES_MAX);
    let reads = store.find(Kind::Execution, &wanted.matchers()).into_iter().map(|(id, labels)| async move {
        let keep = |block: &_| wanted.trace().is_none_or(|trace| executions::holds(block, trace));
        let blocks = store.executions_within(id, range, room, keep).await.map_err(unreadable)?;
        Ok::<_, ApiError>((labels, blocks))
    });
    let mut reads = stream::iter(reads).buffered(READS_AT_ONCE);
    let mut all = Read { records: Vec::new(), damages: store.lacks(Kind::Execution) };
    while let Some((labels, read)) = reads.try_next().await? {
        let block = |block| SourceBlock { labels: labels.clone(), block };
        all.records.extend(read.records.into_iter().map(block));
        all.damages.extend(read.damages);
    }
    Ok(all)
}

fn unreadable(error: tacho_store::Error) -> ApiError {
    if error.kind() == ErrorKind::Limit {
        let message =
            format!("executions in this range take over {BLOCK_BYTES_MAX} bytes: narrow start and end");
        return ApiError::execution(message);
    }
    error.into()
}

/// Ranges in which to search for a trace of unknown time: the last hour, the last day, all of time.
pub fn widening(now: Timestamp) -> Vec<TimeRange> {
    let back = |hours: i64| TimeRange::new(now.saturating_sub(hours * HOUR_NS), i64::MAX);
    vec![back(1), back(24), TimeRange::ALL]
}

/// The range to read again when `found` begins so close to the start of `range` that a part may be before it.
pub fn around(found: &Trace, range: TimeRange) -> Option<TimeRange> {
    let start = found.start.saturating_sub(HOUR_NS);
    (start < range.start).then(|| TimeRange::new(start, range.end))
}
