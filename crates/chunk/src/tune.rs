//! Which settings suit these samples: values per chunk, codecs, compression, tolerance?
//!
//! Pure functions that encode and decode training data with a [`Candidate`], and choose a candidate by its costs, which the
//! caller measures. The idea is the commissioning of Chronix (Lautenschlager et al., "Chronix: Long Term Storage and Retrieval
//! Technology for Anomaly Detection in Operational Data", FAST 2017, section 4), which chooses chunk size and compression
//! together, based on the user's own data and queries.

use std::ops::Range;

use tacho_model::{TimeRange, Timestamp, Value};

use crate::limits::GROUP_MEMBERS_MAX;
use crate::semantic::{self, Movement, Semantic, SemanticError};
use crate::{Chunk, Encoding, Error, GroupColumn, Times, ValueColumn, encode_group};

/// Series with the same times, which share chunks.
#[derive(Clone, Debug)]
pub struct TrainingGroup {
    /// Strictly ascending times.
    pub at: Vec<Timestamp>,
    /// At most [`GROUP_MEMBERS_MAX`] columns. Each has one value per time.
    pub columns: Vec<ValueColumn>,
}

/// One set of encoder settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Values per series in a chunk.
    pub values: usize,
    pub encoding: Encoding,
    pub semantic: Semantic,
}

/// A chunk, its time range, and the columns of its group that it contains.
#[derive(Clone, Debug)]
pub struct EncodedChunk {
    pub range: TimeRange,
    /// Indexes into [`TrainingGroup::columns`] of the chunk's members 0, 1, ...
    pub columns: Vec<usize>,
    pub bytes: Vec<u8>,
}

/// All chunks of one group, ordered by time.
#[derive(Clone, Debug, Default)]
pub struct EncodedGroup {
    pub chunks: Vec<EncodedChunk>,
    /// Upper bound of the difference between a stored value and the recorded (or aggregated) value.
    pub value_error_max: f64,
    /// Largest difference between a stored time and the recorded time (or the time of the aggregate), ns.
    pub time_error_max: u64,
}

impl TrainingGroup {
    /// Values of all columns.
    pub fn values(&self) -> usize {
        self.at.len() * self.columns.len()
    }
}

impl EncodedGroup {
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.bytes.len()).sum()
    }

    /// For each of `columns`: its samples in the chunks that overlap the range, one piece per chunk. Decodes the times of each
    /// chunk only once, like the store.
    ///
    /// # Errors
    /// If a chunk cannot be decoded, which would be a bug.
    pub fn read(&self, columns: &[usize], range: TimeRange) -> Result<Vec<Pieces>, Error> {
        let mut out = vec![Pieces::new(); columns.len()];
        for chunk in self.chunks.iter().filter(|chunk| chunk.range.overlaps(&range)) {
            let opened = Chunk::open(&chunk.bytes)?;
            let mut times = None;
            for (column, pieces) in columns.iter().zip(&mut out) {
                let Some(member) = chunk.columns.iter().position(|other| other == column) else { continue };
                if let Some(values) = opened.values(u16::try_from(member).unwrap_or(u16::MAX))? {
                    let times: Times = match &times {
                        Some(times) => Times::clone(times),
                        None => times.insert(opened.times()?).clone(),
                    };
                    pieces.push((times, values));
                }
            }
        }
        Ok(out)
    }
}

/// Samples of one series, one piece per chunk.
pub type Pieces = Vec<(Times, ValueColumn)>;

/// Encodes a group with the settings of a candidate.
///
/// # Errors
/// If the settings in `semantic` are invalid or, when they permit a loss, if the times are not strictly ascending.
pub fn encode(group: &TrainingGroup, candidate: &Candidate) -> Result<EncodedGroup, SemanticError> {
    let mut out = EncodedGroup::default();
    let lives: Vec<Movement> = match candidate.semantic.value {
        Some(_) => group.columns.iter().map(|column| Movement::of(column.as_values())).collect(),
        None => vec![Movement::default(); group.columns.len()],
    };
    let mut from = 0;
    while from < group.at.len() {
        let part = from..group.at.len().min(from + candidate.values.max(1));
        from = part.end;
        let at = group.at.get(part.clone()).unwrap_or_default();
        let columns: Vec<ValueColumn> =
            group.columns.iter().map(|column| cut(column, part.clone())).collect();
        match candidate.semantic.is_lossless() {
            true => {
                put(&mut out, at, 0, columns.into_iter().map(|column| (column, None)).collect(), candidate)
            }
            false => lossy(&mut out, at, &columns, &lives, candidate)?,
        }
    }
    Ok(out)
}

