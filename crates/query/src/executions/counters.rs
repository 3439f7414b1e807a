//! Which counters do the calls form? For each operation of a service and a host: calls, failed calls, or durations, minute by
//! minute.
//!
//! A counter has a sample at each full minute: the number of ended calls that were entered since the start of the day (UTC) and
//! before the time of the sample. So samples do not depend on the requested range, and the counter restarts each day. The sample
//! at midnight counts the whole previous day. A sample of value 0 follows it. Without that sample, PromQL would miss the restart
//! if the first minute has at least as many calls as the previous day.

use std::collections::BTreeMap;
use std::sync::Arc;

use tacho_chunk::{CallSummary, DURATION_BOUNDS_NS, PointDurations, Times, duration_bucket};
use tacho_model::{Labels, Operation, TimeRange};

use super::calls::Walker;
use super::fold::{Fold, Scope};
use super::source::{Source, Table, host, service};

const MINUTE_NS: i64 = 60_000_000_000;
const MINUTE_S: i64 = 60;
const DAY_MINUTES: i64 = 1_440;
const DAY_NS: i64 = DAY_MINUTES * MINUTE_NS;
/// Time from midnight to the sample of value 0. A window that ends at midnight excludes this sample; a window that starts at
/// midnight includes it. Answers have times in ms, so the two samples have different times.
const RESTART_NS: i64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    Calls,
    Errors,
    /// The sum of the durations, ns.
    Durations,
    /// Calls by duration. The value at an index counts the calls with a duration up to the bound at that index of
    /// [`DURATION_BOUNDS_NS`]. The last value counts all calls.
    Buckets,
}

impl Counts {
    /// The names of the series of calls, which exist only in queries, and what each of them counts.
    pub const METRICS: [(&'static str, Self); 5] = [
        ("calls_total", Self::Calls),
        ("call_errors_total", Self::Errors),
        ("call_duration_seconds_bucket", Self::Buckets),
        ("call_duration_seconds_count", Self::Calls),
        ("call_duration_seconds_sum", Self::Durations),
    ];

    /// Number of counters of an operation.
    pub const fn len(self) -> usize {
        match self {
            Self::Calls | Self::Errors | Self::Durations => 1,
            Self::Buckets => DURATION_BOUNDS_NS.len() + 1,
        }
    }

    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Identifies the counters of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CounterKey {
    pub service: Arc<str>,
    pub host: Arc<str>,
    pub operation: Operation,
}

/// The counters of an operation. `values[i]` has the samples of counter `i`, one for each time of [`CounterList::times`].
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    pub key: CounterKey,
    pub values: Vec<Vec<f64>>,
}

/// The answer. Empty if it would have more samples than the limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CounterList {
    /// Times of the samples of each counter, ascending.
    pub times: Vec<Times>,
    pub counters: Vec<Counter>,
    pub is_over: bool,
}

impl CounterList {
    /// Divides the samples of a counter into one piece for each element of `times`.
    pub fn pieces<'a>(&'a self, mut values: &'a [f64]) -> impl Iterator<Item = (Times, Vec<f64>)> + 'a {
        self.times.iter().map(move |times| {
            let (piece, rest) = values.split_at(times.len().min(values.len()));
            values = rest;
            (times.clone(), piece.to_vec())
        })
    }
}

/// Counts that are not 0. The key of a count is the minute times the number of counters, plus the index of the counter.
type Cells = BTreeMap<i64, u64>;

/// Selects the operations whose calls are counted.
type Takes<'a> = Box<dyn Fn(&CounterKey) -> bool + Send + 'a>;

pub struct Counters<'a> {
    counts: Counts,
    takes: Takes<'a>,
    /// Minutes of the first and the last sample, since the epoch.
    first: i64,
    last: i64,
    /// First and last day with a sample of value 0 just after midnight, since the epoch.
    restarts: (i64, i64),
    samples_max: usize,
    is_read: bool,
    cells: usize,
    table: Table<CounterKey, Option<Cells>>,
    walker: Walker,
}

