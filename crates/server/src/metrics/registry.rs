//! Counters, gauges and histograms with labels.
//!
//! A family holds one instrument per set of label values. Sets above [`SETS_MAX`] are counted together, with the value
//! [`OVERFLOW`] in every label. So values from outside (names of services) cannot fill the server's memory.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tacho_model::Value;

/// Limit on the label sets of one family. It suffices for the services and kinds of a large installation.
pub const SETS_MAX: usize = 1_000;
/// Value of every label in the set that counts all sets above [`SETS_MAX`].
pub const OVERFLOW: &str = "_other";

#[derive(Clone, Default)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Sets the counter to a total that is counted elsewhere.
    pub fn raise_to(&self, total: u64) {
        self.0.fetch_max(total, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A total of time that only increases, reported in seconds.
#[derive(Clone, Default)]
pub struct Seconds(Arc<AtomicU64>);

impl Seconds {
    /// Sets the counter to a total that is counted elsewhere.
    pub fn raise_to(&self, total: std::time::Duration) {
        let ns = u64::try_from(total.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_max(ns, Ordering::Relaxed);
    }
}

#[derive(Clone, Default)]
pub struct Gauge(Arc<AtomicI64>);

impl Gauge {
    pub fn set(&self, n: i64) {
        self.0.store(n, Ordering::Relaxed);
    }

    pub fn add(&self, n: i64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds of a histogram's buckets in seconds: 0.5 ms to 10 s, each 2 to 4 times the one before.
const BOUNDS: [f64; 13] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

#[derive(Clone, Default)]
pub struct Histogram(Arc<Cells>);

#[derive(Default)]
struct Cells {
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    sum_ns: AtomicU64,
}

impl Histogram {
    pub fn observe(&self, took: std::time::Duration) {
        let seconds = took.as_secs_f64();
        if let Some(bucket) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.0.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.0.sum_ns.fetch_add(ns, Ordering::Relaxed);
        self.0.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// One line of a family: `name` + `suffix` + `{labels} value`.
pub struct Point<'a> {
    pub suffix: &'static str,
    pub labels: &'a [(&'a str, &'a str)],
    pub value: Value,
}

pub trait Instrument: Clone + Default {
    const TYPE: &'static str;

    fn points(&self, labels: &[(&str, &str)], each: &mut dyn FnMut(Point<'_>));
}

impl Instrument for Counter {
    const TYPE: &'static str = "counter";

    fn points(&self, labels: &[(&str, &str)], each: &mut dyn FnMut(Point<'_>)) {
        each(Point { suffix: "", labels, value: Value::U64(self.get()) });
    }
}

impl Instrument for Seconds {
    const TYPE: &'static str = "counter";

    fn points(&self, labels: &[(&str, &str)], each: &mut dyn FnMut(Point<'_>)) {
        let total = std::time::Duration::from_nanos(self.0.load(Ordering::Relaxed));
        each(Point { suffix: "", labels, value: Value::F64(total.as_secs_f64()) });
    }
}

impl Instrument for Gauge {
    const TYPE: &'static str = "gauge";

    fn points(&self, labels: &[(&str, &str)], each: &mut dyn FnMut(Point<'_>)) {
        each(Point { suffix: "", labels, value: Value::I64(self.get()) });
    }
}

impl Instrument for Histogram {
    const TYPE: &'static str = "histogram";

    fn points(&self, labels: &[(&str, &str)], each: &mut dyn FnMut(Point<'_>)) {
        let count = self.0.count.load(Ordering::Relaxed);
        let mut below = 0;
        for (bucket, bound) in self.0.buckets.iter().zip(BOUNDS) {
            below += bucket.load(Ordering::Relaxed);
            bucket_point(labels, &bound.to_string(), below.min(count), each);
        }
        bucket_point(labels, "+Inf", count, each);
        let sum = std::time::Duration::from_nanos(self.0.sum_ns.load(Ordering::Relaxed)).as_secs_f64();
        each(Point { suffix: "_sum", labels, value: Value::F64(sum) });
        each(Point { suffix: "_count", labels, value: Value::U64(count) });
    }
}

fn bucket_point(labels: &[(&str, &str)], bound: &str, count: u64, each: &mut dyn FnMut(Point<'_>)) {
    let mut with_bound = labels.to_vec();
    with_bound.push(("le", bound));
    each(Point { suffix: "_bucket", labels: &with_bound, value: Value::U64(count) });
}

/// All instruments with the same name, one for each set of `N` label values.
pub struct Family<T, const N: usize> {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; N],
    /// Ascending by values.
    sets: RwLock<Vec<([Box<str>; N], T)>>,
}

impl<T: Instrument, const N: usize> Family<T, N> {
    pub fn new(name: &'static str, labels: [&'static str; N], help: &'static str) -> Self {
        Self { name, help, labels, sets: RwLock::default() }
    }

    /// The instrument for these values, created at the first call. Hot paths keep the instrument.
    pub fn with(&self, values: [&str; N]) -> T {
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        let found = place(&sets, values).ok().and_then(|at| sets.get(at));
        if let Some((_, instrument)) = found {
            return instrument.clone();
        }
        drop(sets);
        let mut sets = self.sets.write().unwrap_or_else(PoisonError::into_inner);
        let is_full = sets.len() >= SETS_MAX && place(&sets, values).is_err();
        let values = if is_full { [OVERFLOW; N] } else { values };
        match place(&sets, values) {
            Ok(at) => sets.get(at).map(|(_, instrument)| instrument.clone()).unwrap_or_default(),
            Err(at) => {
                let instrument = T::default();
                sets.insert(at, (values.map(Box::from), instrument.clone()));
                instrument
            }
        }
    }
}

/// The index of the instrument for these values, or the index at which to insert it. Needs no memory, because it runs several
/// times for each request.
fn place<T, const N: usize>(sets: &[([Box<str>; N], T)], values: [&str; N]) -> Result<usize, usize> {
    sets.binary_search_by(|(known, _)| known.iter().map(|value| &**value).cmp(values))
}

/// A family of any type, for reading.
pub trait Collect: Send + Sync {
    fn name(&self) -> &'static str;
    fn help(&self) -> &'static str;
    fn metric_type(&self) -> &'static str;
    fn points(&self, each: &mut dyn FnMut(Point<'_>));
}

impl<T: Instrument + Send + Sync, const N: usize> Collect for Family<T, N> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn metric_type(&self) -> &'static str {
        T::TYPE
    }

    fn points(&self, each: &mut dyn FnMut(Point<'_>)) {
        for (values, instrument) in self.sets.read().unwrap_or_else(PoisonError::into_inner).iter() {
            let labels: Vec<(&str, &str)> =
                self.labels.iter().zip(values).map(|(name, value)| (*name, &**value)).collect();
            instrument.points(&labels, each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_sets_above_the_limit_share_one_instrument() {
        let family: Family<Counter, 1> = Family::new("n", ["service"], "");
        for i in 0..SETS_MAX + 2 {
            family.with([&i.to_string()]).add(1);
        }
        family.with(["0"]).add(1);
        assert_eq!(family.with(["0"]).get(), 2);
        assert_eq!(family.with([OVERFLOW]).get(), 2);
        let mut sets = 0;
        family.points(&mut |_| sets += 1);
        assert_eq!(sets, SETS_MAX + 1);
    }
}
