//! Reads the kept summaries of expired calls (`kept/mod.rs`).

use std::collections::BTreeSet;

use futures_util::TryStreamExt;
use tacho_chunk::CallSummary;
use tacho_model::{Kind, SeriesId, TimeRange, Timestamp};

use super::Reader;
use super::summed::{Summed, SummedOf};
use crate::Result;
use crate::damage::{Damage, Damages};
use crate::driver::Scanned;
use crate::kept::{HOUR_NS, KeptKey, Level, deleted, level_scan, summary};
use crate::rollup::{day_of, range_of};

const SECOND_NS: i64 = 1_000_000_000;

/// Passes the kept summaries of a range to `accepts`: those of whole days that `accepts` takes, and of the other times those of
/// hours. An hour that the range cuts is passed, too, and the hour before the range. `expired` are the times of the expired calls
/// with kept summaries. Returns the damaged hours. A damaged day is replaced by its hours.
pub async fn kept(
    reader: &Reader,
    series: SeriesId,
    range: TimeRange,
    expired: TimeRange,
    accepts: impl Fn(Summed<'_>) -> bool,
) -> Result<Damages> {
    let mut damages = Damages::default();
    let start = range.start.saturating_sub(HOUR_NS).max(expired.start);
    let past = TimeRange::new(start, range.end.min(expired.end));
    if past.is_empty() {
        return Ok(damages);
    }
    let mut covered = BTreeSet::new();
    let mut days = reader.driver.scan(level_scan(series, Level::Day, past)).await?;
    while let Some(row) = days.try_next().await? {
        let Ok((key, summary, lacks_calls)) = read(row).inspect_err(|(_, reason)| {
            tracing::warn!(%series, reason, "damaged kept summary of a day ignored: those of its hours are read");
        }) else {
            continue;
        };
        let of = SummedOf::Day { lacks_calls };
        if !cuts(range, key.range()) && accepts(Summed { summary: &summary, of }) {
            covered.insert(day_of(key.start));
        }
        tokio::task::yield_now().await;
    }
    for gap in gaps(past, &covered) {
        let mut hours = reader.driver.scan(level_scan(series, Level::Hour, gap)).await?;
        while let Some(row) = hours.try_next().await? {
            match read(row) {
                Ok((key, summary, lacks_calls)) => {
                    if let Some(of) = hour(range, key.range(), lacks_calls) {
                        accepts(Summed { summary: &summary, of });
                    }
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

/// The number of hours with kept summaries that a deletion of this range removes.
pub async fn deleted_hours(reader: &Reader, series: SeriesId, range: TimeRange) -> Result<u64> {
    let scan = level_scan(series, Level::Hour, deleted(range));
    let mut hours = BTreeSet::new();
    let mut add = |clustering: &[u8]| hours.extend(KeptKey::decode(clustering).ok().map(|key| key.start));
    if reader.driver.keys_of(&scan, &mut add).await? {
        return Ok(hours.len() as u64);
    }
    let mut rows = reader.driver.scan(scan).await?;
    while let Some(row) = rows.try_next().await? {
        let clustering = row.map_or_else(|damaged| damaged.clustering, |row| row.clustering);
        hours.extend(KeptKey::decode(&clustering).ok().map(|key| key.start));
    }
    Ok(hours.len() as u64)
}

/// How a reader of a range uses an hour. `None` for an hour after the range: a range in whole seconds may end with the first
/// second of that hour, which it does not mean.
fn hour(range: TimeRange, hour: TimeRange, lacks_calls: bool) -> Option<SummedOf> {
    if hour.end < range.start {
        return Some(SummedOf::HourBefore);
    }
    let is_after = range.start < hour.start && range.end.saturating_sub(hour.start) < SECOND_NS;
    (!is_after).then(|| SummedOf::Hour { is_cut: cuts(range, hour), lacks_calls })
}

/// Whether the range has only a part of an hour or a day. A range in whole seconds may end up to a second before an hour.
const fn cuts(range: TimeRange, times: TimeRange) -> bool {
    !(range.contains(times.start) && range.contains(times.end.saturating_sub(SECOND_NS - 1)))
}

/// The summary of a row, and whether it lacks calls. If it cannot be read: the times of its calls, if known, and the reason.
fn read(row: Scanned) -> Result<(KeptKey, CallSummary, bool), (Option<TimeRange>, String)> {
    let (clustering, summary) = match row {
        Ok(row) => (row.clustering.clone(), summary(&row).map_err(|error| error.to_string())),
        Err(damaged) => (damaged.clustering, Err(damaged.reason.into())),
    };
    let key = KeptKey::decode(&clustering).map_err(|error| (None, error.to_string()))?;
    let read = summary.map(|(summary, lacks_calls)| (key, summary, lacks_calls));
    read.map_err(|reason| (Some(key.range()), reason))
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
    fn a_range_of_whole_seconds_does_not_cut_its_last_hour() {
        let hour = TimeRange::new(0, 3_600 * SECOND_NS - 1);
        for (start, end, is_cut) in [
            (0, 3_600 * SECOND_NS - 1, false),
            (0, 3_599 * SECOND_NS, false),
            (0, 3_599 * SECOND_NS - 1, true),
            (1, 3_600 * SECOND_NS, true),
        ] {
            assert_eq!(cuts(TimeRange::new(start, end), hour), is_cut, "{start} {end}");
        }
    }

    #[test]
    fn a_range_uses_the_hours_that_it_means() {
        let hour_at = |hour: i64| TimeRange::new(hour * HOUR_NS, (hour + 1) * HOUR_NS - 1);
        let used = |(start, end): (i64, i64)| -> Vec<Option<SummedOf>> {
            (0..4).map(|at| hour(TimeRange::new(start, end), hour_at(at), false)).collect()
        };
        let of = |is_cut| Some(SummedOf::Hour { is_cut, lacks_calls: false });
        let before = Some(SummedOf::HourBefore);
        assert_eq!(used((HOUR_NS, 2 * HOUR_NS))[..3], [before, of(false), None]);
        assert_eq!(used((HOUR_NS, 2 * HOUR_NS + SECOND_NS))[..3], [before, of(false), of(true)]);
        assert_eq!(used((HOUR_NS + 1, 3 * HOUR_NS - 1))[..3], [before, of(true), of(false)]);
        assert_eq!(used((HOUR_NS, HOUR_NS))[..2], [before, of(true)]);
    }

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