fn cut(column: &ValueColumn, part: Range<usize>) -> ValueColumn {
    match column {
        ValueColumn::F64(values) => ValueColumn::F64(values.get(part).unwrap_or_default().to_vec()),
        ValueColumn::I64(values) => ValueColumn::I64(values.get(part).unwrap_or_default().to_vec()),
        ValueColumn::U64(values) => ValueColumn::U64(values.get(part).unwrap_or_default().to_vec()),
    }
}

/// Applies the permitted loss. The resulting times depend only on the original times, so all columns share them.
fn lossy(
    out: &mut EncodedGroup,
    at: &[Timestamp],
    columns: &[ValueColumn],
    lives: &[Movement],
    candidate: &Candidate,
) -> Result<(), SemanticError> {
    let mut shared: Option<(Vec<Timestamp>, u64)> = None;
    let mut written = Vec::with_capacity(columns.len());
    for (column, life) in columns.iter().zip(lives) {
        let reduced = semantic::apply(at, column.as_values(), &candidate.semantic, life)?;
        if let Some(loss) = reduced.loss {
            out.value_error_max = out.value_error_max.max(match loss.bound {
                crate::Tolerance::Absolute(_) => loss.achieved,
                crate::Tolerance::Relative(_) => loss.achieved * largest(column),
            });
        }
        out.time_error_max = out.time_error_max.max(reduced.time_error_max);
        shared.get_or_insert((reduced.at, reduced.time_error_max));
        written.push((reduced.values, reduced.loss));
    }
    if let Some((at, time_error_max)) = shared {
        put(out, &at, time_error_max, written, candidate);
    }
    Ok(())
}

fn largest(column: &ValueColumn) -> f64 {
    column
        .iter()
        .map(Value::as_f64)
        .filter(|value| value.is_finite())
        .fold(0.0, |most: f64, v| most.max(v.abs()))
}

fn put(
    out: &mut EncodedGroup,
    at: &[Timestamp],
    time_error_max: u64,
    columns: Vec<(ValueColumn, Option<crate::Loss>)>,
    candidate: &Candidate,
) {
    let (Some(first), Some(last)) = (at.first(), at.last()) else { return };
    let range = TimeRange::new(*first, *last);
    for (nth, members) in columns.chunks(GROUP_MEMBERS_MAX).enumerate() {
        let written: Vec<GroupColumn<'_>> = (0u16..)
            .zip(members)
            .map(|(member, (values, loss))| GroupColumn { member, values: values.as_values(), loss: *loss })
            .collect();
        let bytes = encode_group(at, time_error_max, &written, &candidate.encoding);
        let begin = nth * GROUP_MEMBERS_MAX;
        out.chunks.push(EncodedChunk { range, columns: (begin..begin + members.len()).collect(), bytes });
    }
}

/// Measured cost of a candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Bytes per value of the training data.
    pub bytes: f64,
    /// Write time per value, ns.
    pub write: f64,
    /// Average read time of the caller's queries, ns.
    pub read: f64,
}

/// Weights of read time and write time; space has the weight 1. A score is a product of costs. Each cost is divided by the
/// lowest cost of all candidates and raised to the power of its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    pub read: f64,
    pub write: f64,
}

impl Weights {
    /// Half the space justifies twice the read time. Writing has a low weight, because it is rare and in the background.
    pub const BALANCED: Self = Self { read: 1.0, write: 0.1 };
    pub const SPACE: Self = Self { read: 0.2, write: 0.02 };
    pub const SPEED: Self = Self { read: 4.0, write: 0.4 };
}

/// Indexes of the candidates on the Pareto front of space and read time, ordered by increasing space.
pub fn front(costs: &[Cost]) -> Vec<usize> {
    let mut order: Vec<(usize, &Cost)> = costs.iter().enumerate().collect();
    order.sort_by(|(_, a), (_, b)| a.bytes.total_cmp(&b.bytes).then(a.read.total_cmp(&b.read)));
    let mut fastest = f64::INFINITY;
    order.retain(|(_, cost)| {
        let better = cost.read < fastest;
        fastest = fastest.min(cost.read);
        better
    });
    order.into_iter().map(|(position, _)| position).collect()
}

