//! The model: the records of one sender in plain maps, and a generator of batches.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use tacho_chunk::{Aggregate, Aggregation};
use tacho_model::{
    Batch, Body, Entry, EntrySeries, Event, EventKind, ExecutionSeries, Labels, Matcher, NAME, Operation,
    OperationKind, Random, Sample, SampleSeries, Segment, TimeRange, TraceId, Value,
};

use crate::policy::{Downsampling, Policies, Retention, Rule};
use crate::upkeep::UpkeepStats;

/// Series of samples of each sender: three with shared times, one with its own times, one with a short retention, and one
/// that is downsampled.
pub const SHARED: [&str; 3] = ["heap", "load", "threads"];
pub const OWN: &str = "own";
pub const BRIEF: &str = "brief";
pub const COARSE: &str = "coarse";
/// The label with the number of the sender.
pub const SENDER: &str = "instance";
pub const BRIEF_NS: u64 = 100;

/// Age from which samples of [`COARSE`] are reduced to the last one of each step, ns.
const FINE_NS: u64 = 150;
const STEP_NS: i64 = 10;

pub fn policies() -> Policies {
    fn rule<T>(name: &str, then: T) -> Vec<Rule<T>> {
        vec![Rule { matchers: vec![Matcher::equal(NAME, name)], then }]
    }
    let to = Aggregation { step: STEP_NS, how: Aggregate::Last };
    Policies {
        retention: rule(BRIEF, Retention::of(BRIEF_NS)),
        downsampling: rule(COARSE, Downsampling { after: FINE_NS, to }),
        ..Policies::default()
    }
}

/// The end of the step that contains `at`. A step excludes its start and includes its end.
const fn step(at: i64) -> i64 {
    (at + STEP_NS - 1).div_euclid(STEP_NS) * STEP_NS
}

pub fn labels(name: &str, sender: u128) -> Arc<Labels> {
    let sender = sender.to_string();
    Arc::new(Labels::new([(NAME, name), (SENDER, &sender)]).unwrap_or_else(|_| Labels::empty()))
}

/// The expected records of one sender, and its last batch.
#[derive(Default)]
pub struct Model {
    pub seq: u64,
    pub last: Arc<Batch>,
    pub samples: BTreeMap<String, BTreeMap<i64, Value>>,
    /// Ends of the steps of [`COARSE`] in which only some samples were deleted. If a deleted sample was the last one of the
    /// step, downsampling may have removed the remaining samples earlier.
    loose: BTreeSet<i64>,
    pub entries: Vec<Entry>,
    /// Start of each segment, by trace id.
    pub traces: BTreeMap<u128, i64>,
}

impl Model {
    pub fn apply(&mut self, batch: &Batch) {
        for series in &batch.samples {
            let samples = self.samples.entry(series.labels.name().to_owned()).or_default();
            samples.extend(series.samples.iter().map(|s| (s.at, s.value)));
        }
        self.entries.extend(batch.entries.iter().flat_map(|s| s.entries.iter().cloned()));
        let segments = batch.executions.iter().flat_map(|s| &s.segments);
        self.traces.extend(segments.map(|s| (s.trace.0, s.start)));
    }

    /// Deletes the records in `range` of the series `name`, or of all series if `name` is `None`.
    pub fn delete(&mut self, name: Option<&str>, range: TimeRange) {
        let meant = |other: &str| name.is_none_or(|name| name == other);
        for (name, samples) in &mut self.samples {
            let gone: Vec<i64> =
                samples.keys().copied().filter(|at| meant(name) && range.contains(*at)).collect();
            samples.retain(|at, _| gone.binary_search(at).is_err());
            if name == COARSE {
                let left: BTreeSet<i64> = samples.keys().map(|at| step(*at)).collect();
                self.loose.extend(gone.iter().map(|at| step(*at)).filter(|step| left.contains(step)));
            }
        }
        self.entries.retain(|entry| !meant("entries") || !range.contains(entry.at));
        self.traces.retain(|_, start| !meant("executions") || !range.contains(*start));
    }
}

fn value(random: &mut Random, kinds: &Range<u64>) -> Value {
    match kinds.start + random.below(kinds.end - kinds.start) {
        0 => Value::F64(f64::from_bits(random.next())),
        1 => Value::I64(random.next().cast_signed()),
        _ => Value::U64(random.next()),
    }
}

