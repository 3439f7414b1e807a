//! Reads the kept summaries of expired calls (`kept/mod.rs`).

use std::collections::BTreeSet;

use futures_util::TryStreamExt;
use tacho_chunk::CallSummary;
use tacho_model::{Kind, SeriesId, TimeRange, Timestamp};

use super::Reader;
use super::summaries::Summed;
use crate::Result;
use crate::damage::{Damage, Damages};
use crate::driver::Scanned;
use crate::kept::{KeptKey, Level, level_scan, summary};
use crate::rollup::{day_of, range_of};

/// Passes the kept summaries of a range to `accepts`: those of whole days that `accepts` takes, and of the other times those of
/// hours. An hour that the range cuts is passed, too. `expired` are the times of the expired calls with kept summaries. Returns
/// the damaged hours. A damaged day is replaced by its hours.
pub async fn kept(
    reader: &Reader,
    series: SeriesId,
    range: TimeRange,
    expired: TimeRange,
    accepts: impl Fn(Summed<'_>) -> bool,
) -> Result<Damages> {
    let mut damages = Damages::default();
    let past = TimeRange::new(range.start.max(expired.start), range.end.min(expired.end));
    if past.is_empty() {
        return Ok(damages);
    }
    let mut covered = BTreeSet::new();
    let mut days = reader.driver.scan(level_scan(series, Level::Day, past)).await?;
    while let Some(row) = days.try_next().await? {
        let Ok((key, summary)) = read(row).inspect_err(|(_, reason)| {
            tracing::warn!(%series, reason, "damaged kept summary of a day ignored: those of its hours are read");
        }) else {
            continue;
        };
        let times = key.range();
        let is_whole = range.contains(times.start) && range.contains(times.end);
        if is_whole && accepts(Summed { summary: &summary, expired: Some(times), is_only: false }) {
            covered.insert(day_of(times.start));
        }
        tokio::task::yield_now().await;
    }
    for gap in gaps(past, &covered) {
        let mut hours = reader.driver.scan(level_scan(series, Level::Hour, gap)).await?;
        while let Some(row) = hours.try_next().await? {
            match read(row) {
                Ok((key, summary)) => {
                    accepts(Summed { summary: &summary, expired: Some(key.range()), is_only: true });
                }
                Err((times, reason)) => damages.add(Damage {
                    kind: Kind::Execution,
                    labels: reader.labels_of(series),
                    range: times.unwrap_or(gap),
                    reason: reason.into(),
                }),
            }
            tokio::task::yield_now().await;
        }
    }
    Ok(damages)
}

/// The summary of a row. If it cannot be read: the times of its calls, if they are known, and the reason.
fn read(row: Scanned) -> Result<(KeptKey, CallSummary), (Option<TimeRange>, String)> {
    let (clustering, summary) = match row {
        Ok(row) => (row.clustering.clone(), summary(&row).map_err(|error| error.to_string())),
        Err(damaged) => (damaged.clustering, Err(damaged.reason.into())),
    };
    let key = KeptKey::decode(&clustering).map_err(|error| (None, error.to_string()))?;
    summary.map(|summary| (key, summary)).map_err(|reason| (Some(key.range()), reason))
}

/// The parts of a range outside of these days.
fn gaps(range: TimeRange, days: &BTreeSet<i64>) -> Vec<TimeRange> {
    let (mut gaps, mut from) = (Vec::new(), range.start);
    let mut add = |from: Timestamp, to: Timestamp| {
        let gap = TimeRange::new(from, to);
        gaps.extend((!gap.is_empty()).then_some(gap));
    };
    for day in days.iter().map(|day| range_of(*day)) {
        add(from, day.start.saturating_sub(1));
        from = day.end.saturating_add(1);
    }
    add(from, range.end);
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_outside_of_the_days() {
        let day = |day: i64| range_of(day).start;
        let gaps = |range, days: &[i64]| -> Vec<(i64, i64)> {
            let gaps = gaps(range, &days.iter().copied().collect());
            gaps.into_iter().map(|gap| (gap.start, gap.end)).collect()
        };
        let range = TimeRange::new(day(1) + 5, day(6) + 5);
        assert_eq!(gaps(range, &[]), [(day(1) + 5, day(6) + 5)]);
        let expect = [(day(1) + 5, day(2) - 1), (day(4), day(5) - 1), (day(6), day(6) + 5)];
        assert_eq!(gaps(range, &[2, 3, 5]), expect);
        assert_eq!(gaps(TimeRange::new(day(2), day(4) - 1), &[2, 3]), []);
    }
}