/// Index of the candidate with the smallest score ([`Weights`]). `None` without candidates.
pub fn recommend(costs: &[Cost], weights: Weights) -> Option<usize> {
    let all = scores(costs, weights).into_iter().enumerate();
    all.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(position, _)| position)
}

/// Relative difference up to which sizes count as equal.
const SAME_BYTES: f64 = 0.01;

/// Index of the smallest candidate. Of candidates with equal sizes, prefers `usual`, then the fastest to read.
pub fn smallest(costs: &[Cost], usual: Option<usize>) -> Option<usize> {
    let least = costs.iter().map(|cost| cost.bytes).min_by(f64::total_cmp)?;
    let is_small = |cost: &Cost| cost.bytes <= least * (1.0 + SAME_BYTES);
    let fastest = || {
        let small = costs.iter().enumerate().filter(|(_, cost)| is_small(cost));
        small.min_by(|a, b| a.1.read.total_cmp(&b.1.read)).map(|(position, _)| position)
    };
    usual.filter(|usual| costs.get(*usual).is_some_and(is_small)).or_else(fastest)
}

/// Like [`recommend`], but keeps `usual` unless another candidate is clearly better: its score is smaller by a fifth (time
/// measurements are not exact), or it takes over 1 % less space and is not slower to read.
pub fn recommend_over(costs: &[Cost], weights: Weights, usual: usize) -> Option<usize> {
    let scores = scores(costs, weights);
    let best = recommend(costs, weights)?;
    let beats =
        |of: &Cost, other: &Cost| of.bytes < other.bytes * (1.0 - SAME_BYTES) && of.read <= other.read;
    let Some(stands) = costs.get(usual) else { return Some(best) };
    let better = costs.iter().zip(&scores).enumerate().filter(|(_, (cost, _))| beats(cost, stands));
    if let Some((better, _)) = better.min_by(|(_, (_, a)), (_, (_, b))| a.total_cmp(b)) {
        return Some(better);
    }
    let gain = scores.get(usual).zip(scores.get(best)).map(|(usual, best)| (best - usual).exp());
    Some(if gain.is_some_and(|gain| gain > 0.8) { usual } else { best })
}

/// Logarithms of the scores.
fn scores(costs: &[Cost], weights: Weights) -> Vec<f64> {
    let least =
        |of: fn(&Cost) -> f64| costs.iter().map(of).fold(f64::INFINITY, f64::min).max(f64::MIN_POSITIVE);
    let (bytes, write, read) = (least(|c| c.bytes), least(|c| c.write), least(|c| c.read));
    let ratio = |cost: f64, best: f64| (cost / best).max(f64::MIN_POSITIVE).ln();
    let score = |cost: &Cost| {
        ratio(cost.bytes, bytes)
            + weights.read * ratio(cost.read, read)
            + weights.write * ratio(cost.write, write)
    };
    costs.iter().map(score).collect()
}

