//! Measures candidate settings: encodes the data, and runs the queries.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tacho_chunk::semantic::Semantic;
use tacho_chunk::tune::{Candidate, Cost, EncodedGroup, Weights, encode, recommend, smallest};
use tacho_chunk::{CodecSet, Compression, Encoding, Method, Tolerance};
use tacho_query::promql::{Piece, Plan, Selection, SeriesData};
use tacho_store::Options;

use super::mix::Mix;
use super::training::Training;
use crate::failure::Failure;
use crate::terminal::progress;

/// Chunk sizes to try, values per series. The largest is the maximum of `values` in a `[[chunks]]` rule of `tacho.toml`.
const SIZES: [usize; 6] = [512, 2_048, 8_192, 16_384, 32_768, 65_536];
/// The codecs that decode fast.
const QUICK: [&str; 5] = ["constant", "step", "varint", "decimal", "dictionary"];
/// The codec with the highest CPU cost. Some trials omit it, to show how much space it saves.
const DEAREST: &str = "pco";
/// Sizes that differ by at most this share count as equal.
const NOISE: f64 = 0.001;
/// Number of runs of the whole mix of queries. The fastest run counts, because other work on the machine may delay a run.
const READS: usize = 3;

/// The permitted loss (`None` without a tolerance), and the time limit of all trials.
pub struct Limits {
    time: Duration,
    semantic: Option<Semantic>,
}

impl Limits {
    pub fn new(seconds: u64, value: Option<Tolerance>, method: Method, time_tolerance: Option<i64>) -> Self {
        let time = time_tolerance.map_or(0, i64::unsigned_abs);
        let semantic = Semantic { time, value, method, aggregation: None };
        Self {
            time: Duration::from_secs(seconds.max(1)),
            semantic: Some(semantic).filter(|semantic| !semantic.is_lossless()),
        }
    }
}

pub struct Trial {
    pub candidate: Candidate,
    /// Name of the set of codecs.
    pub codecs: &'static str,
    pub cost: Cost,
    pub value_error_max: f64,
    pub time_error_max: u64,
}

pub struct Trials {
    pub done: Vec<Trial>,
    /// Number of planned candidates that were not tried because the time was over. The second round is planned, and counted, only
    /// when the first round is complete.
    pub left: usize,
}

