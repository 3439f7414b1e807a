//! Encodes a [`Class`], columns with the same times, as chunks. If a chunk is not expected to grow any more, reduces the
//! precision of its exact values and times as rules permit.
//!
//! If exact values or times join a chunk that already has changed ones, they are reduced as well. Data that arrives in
//! pieces therefore becomes as small as data that arrives at once, and no error exceeds the limit of the rule.

use std::ops::Range;

use tacho_chunk::semantic;
use tacho_chunk::{Encoding, GroupColumn, Loss, ValueColumn, encode_group_by};
use tacho_model::{TimeRange, Timestamp};

use super::columns::{Class, Column, Moving, Shifted, holds, within};
use super::rows::{Cutting, Made, span_of};
use crate::group::resent::{Moved, Overhang};
use crate::keys::CHUNK_WIDE_SPAN_MAX_NS;

/// The chunks of a class. Each has about `cutting.records` times, and fewer if the times are far
/// apart.
pub fn encode(class: &Class, cutting: &Cutting) -> Vec<Made> {
    let mut rows = Vec::new();
    for cut in cuts(&class.at, cutting.records, &class.times) {
        let at = class.at.get(cut.clone()).unwrap_or_default();
        let Some(end) = at.last() else { continue };
        let known = Known { error: class.times.error_max(at), overhang: class.times.overhang(at) };
        let error = known.error;
        let all: Vec<&Column> = class.columns.iter().collect();
        let is_moved = error > 0 || all.iter().any(|column| !holds(&column.exact, &cut));
        let last = is_moved || cut.len() >= cutting.records / 3 * 2 || *end < cutting.settled_before;
        let (movable, fixed): (Vec<&Column>, Vec<&Column>) =
            all.iter().partition(|column| last && column.semantic.time > 0);
        match compacted(at, &movable, &class.times) {
            // The columns in `fixed` get a separate row, because their times must not change.
            Some((moved, more)) => {
                let more = Known { error: error.max(more), ..known };
                rows.push(row(&moved, more, &movable, cut.clone(), last));
                if !fixed.is_empty() {
                    rows.push(row(at, known, &fixed, cut, last));
                }
            }
            None => rows.push(row(at, known, &all, cut, last)),
        }
    }
    rows
}

impl Moving {
    fn error_max(&self, at: &[Timestamp]) -> u64 {
        let [Some(first), Some(last)] = [at.first(), at.last()] else { return 0 };
        let here = self.rows().filter(|moved| moved.range.start <= *last && *first <= moved.range.end);
        // A moved row counts only if one of the times is in its range. The row may have the values of
        // other types or series, and `at` may then have times only before and after the row.
        let holds = |moved: &&Moved| {
            at.partition_point(|at| *at < moved.range.start) < at.partition_point(|at| *at <= moved.range.end)
        };
        here.filter(holds).map(|moved| moved.error).max().unwrap_or(0)
    }

    fn rows(&self) -> impl Iterator<Item = &Moved> {
        self.moved.iter().map(|moved| &moved.row)
    }

    /// How far the originals of the first and the last time may be outside of these times.
    fn overhang(&self, at: &[Timestamp]) -> Overhang {
        let of = |at: Timestamp| self.moved.iter().find(|moved| moved.has(at));
        let before = |at: Timestamp| {
            let Shifted { row, times } = of(at)?;
            let place = times.slice(TimeRange::new(Timestamp::MIN, at.checked_sub(1)?)).end;
            let beside = place.checked_sub(1).and_then(|place| times.get(place));
            Some(beside.map_or(row.overhang.before, |beside| Overhang::beside(at, beside, row.error)))
        };
        let after = |at: Timestamp| {
            let Shifted { row, times } = of(at)?;
            let beside = times.get(times.slice(TimeRange::new(Timestamp::MIN, at)).end);
            Some(beside.map_or(row.overhang.after, |beside| Overhang::beside(at, beside, row.error)))
        };
        Overhang {
            before: at.first().and_then(|at| before(*at)).unwrap_or(0),
            after: at.last().and_then(|at| after(*at)).unwrap_or(0),
        }
    }

    /// Moves a cut at `place` out of a row with moved times, to the nearer end of the row. If the chunk would then cover too
    /// long a time, moves the cut to the start of the row. The start is used only if it is above `after`.
    fn whole(&self, at: &[Timestamp], place: usize, after: usize) -> usize {
        let Some([before, next]) =
            place.checked_sub(1).and_then(|before| Some([*at.get(before)?, *at.get(place)?]))
        else {
            return place;
        };
        let Some(moved) = self.rows().find(|moved| moved.range.start <= before && next <= moved.range.end)
        else {
            return place;
        };
        let start = at.partition_point(|at| *at < moved.range.start);
        let end = at.partition_point(|at| *at <= moved.range.end);
        let first = start > after && (place - start < end - place || self.is_long(at, after, end));
        if first { start } else { end }
    }

    /// Whether a chunk of the times from `from` to `end` would cover too long a time.
    fn is_long(&self, at: &[Timestamp], from: usize, end: usize) -> bool {
        let [Some(first), Some(last)] = [at.get(from), end.checked_sub(1).and_then(|last| at.get(last))]
        else {
            return false;
        };
        last.abs_diff(*first) > CHUNK_WIDE_SPAN_MAX_NS
    }

    /// Index ranges of exact times.
    fn exact(&self, at: &[Timestamp]) -> Vec<Range<usize>> {
        let mut exact = Vec::new();
        let mut from = 0;
        for moved in self.rows() {
            let start = at.partition_point(|at| *at < moved.range.start);
            exact.push(from..start.max(from));
            from = from.max(at.partition_point(|at| *at <= moved.range.end));
        }
        exact.push(from..at.len());
        exact.retain(|places| !places.is_empty());
        exact
    }
}