/// Groups series with equal times, in the given order, with at most [`GROUP_MEMBERS_MAX`] per group. Also returns the
/// indexes of each group's series. Omits a series that is empty, has times that are not strictly ascending, or has
/// different numbers of times and values.
pub fn group(series: Vec<(Vec<Timestamp>, ValueColumn)>) -> Vec<(TrainingGroup, Vec<usize>)> {
    let mut out: Vec<(TrainingGroup, Vec<usize>)> = Vec::new();
    for (position, (at, column)) in series.into_iter().enumerate() {
        let length = column.as_values().len();
        if at.is_empty() || at.len() != length || !at.is_sorted_by(|a, b| a < b) {
            continue;
        }
        let found =
            out.iter_mut().rev().find(|(group, _)| group.columns.len() < GROUP_MEMBERS_MAX && group.at == at);
        match found {
            Some((group, positions)) => {
                group.columns.push(column);
                positions.push(position);
            }
            None => out.push((TrainingGroup { at, columns: vec![column] }, vec![position])),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compression, Method, Tolerance};

    fn training() -> TrainingGroup {
        let at: Vec<Timestamp> = (0..1_000).map(|n| n * 1_000_000_000 + n % 3).collect();
        let wave = (0..1_000).map(|n| (f64::from(n) / 50.0).sin()).collect();
        let count = (0..1_000).map(|n| n * 7 % 13).collect();
        TrainingGroup { at, columns: vec![ValueColumn::F64(wave), ValueColumn::I64(count)] }
    }

    fn candidate(values: usize, compression: Compression) -> Candidate {
        let encoding = Encoding { compression, ..Encoding::thorough() };
        Candidate { values, encoding, semantic: Semantic::default() }
    }

    #[test]
    fn chunks_that_overlap_the_range_are_decoded_as_encoded() {
        let group = training();
        for compression in Compression::ALL {
            let encoded = encode(&group, &candidate(300, compression)).unwrap();
            assert_eq!(encoded.chunks.len(), 4);
            for (column, expect) in group.columns.iter().enumerate() {
                let pieces = encoded.read(&[column], TimeRange::ALL).unwrap().remove(0);
                let at: Vec<Timestamp> = pieces.iter().flat_map(|(at, _)| at.to_vec()).collect();
                let words: Vec<u64> = pieces.iter().flat_map(|(_, v)| v.as_values().words()).collect();
                assert_eq!((at, words), (group.at.clone(), expect.as_values().words()), "{compression:?}");
            }
            let some = encoded.read(&[1, 0], TimeRange::new(0, 1)).unwrap();
            assert_eq!(
                [some[0].len(), some[1].len()],
                [1, 1],
                "only the chunk that overlaps the range may be read"
            );
        }
    }

    #[test]
    fn a_tolerance_saves_space_and_is_respected() {
        let group = training();
        let lossless = candidate(1_000, Compression::Auto);
        let value = Some(Tolerance::Absolute(0.01));
        let lossy = Candidate {
            semantic: Semantic { value, time: 5, method: Method::Linear, ..Semantic::default() },
            ..lossless.clone()
        };
        let (exact, reduced) = (encode(&group, &lossless).unwrap(), encode(&group, &lossy).unwrap());
        assert!(reduced.bytes() * 2 < exact.bytes(), "{} {}", reduced.bytes(), exact.bytes());
        assert_eq!((exact.value_error_max, exact.time_error_max), (0.0, 0));
        assert!(reduced.value_error_max > 0.0 && reduced.value_error_max <= 0.01);
        assert!(reduced.time_error_max <= 5);
        let read = reduced.read(&[0], TimeRange::ALL).unwrap().remove(0);
        let values: Vec<f64> = read.iter().flat_map(|(_, values)| values.iter().map(Value::as_f64)).collect();
        let ValueColumn::F64(wave) = &group.columns[0] else { panic!("the first column must have floats") };
        assert!(wave.iter().zip(values).all(|(a, b)| (a - b).abs() <= 0.01));
    }

    #[test]
    fn the_front_is_pareto_optimal_and_weights_choose_from_it() {
        let cost = |bytes, read| Cost { bytes, write: 1.0, read };
        let costs = [cost(1.0, 9.0), cost(2.0, 2.0), cost(3.0, 2.5), cost(8.0, 1.5), cost(9.0, 9.0)];
        assert_eq!(front(&costs), [0, 1, 3]);
        assert_eq!(recommend(&costs, Weights::BALANCED), Some(1));
        assert_eq!(recommend(&costs, Weights::SPACE), Some(0));
        assert_eq!(recommend(&costs, Weights { read: 8.0, write: 0.0 }), Some(3));
        assert_eq!(recommend(&[], Weights::BALANCED), None);
        // The score is smaller by less than a fifth, but both space and read time are better.
        let costs = [cost(1.608, 10.0), cost(1.501, 9.9), cost(1.49, 99.0)];
        assert_eq!(recommend_over(&costs, Weights::BALANCED, 0), Some(1));
        assert_eq!(
            [smallest(&costs, Some(0)), smallest(&costs, Some(2)), smallest(&costs, None)],
            [1, 2, 1].map(Some)
        );
        assert_eq!((smallest(&[], None), smallest(&costs[..1], Some(9))), (None, Some(0)));
        let close = [cost(1.0, 1.0), cost(1.15, 0.95), cost(1.3, 1.0)];
        let over = |usual| recommend_over(&close, Weights::BALANCED, usual);
        assert_eq!([over(0), over(1), over(2), over(9)], [0, 1, 0, 0].map(Some));
    }

    #[test]
    fn series_with_equal_times_form_a_group() {
        let series = |at: &[i64]| (at.to_vec(), ValueColumn::U64(vec![1; at.len()]));
        let groups =
            group(vec![series(&[1, 2]), series(&[1, 3]), series(&[1, 2]), series(&[2, 2]), series(&[])]);
        let positions: Vec<&[usize]> = groups.iter().map(|(_, positions)| positions.as_slice()).collect();
        assert_eq!(positions, [&[0, 2][..], &[1]]);
        assert_eq!(groups[0].0.values(), 4);
    }
}
