//! Merges the parts of one series, from several chunks and from memory, into pieces that ascend and do not overlap.

use tacho_chunk::{Times, ValueColumn};
use tacho_model::{Sample, TimeRange, Timestamp, Value, ValueType};

use super::resent::{Moved, Place, Timed, recognise};
use crate::answer::Piece;
use crate::memtable::{Column, latest};

/// Samples of one chunk or one open column; at least one sample.
#[derive(Clone, Debug)]
pub struct Part {
    pub place: Place,
    pub times: Times,
    pub values: ValueColumn,
    /// `None` if the times are exact.
    pub moved: Option<Moved>,
}

impl Part {
    /// The part of an open column; `None` if the column is empty.
    pub fn of_column(place: Place, column: Column) -> Option<Self> {
        let times = Times::new(&column.at).filter(|times| !times.is_empty())?;
        Some(Self { place, times, values: column.values, moved: None })
    }

    pub fn len(&self) -> usize {
        self.times.len()
    }

    pub fn first(&self) -> Timestamp {
        self.times.first().unwrap_or(i64::MAX)
    }

    pub fn last(&self) -> Timestamp {
        self.times.last().unwrap_or(i64::MIN)
    }

    /// Divides the part at these ascending times. A sample at one of the times belongs to the result that ends
    /// there.
    pub fn divided(self, ends: &[Timestamp]) -> Vec<Self> {
        let mut parts = Vec::new();
        let mut place = 0;
        while let Some(first) = self.times.get(place) {
            let end = ends.get(ends.partition_point(|end| *end < first)).copied().unwrap_or(Timestamp::MAX);
            let places = place..self.times.slice(TimeRange::new(first, end)).end;
            place = places.end;
            let (times, values) = (self.times.part(places.clone()), self.values.clone().part(places));
            parts.push(Self { place: self.place, times, values, moved: self.moved });
        }
        parts
    }

    /// The part without the samples at the times that `hides` accepts; `None` if no sample is left.
    pub fn without(self, hides: impl Fn(Timestamp) -> bool) -> Option<Self> {
        if !self.times.iter().any(&hides) {
            return Some(self);
        }
        let (times, values) = {
            let kept = self.times.iter().zip(self.values.iter()).filter(|(at, _)| !hides(*at));
            let kept: Vec<Sample> = kept.map(|(at, value)| Sample { at, value }).collect();
            columns(&kept)?
        };
        Some(Self { times, values, ..self })
    }
}

/// Merges parts. Of samples with equal times, the sample in the part that was written last is kept.
pub fn merge(mut parts: Vec<Part>) -> Vec<Piece> {
    settle(&mut parts);
    parts.sort_by_key(Part::first);
    if parts.is_sorted_by(|a, b| a.last() < b.first()) {
        let piece = |part: Part| Piece::Samples { times: part.times, values: part.values };
        return parts.into_iter().map(piece).collect();
    }
    parts.sort_by_key(|part| part.place);
    let sample = |(at, value)| Sample { at, value };
    let all = parts.iter().flat_map(|part| part.times.iter().zip(part.values.iter())).map(sample).collect();
    let runs = latest(all);
    let runs = runs.chunk_by(|a, b| a.value.value_type() == b.value.value_type());
    let piece = |(times, values)| Piece::Samples { times, values };
    runs.filter_map(columns).map(piece).collect()
}

/// Finds resent copies of samples whose times a merge has moved. Each copy gets the moved time of its sample, and so replaces the
/// sample.
fn settle(parts: &mut [Part]) {
    if parts.len() < 2 || parts.iter().all(|part| part.moved.is_none()) {
        return;
    }
    let timed = parts.iter().map(|part| Timed { place: part.place, times: &part.times, moved: part.moved });
    let known = recognise(&timed.collect::<Vec<_>>());
    for (part, times) in parts.iter_mut().zip(known) {
        if let Some(times) = times {
            part.times = times;
        }
    }
}