#[derive(Clone, Copy)]
struct Known {
    error: u64,
    overhang: Overhang,
}

/// Makes a row from a part of some columns. `at` are the times of the part. If `last` is true, the chunk is
/// not expected to grow any more, and its exact values are reduced.
fn row(at: &[Timestamp], times_known: Known, columns: &[&Column], cut: Range<usize>, last: bool) -> Made {
    let part = |column: &&Column| {
        let values = column.values.copy_of(cut.clone());
        let before = match holds(&column.exact, &cut) {
            true => column.loss.and_then(Loss::of_aggregation),
            false => column.loss,
        };
        let (values, loss) = if last { simplified(values, before, column, &cut) } else { (values, before) };
        (column.member, values, loss)
    };
    let parts: Vec<_> = columns.iter().map(part).collect();
    let made: Vec<GroupColumn<'_>> = parts
        .iter()
        .map(|(member, values, loss)| GroupColumn {
            member: *member,
            values: values.as_values(),
            loss: *loss,
        })
        .collect();
    let of = |n: usize| columns.get(n).map_or_else(Encoding::thorough, |column| column.encoding);
    // All columns share the times, so a codec rule applies to the times only if it applies to all
    // columns.
    let agreed = columns.iter().all(|column| column.encoding == of(0));
    let times = if agreed { of(0) } else { Encoding::thorough() };
    let chunk = encode_group_by(at, times_known.error, &made, &times, of);
    let [start, end] = [at.first(), at.last()].map(|at| at.copied().unwrap_or_default());
    Made {
        span: span_of(start, end),
        start,
        overhang: times_known.overhang,
        generation: 0,
        rest_of: None,
        records: (at.len() * columns.len()) as u64,
        chunk: chunk.into(),
    }
}

/// Moves exact times as far as all columns permit. The first and last time of a run stay exact, so that chunks do not
/// start to overlap. `None` if no time moves.
fn compacted(at: &[Timestamp], columns: &[&Column], times: &Moving) -> Option<(Vec<Timestamp>, u64)> {
    let bound = columns.iter().map(|column| column.semantic.time).min().filter(|_| !times.stays)?;
    let (mut all, mut error_max) = (at.to_vec(), 0);
    for places in times.exact(at) {
        let (moved, error) = semantic::compact_times(at.get(places.clone())?, bound);
        all.get_mut(places)?.copy_from_slice(&moved);
        error_max = error_max.max(error);
    }
    (error_max > 0 && all.is_sorted_by(|a, b| a < b)).then_some((all, error_max))
}

/// Reduces the exact values of a cut as far as their rule permits. `before` is the loss of the other values.
fn simplified(
    values: ValueColumn,
    before: Option<Loss>,
    column: &Column,
    cut: &Range<usize>,
) -> (ValueColumn, Option<Loss>) {
    let exact = within(&column.exact, cut);
    let Some(tolerance) = column.semantic.value.filter(|_| !exact.is_empty()) else {
        return (values, before);
    };
    match semantic::simplify(values.as_values(), &exact, column.semantic.method, tolerance) {
        Ok((moved, loss)) => {
            let loss = Loss { aggregation: before.and_then(|loss| loss.aggregation), ..loss };
            match before.filter(|before| before.method.is_some()) {
                None => (moved, Some(loss)),
                // If the two losses cannot be stated together (one is absolute, the other
                // relative), the values stay unchanged.
                Some(before) => before.cover(loss).map_or((values, Some(before)), |both| (moved, Some(both))),
            }
        }
        Err(_) => (values, before),
    }
}

/// The parts between cuts. Each stretch of times that a wide chunk may cover is divided into parts of about equal size.
/// A row with moved times is not cut, because only its first and last time are exact.
fn cuts(at: &[Timestamp], records: usize, times: &Moving) -> Vec<Range<usize>> {
    let mut cuts: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    while let Some(rest @ [first, ..]) = at.get(from..) {
        let reach = first.saturating_add_unsigned(CHUNK_WIDE_SPAN_MAX_NS);
        let stretch = rest.partition_point(|at| *at <= reach);
        let parts = ((stretch + records / 2) / records.max(1)).max(1);
        let mut ends: Vec<usize> =
            (1..=parts).map(|n| times.whole(at, from + stretch * n / parts, from)).collect();
        // A row with moved times may reach over the end of the stretch. The rest of the times then starts another
        // stretch.
        ends.dedup();
        for end in ends {
            cuts.push(from..end);
            from = end;
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_even_and_not_too_long() {
        let lengths = |at: &[i64], records| {
            cuts(at, records, &Moving::default()).into_iter().map(|c| c.len()).collect::<Vec<_>>()
        };
        let at: Vec<i64> = (0..100).collect();
        assert_eq!(lengths(&at, 100), [100]);
        assert_eq!(lengths(&at, 70), [100]);
        assert_eq!(lengths(&at, 66), [50, 50]);
        assert_eq!(lengths(&at, 30), [33, 33, 34]);
        assert_eq!(lengths(&at, 1_000), [100]);
        assert_eq!(lengths(&[], 10), [] as [usize; 0]);
        let wide = CHUNK_WIDE_SPAN_MAX_NS.cast_signed();
        assert_eq!(lengths(&[0, wide, wide + 1, i64::MAX], 10), [2, 1, 1]);
        assert_eq!(lengths(&[i64::MIN, i64::MAX], 10), [1, 1]);
    }
}