impl<'a> Counters<'a> {
    /// Counters with samples at all full minutes of a range, and just after midnight.
    pub fn new(
        counts: Counts,
        range: TimeRange,
        samples_max: usize,
        takes: impl Fn(&CounterKey) -> bool + Send + 'a,
    ) -> Self {
        let first = range.start.div_euclid(MINUTE_NS) + i64::from(range.start.rem_euclid(MINUTE_NS) > 0);
        let (last, takes) = (range.end.div_euclid(MINUTE_NS), Box::new(takes));
        let day = |at: i64| at.saturating_sub(RESTART_NS).div_euclid(DAY_NS);
        let restarts = (day(range.start.saturating_sub(1)) + 1, day(range.end));
        let (table, walker) = (Table::new(), Walker::default());
        Self { counts, takes, first, last, restarts, samples_max, is_read: false, cells: 0, table, walker }
    }

    /// Number of samples of each counter. 0 without a full minute in the range.
    pub fn len(&self) -> usize {
        let count = |first: i64, last: i64| usize::try_from(last - first + 1).unwrap_or(0);
        let (minutes, restarts) = (count(self.first, self.last), count(self.restarts.0, self.restarts.1));
        if minutes == 0 { 0 } else { minutes + restarts }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Times of the samples of each counter: minutes up to midnight, the time just after midnight, and so on.
    fn times(&self) -> Vec<Times> {
        let (mut times, mut first) = (vec![], self.first);
        let mut run = |start: i64, count: i64| {
            let count = usize::try_from(count).unwrap_or(0);
            times.extend((count > 0).then_some(Times::Regular { start, step: MINUTE_NS, count }));
        };
        for midnight in (self.restarts.0..=self.restarts.1).map(|day| day * DAY_MINUTES) {
            run(first * MINUTE_NS, midnight - first + 1);
            run(midnight * MINUTE_NS + RESTART_NS, 1);
            first = midnight + 1;
        }
        run(first.saturating_mul(MINUTE_NS), self.last - first + 1);
        times
    }

    /// The enter times of the counted calls, from the start of the day that the first sample counts.
    pub fn range(&self) -> TimeRange {
        let start = (self.first - 1).div_euclid(DAY_MINUTES) * DAY_MINUTES;
        TimeRange::new(start.saturating_mul(MINUTE_NS), self.last.saturating_mul(MINUTE_NS).saturating_sub(1))
    }

    /// Whether the number of samples or of cells exceeds the limit.
    fn is_over(&self) -> bool {
        let counted = self.table.rows.iter().filter(|(_, cells)| cells.is_some()).count();
        let samples = counted.saturating_mul(self.counts.len()).saturating_mul(self.len());
        samples.max(self.cells) > self.samples_max
    }

    /// Indexes of operations; `None` for those that are not selected.
    fn numbers(&mut self, labels: &Labels, operations: &[Operation]) -> Vec<Option<u32>> {
        let (service, host): (Arc<str>, Arc<str>) = (service(labels).into(), host(labels).into());
        let mut number = |operation: &Operation| {
            let (service, host) = (Arc::clone(&service), Arc::clone(&host));
            let key = CounterKey { service, host, operation: operation.clone() };
            let is_taken = (self.takes)(&key);
            is_taken.then(|| self.table.position(key, || None))
        };
        operations.iter().map(&mut number).collect()
    }

    /// Adds to a count of a minute. All minutes before the first sample share one count.
    fn add(&mut self, number: u32, minute: i64, index: usize, amount: u64) {
        let cells = self.table.value(number).get_or_insert_default();
        let place =
            minute.clamp(self.first - 1, self.last.max(self.first)) * self.counts.len() as i64 + index as i64;
        if amount == 0 {
            return;
        }
        let count = cells.entry(place).or_insert_with(|| {
            self.cells += 1;
            0
        });
        *count = count.saturating_add(amount);
    }

    /// The samples of the counters of an operation.
    fn values(&self, cells: &Cells) -> Vec<Vec<f64>> {
        let len = self.counts.len();
        let (mut values, mut sums) = (vec![Vec::with_capacity(self.len()); len], vec![0u64; len]);
        let unit = if self.counts == Counts::Durations { 1e9 } else { 1.0 };
        let mut cells = cells.iter().peekable();
        for minute in self.first - 1..=self.last {
            let ended = |place: i64| place.div_euclid(len as i64) < minute;
            while let Some((place, count)) = cells.next_if(|(place, _)| ended(**place)) {
                let sum = &mut sums[place.rem_euclid(len as i64) as usize];
                *sum = sum.saturating_add(*count);
            }
            // A bucket includes the buckets of shorter durations.
            let mut before = 0u64;
            for (values, sum) in values.iter_mut().zip(&sums).filter(|_| minute >= self.first) {
                before = if self.counts == Counts::Buckets { before.saturating_add(*sum) } else { *sum };
                values.push(before as f64 / unit);
            }
            let (day, rest) = (minute.div_euclid(DAY_MINUTES), minute.rem_euclid(DAY_MINUTES));
            if rest == 0 && (self.restarts.0..=self.restarts.1).contains(&day) {
                sums.fill(0);
                values.iter_mut().for_each(|values| values.push(0.0));
            }
        }
        values
    }
}

impl Fold for Counters<'_> {
    type Answer = CounterList;