/// A batch of one sender at time `now`. Trace ids start with `next_trace`.
pub fn batch(random: &mut Random, sender: u128, now: i64, next_trace: &mut u128) -> Batch {
    let mut batch = Batch::default();
    // Few distinct times, so that many samples are overwritten. Half of the times are far away, so that chunks are cut.
    let moments = |random: &mut Random| -> Vec<i64> {
        let moment =
            |random: &mut Random| random.below(300).cast_signed() + random.below(2).cast_signed() * (1 << 52);
        (0..random.below(40)).map(|_| moment(random)).collect()
    };
    let shared = moments(random);
    let own = moments(random);
    let brief: Vec<i64> =
        (0..random.below(10)).map(|_| now - random.below(BRIEF_NS / 2).cast_signed()).collect();
    let coarse: Vec<i64> = (0..random.below(20)).map(|_| now - random.below(400).cast_signed()).collect();
    let others = [(OWN, &own), (BRIEF, &brief), (COARSE, &coarse)];
    let all = SHARED.iter().map(|name| (*name, &shared)).chain(others);
    for (name, moments) in all {
        // No f64 values, because some are NaN, which downsampling ignores.
        let kinds = if name == COARSE { 1..3 } else { 0..8 };
        let samples = moments.iter().map(|at| Sample { at: *at, value: value(random, &kinds) }).collect();
        batch.samples.push(SampleSeries { labels: labels(name, sender), samples });
    }
    let entry =
        |number: u64| Entry { at: (number % 7).cast_signed(), body: Body::Text(number.to_string().into()) };
    let entries = (0..random.below(5)).map(|_| entry(random.next())).collect();
    batch.entries.push(EntrySeries { labels: labels("entries", sender), entries });
    let first = *next_trace;
    *next_trace += u128::from(random.below(4));
    let operation = Operation { kind: OperationKind::Method, name: format!("m{}", random.below(9)).into() };
    let segments = (first..*next_trace).map(|trace| segment(trace, random.below(1 << 50).cast_signed()));
    batch.executions.push(ExecutionSeries {
        labels: labels("executions", sender),
        operations: vec![operation],
        segments: segments.collect(),
    });
    batch
}

fn segment(trace: u128, start: i64) -> Segment {
    let event = |delta, kind| Event { delta, kind };
    Segment {
        trace: TraceId(trace),
        base: u64::try_from(trace).unwrap_or(u64::MAX),
        part: 0,
        parent: None,
        thread: "main".into(),
        start,
        carried: Vec::new(),
        first_call: 0,
        events: vec![event(0, EventKind::Enter(0)), event(start.cast_unsigned() % 97, EventKind::Exit)],
        attributes: Vec::new(),
    }
}

impl Model {
    /// Expected samples of a series at time `now`, given the samples `found` in the store.
    pub fn expect(&self, name: &str, now: i64, found: &BTreeMap<i64, Value>) -> BTreeMap<i64, Value> {
        let mut expect = self.samples.get(name).cloned().unwrap_or_default();
        if name == BRIEF {
            expect.retain(|at, _| *at >= now - BRIEF_NS.cast_signed());
        }
        if name == COARSE {
            let fine_from = now - FINE_NS.cast_signed();
            let mut last_of_step = BTreeMap::new();
            last_of_step.extend(expect.keys().map(|at| (step(*at), *at)));
            let stays = |at: &i64| {
                step(*at) > fine_from
                    || last_of_step.get(&step(*at)) == Some(at) && !self.loose.contains(&step(*at))
            };
            // Downsampling may or may not have removed the other samples yet.
            expect.retain(|at, _| stays(at) || found.contains_key(at));
        }
        expect
    }
}

/// Counts of events in a run. A simulation without merges would prove nothing.
#[derive(Debug, Default)]
pub struct Seen {
    pub merges: u64,
    pub deletions: u64,
    pub deletions_done: u64,
    pub chunks_expired: u64,
    pub rows_dead: u64,
}

impl Seen {
    pub fn add(&mut self, stats: &UpkeepStats) {
        self.merges += stats.merges;
        self.deletions += stats.deletions;
        self.deletions_done += stats.deletions_done;
        self.chunks_expired += stats.chunks_expired;
        self.rows_dead += stats.rows_dead;
    }
}