type Codecs = (&'static str, CodecSet);

impl Trials {
    /// First tries sizes and compressions. Then tries sets of codecs, and the tolerance if there is one, with the best sizes and
    /// compressions.
    pub fn run(training: &Training, mix: &Mix, limits: &Limits) -> Result<Self, Failure> {
        let begun = Instant::now();
        let all = ("all", CodecSet::ALL);
        let longest = training.groups.iter().map(|group| group.at.len()).max().unwrap_or(0);
        let first = sizes(longest, Options::default().chunk_values).into_iter().flat_map(|values| {
            Compression::ALL.map(|compression| (candidate(values, all.1, compression), all.0))
        });
        let mut plan: Vec<(Candidate, &'static str)> = first.collect();
        let bar = progress::bar(plan.len() as u64, "trying");
        let mut trials = Self { done: Vec::new(), left: 0 };
        let mut second = false;
        let mut at = 0;
        while let Some((candidate, codecs)) = plan.get(at).cloned() {
            if begun.elapsed() > limits.time && !trials.done.is_empty() {
                break;
            }
            bar.set_message(format!("{} values a chunk, {}", candidate.values, name(&candidate)));
            trials.done.push(measure(training, mix, candidate, codecs)?);
            bar.inc(1);
            at += 1;
            if at == plan.len() && !second {
                second = true;
                plan.extend(trials.second_round(limits));
                bar.set_length(plan.len() as u64);
            }
        }
        bar.finish_and_clear();
        trials.left = plan.len() - at;
        Ok(trials)
    }

    pub fn is_default(&self, at: usize) -> bool {
        let usual = candidate(Options::default().chunk_values, CodecSet::ALL, Compression::Auto);
        self.done[at].candidate == usual
    }

    /// Considers the trials that have the same chunk size and tolerance as the trial `best`, and whose bytes differ by at most
    /// [`NOISE`] from its bytes. The times of these trials are assumed to differ only by noise. Returns the trial with the fewest
    /// settings that are not the default.
    pub fn plainest(&self, best: usize) -> usize {
        let Trial { candidate, cost, .. } = &self.done[best];
        let same = |trial: &&Trial| {
            trial.candidate.values == candidate.values
                && trial.candidate.semantic == candidate.semantic
                && (trial.cost.bytes - cost.bytes).abs() <= cost.bytes * NOISE
        };
        let effort = |trial: &Trial| {
            let Encoding { codecs, compression, .. } = trial.candidate.encoding;
            (codecs != CodecSet::ALL, compression != Compression::Auto)
        };
        let like = self.done.iter().enumerate().filter(|(_, trial)| same(trial));
        like.min_by_key(|(at, trial)| (effort(trial), *at != best)).map_or(best, |(at, _)| at)
    }

    fn second_round(&self, limits: &Limits) -> Vec<(Candidate, &'static str)> {
        let costs: Vec<Cost> = self.done.iter().map(|trial| trial.cost).collect();
        let weighed = [Weights::BALANCED, Weights::SPEED].map(|weights| recommend(&costs, weights));
        let bests: BTreeSet<usize> = weighed.into_iter().chain([smallest(&costs, None)]).flatten().collect();
        let but = CodecSet::only(CodecSet::names().filter(|name| *name != DEAREST));
        let sets: Vec<Codecs> = [("all but pco", but), ("quick", CodecSet::only(QUICK))]
            .into_iter()
            .filter_map(|(name, set)| Some((name, set?)))
            .collect();
        let mut out = Vec::new();
        for best in bests.into_iter().map(|at| &self.done[at].candidate) {
            let codecs = sets
                .iter()
                .map(|(name, set)| (candidate(best.values, *set, best.encoding.compression), *name));
            out.extend(codecs);
            out.extend(limits.semantic.map(|semantic| (Candidate { semantic, ..best.clone() }, "all")));
        }
        out
    }
}

/// The chunk sizes to try for groups of at most `longest` values per series. All sizes of at least `longest` give the same
/// chunks, so only one of these is tried, if possible the default size.
fn sizes(longest: usize, default: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = SIZES.into_iter().filter(|size| *size < longest).collect();
    let whole = SIZES.into_iter().find(|size| *size >= longest);
    sizes.extend(whole.map(|least| if default >= longest { default } else { least }));
    sizes
}

fn candidate(values: usize, codecs: CodecSet, compression: Compression) -> Candidate {
    let encoding = Encoding { codecs, compression, ..Encoding::thorough() };
    Candidate { values, encoding, semantic: Semantic::default() }
}

/// The compression of a candidate, and whether it has a tolerance.
pub fn name(candidate: &Candidate) -> String {
    let lossy = if candidate.semantic.is_lossless() { "" } else { ", with tolerance" };
    format!("{}{lossy}", candidate.encoding.compression.name())
}

fn measure(
    training: &Training,
    mix: &Mix,
    candidate: Candidate,
    codecs: &'static str,
) -> Result<Trial, Failure> {
    let begun = Instant::now();
    let encoded: Result<Vec<EncodedGroup>, _> =
        training.groups.iter().map(|group| encode(group, &candidate)).collect();
    let write = begun.elapsed();
    let encoded = encoded.map_err(Failure::usage)?;
    let mut read = Duration::MAX;
    for _ in 0..READS {
        let begun = Instant::now();
        for plan in &mix.plans {
            answer(plan, training, &encoded)?;
        }
        read = read.min(begun.elapsed());
    }
    let values = training.values().max(1) as f64;
    let bytes: usize = encoded.iter().map(EncodedGroup::bytes).sum();
    let cost = Cost {
        bytes: bytes as f64 / values,
        write: write.as_nanos() as f64 / values,
        read: read.as_nanos() as f64 / mix.plans.len() as f64,
    };
    let value_error_max = encoded.iter().fold(0.0, |most: f64, group| most.max(group.value_error_max));
    let time_error_max = encoded.iter().map(|group| group.time_error_max).max().unwrap_or(0);
    Ok(Trial { candidate, codecs, cost, value_error_max, time_error_max })
}

fn answer(plan: &Plan, training: &Training, encoded: &[EncodedGroup]) -> Result<(), Failure> {
    let data: Result<Vec<Vec<SeriesData>>, Failure> =
        plan.selectors().iter().map(|selection| select(selection, training, encoded)).collect();
    let output = plan.evaluate(&data?).map_err(Failure::new)?;
    std::hint::black_box(output);
    Ok(())
}

fn select(
    selection: &Selection,
    training: &Training,
    encoded: &[EncodedGroup],
) -> Result<Vec<SeriesData>, Failure> {
    let mut out = Vec::new();
    for (labels, group) in training.labels.iter().zip(encoded) {
        let wanted = |at: &usize| selection.matchers.iter().all(|matcher| matcher.matches(&labels[*at]));
        let columns: Vec<usize> = (0..labels.len()).filter(wanted).collect();
        if columns.is_empty() {
            continue;
        }
        let read = group.read(&columns, selection.range).map_err(Failure::new)?;
        for (column, pieces) in columns.iter().zip(read) {
            let pieces = pieces
                .into_iter()
                .filter_map(|(times, values)| {
                    let places = times.slice(selection.range);
                    let values = values.part(places.clone()).into_f64();
                    (!places.is_empty()).then(|| Piece::Samples { at: times.part(places), values })
                })
                .collect();
            out.push(SeriesData { labels: labels[*column].clone(), pieces });
        }
    }
    out.retain(|series| !series.is_empty());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_size_that_holds_all_values_is_tried() {
        for (longest, expect) in [
            (0, &[8_192][..]),
            (300, &[8_192]),
            (512, &[8_192]),
            (513, &[512, 8_192]),
            (8_192, &[512, 2_048, 8_192]),
            (8_193, &[512, 2_048, 8_192, 16_384]),
            (1_000_000, &SIZES),
        ] {
            assert_eq!(sizes(longest, 8_192), expect, "{longest}");
        }
    }
}