    fn pass(&mut self) -> Option<Scope> {
        (!std::mem::replace(&mut self.is_read, true)).then_some(Scope::Service)
    }

    fn add_source(&mut self, source: Source<'_>) {
        if self.is_over() {
            return;
        }
        let (numbers, range, counts) =
            (self.numbers(source.labels, source.block.operations()), self.range(), self.counts);
        let mut walker = std::mem::take(&mut self.walker);
        for row in source.block.rows() {
            walker.walk(row, |visit| {
                let (Some(number), Some(duration)) =
                    (numbers[visit.call.operation as usize], visit.duration())
                else {
                    return;
                };
                if !range.contains(visit.start) {
                    return;
                }
                let (index, amount) = match counts {
                    Counts::Calls => (0, 1),
                    Counts::Errors => (0, u64::from(visit.call.failed)),
                    Counts::Durations => (0, duration),
                    Counts::Buckets => (duration_bucket(duration), 1),
                };
                self.add(number, visit.start.div_euclid(MINUTE_NS), index, amount);
            });
        }
        self.walker = walker;
    }

    fn takes_summaries(&self) -> bool {
        true
    }

    /// Each minute counts alone.
    fn counts_whole_summaries(&self) -> bool {
        false
    }

    fn add_summary(&mut self, labels: &Labels, summary: &CallSummary, is_only: bool) -> bool {
        let slot_minutes = summary.slot_s / MINUTE_S;
        // All minutes before the first sample share one count, so a slot of several minutes fits if it ends before that sample.
        let is_early = |slot: i64| slot.saturating_add(1).saturating_mul(slot_minutes) <= self.first;
        if !is_only && slot_minutes > 1 && !summary.points.iter().all(|point| is_early(point.slot)) {
            return false;
        }
        let needs_durations = matches!(self.counts, Counts::Durations | Counts::Buckets);
        if needs_durations && summary.durations.is_none() {
            return false;
        }
        if self.is_over() {
            return true;
        }
        let (numbers, range) = (self.numbers(labels, &summary.operations), self.range());
        let (counts, none) = (self.counts, PointDurations::default());
        let mut durations = summary.durations.iter().flatten();
        for point in &summary.points {
            let of_point = durations.next().unwrap_or(&none);
            let cell = &summary.cells[point.cell as usize];
            let Some(number) = numbers[cell.operation as usize] else { continue };
            let minute = point.slot.saturating_mul(slot_minutes);
            // An expired segment may have calls outside of the range.
            if !range.contains(minute.saturating_mul(MINUTE_NS)) {
                continue;
            }
            match counts {
                Counts::Calls => self.add(number, minute, 0, point.count),
                Counts::Errors => self.add(number, minute, 0, point.errors),
                Counts::Durations => self.add(number, minute, 0, of_point.total_ns),
                Counts::Buckets => {
                    of_point
                        .counts
                        .iter()
                        .for_each(|(bucket, count)| self.add(number, minute, usize::from(*bucket), *count));
                }
            }
        }
        true
    }

    fn finish(self) -> CounterList {
        if self.is_over() {
            return CounterList { is_over: true, ..CounterList::default() };
        }
        let counted = self.table.rows.iter().filter_map(|(key, cells)| Some((key.clone(), cells.as_ref()?)));
        let counters: Vec<Counter> =
            counted.map(|(key, cells)| Counter { key, values: self.values(cells) }).collect();
        let times = if counters.is_empty() { vec![] } else { self.times() };
        CounterList { times, counters, is_over: false }
    }
}
