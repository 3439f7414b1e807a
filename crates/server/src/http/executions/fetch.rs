//! Reads the execution blocks that a query needs.
//!
//! Path of one record: before, `crates/store/src/read/series.rs` returns it; after, `crates/query/src/executions/` computes with
//! it.

use std::sync::atomic::AtomicUsize;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use tacho_model::{Kind, Matcher, TimeRange, Timestamp, TraceId};
use tacho_query::executions::{self, SourceBlock, Trace};
use tacho_store::{Error, ErrorKind, Read};

use crate::access::View;
use crate::http::error::ApiError;

/// Memory limit for the blocks of one query, bytes: some 30 million calls. An analysis may take five times as much memory in
/// addition to the blocks.
const BLOCK_BYTES_MAX: usize = 1 << 30;
/// The blocks of one query take at most the usable memory divided by this number, but may always take [`LIGHT_BLOCK_BYTES_MAX`].
const BLOCK_MEMORY_SHARE: usize = 16;
/// Memory limit for the blocks of a query that runs at the same time as a heavy query, bytes.
pub const LIGHT_BLOCK_BYTES_MAX: usize = 64 << 20;
/// Number of series that are read concurrently.
const READS_AT_ONCE: usize = 4;

const HOUR_NS: i64 = 3_600_000_000_000;

/// Memory limit for the blocks of one query. `usable_bytes`: the memory that this process may use.
pub fn block_bytes_max(usable_bytes: Option<usize>) -> usize {
    let share = usable_bytes.map_or(BLOCK_BYTES_MAX, |all| all / BLOCK_MEMORY_SHARE);
    share.clamp(LIGHT_BLOCK_BYTES_MAX, BLOCK_BYTES_MAX)
}

/// Selects blocks.
#[derive(Clone, Copy)]
pub enum Wanted<'a> {
    /// Blocks of one service. `None`: of all services.
    Service(Option<&'a str>),
    /// Blocks of any service with a part of this trace.
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

/// Reads the selected blocks.
///
/// # Errors
/// `Limit` when the blocks have more than `bytes_max` bytes; other errors of the store.
pub async fn blocks(
    store: &View,
    wanted: Wanted<'_>,
    range: TimeRange,
    bytes_max: usize,
) -> Result<Read<Vec<SourceBlock>>, Error> {
    let room = &AtomicUsize::new(bytes_max);
    let reads = store.find(Kind::Execution, &wanted.matchers()).into_iter().map(|(id, labels)| async move {
        let keep = |block: &_| wanted.trace().is_none_or(|trace| executions::holds(block, trace));
        let blocks = store.executions_within(id, range, room, keep).await?;
        Ok::<_, Error>((labels, blocks))
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

pub fn unreadable(error: Error, bytes_max: usize) -> ApiError {
    if error.kind() == ErrorKind::Limit {
        let message = format!("executions in this range take over {bytes_max} bytes: narrow start and end");
        return ApiError::execution(message);
    }
    error.into()
}

/// The ranges in which a trace of unknown time is searched, one after the other: the last hour, the last day, all of time.
pub fn widening(now: Timestamp) -> Vec<TimeRange> {
    let back = |hours: i64| TimeRange::new(now.saturating_sub(hours * HOUR_NS), i64::MAX);
    vec![back(1), back(24), TimeRange::ALL]
}

/// The wider range to read if `found` begins less than an hour after the start of `range`, because other parts of the trace
/// may be before `range`.
pub fn around(found: &Trace, range: TimeRange) -> Option<TimeRange> {
    let start = found.start.saturating_sub(HOUR_NS);
    (start < range.start).then(|| TimeRange::new(start, range.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_on_blocks_is_a_share_of_the_usable_memory() {
        for (usable, expect) in [
            (None, BLOCK_BYTES_MAX),
            (Some(64 << 30), BLOCK_BYTES_MAX),
            (Some(4 << 30), 256 << 20),
            (Some(256 << 20), LIGHT_BLOCK_BYTES_MAX),
        ] {
            assert_eq!(block_bytes_max(usable), expect, "{usable:?}");
        }
    }
}