/// Cuts pieces to a range. Summaries are already within the range.
pub fn within(pieces: Vec<Piece>, range: TimeRange) -> Vec<Piece> {
    let cut = |piece: Piece| match piece {
        Piece::Samples { times, values } => {
            let places = times.slice(range);
            let (times, values) = (times.part(places.clone()), values.part(places));
            (!times.is_empty()).then_some(Piece::Samples { times, values })
        }
        summary @ Piece::Summary(_) => Some(summary),
    };
    pieces.into_iter().filter_map(cut).collect()
}

/// Samples of one type, ordered by time; `None` if there are none.
fn columns(samples: &[Sample]) -> Option<(Times, ValueColumn)> {
    let value_type = samples.first()?.value.value_type();
    let at: Vec<Timestamp> = samples.iter().map(|sample| sample.at).collect();
    let values = samples.iter().map(|sample| sample.value);
    let values = match value_type {
        ValueType::F64 => ValueColumn::F64(values.map(Value::as_f64).collect()),
        ValueType::I64 => ValueColumn::I64(values.filter_map(as_i64).collect()),
        ValueType::U64 => ValueColumn::U64(values.filter_map(as_u64).collect()),
    };
    Some((Times::new(&at)?, values))
}

const fn as_i64(value: Value) -> Option<i64> {
    if let Value::I64(v) = value { Some(v) } else { None }
}

const fn as_u64(value: Value) -> Option<u64> {
    if let Value::U64(v) = value { Some(v) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(generation: u64, samples: &[(i64, Value)]) -> Part {
        let samples: Vec<Sample> =
            samples.iter().map(|(at, value)| Sample { at: *at, value: *value }).collect();
        let (times, values) = columns(&samples).unwrap();
        Part { place: (generation, 0), times, values, moved: None }
    }

    fn read(pieces: &[Piece]) -> Vec<Vec<(i64, Value)>> {
        pieces.iter().map(|piece| piece.samples().map(|s| (s.at, s.value)).collect()).collect()
    }

    #[test]
    fn parts_that_do_not_overlap_are_not_changed() {
        let f = Value::F64;
        let pieces = merge(vec![part(1, &[(5, f(1.0)), (6, f(2.0))]), part(2, &[(1, f(3.0)), (4, f(4.0))])]);
        assert_eq!(read(&pieces), [vec![(1, f(3.0)), (4, f(4.0))], vec![(5, f(1.0)), (6, f(2.0))]]);
        assert_eq!(read(&merge(Vec::new())), Vec::<Vec<_>>::new());
    }

    #[test]
    fn the_later_generation_wins_and_types_are_separate() {
        let (f, i) = (Value::F64, Value::I64);
        let parts = || {
            vec![
                part(3, &[(2, i(30))]),
                part(1, &[(1, f(1.0)), (2, f(1.5)), (3, f(2.0)), (4, f(2.5))]),
                part(2, &[(3, f(20.0)), (9, f(21.0))]),
            ]
        };
        let expect = [vec![(1, f(1.0))], vec![(2, i(30))], vec![(3, f(20.0)), (4, f(2.5)), (9, f(21.0))]];
        assert_eq!(read(&merge(parts())), expect);
        let mut turned = parts();
        turned.reverse();
        assert_eq!(read(&merge(turned)), expect);
    }

    #[test]
    fn masked_samples_are_omitted() {
        let whole = part(1, &[(1, Value::U64(1)), (2, Value::U64(2)), (3, Value::U64(3))]);
        let left = |part: Part, masked: std::ops::RangeInclusive<i64>| {
            part.without(|at| masked.contains(&at)).map(|part| part.times.to_vec())
        };
        assert_eq!(left(whole.clone(), 9..=9), Some(vec![1, 2, 3]));
        assert_eq!(left(whole.clone(), 2..=2), Some(vec![1, 3]));
        assert_eq!(left(whole, 0..=9), None);
    }
}
