//! A sample that is sent several times is stored once, although a rule may move its time. Merges, deletions, expiry and restarts
//! between the repetitions make no difference.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use tacho_chunk::Method;
use tacho_chunk::semantic::Semantic;
use tacho_model::{Batch, ManualClock, Matcher, NAME, TimeRange, Value, mix64};
use tacho_store::policy::{Policies, Retention, Rule};
use tacho_store::{MemoryDriver, Options, Store};

use crate::common::{Bench, typed, values};

const SECOND: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;
/// The largest change of a time that the rule permits, ns.
const BOUND: i64 = 200 * MS;
/// Long after all samples, so that lossy reductions may apply to every chunk.
const NOW: i64 = 100 * 86_400 * SECOND;
/// Retention in tests with expiry, ns. At [`NOW`], no sample has expired.
const KEEP: u64 = NOW as u64;
const SAMPLES: usize = 600;
const SEEDS: u64 = 4;

/// Series that are sent together. A rule may move the times of the first two.
const NAMES: [&str; 3] = ["m", "n", "exact"];

/// Sends one sample a second with a jitter of up to 400 ms to a store that may move times by up to 200 ms. Records the
/// expected content.
struct Sender {
    bench: Bench,
    clock: Arc<ManualClock>,
    store: Option<Arc<Store>>,
    seed: u64,
    /// For each series, the values by sample number.
    sent: [BTreeMap<usize, f64>; 3],
    /// Samples before this time are expired.
    horizon: i64,
    /// Number of batches sent. It is part of the values.
    batches: u64,
}

impl Sender {
    async fn new(seed: u64, options: Options) -> Self {
        let then = Semantic { time: BOUND as u64, value: None, method: Method::Linear, aggregation: None };
        let rule = |name: &&str| Rule { matchers: vec![Matcher::equal(NAME, name)], then };
        let semantic = NAMES[..2].iter().map(rule).collect();
        let policies = Arc::new(Policies { semantic, ..Policies::clone(&options.policies) });
        let options = Options { merge_in_background: false, policies, ..options };
        let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
        let clock = Arc::new(ManualClock::new(NOW));
        let sent = Default::default();
        let mut sender = Self { bench, clock, store: None, seed, sent, horizon: i64::MIN, batches: 0 };
        sender.restart().await;
        sender
    }

    async fn restart(&mut self) {
        self.store = None;
        let Bench { driver, directory, options, .. } = &self.bench;
        let opened = Store::open(driver.clone(), directory.path(), options.clone(), self.clock.clone()).await;
        self.store = Some(opened.unwrap());
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn at(&self, n: usize) -> i64 {
        let by_chance = mix64(self.seed << 32 | n as u64);
        n as i64 * SECOND + (by_chance % 1_000) as i64 * 400 * MS / 1_000
    }

    /// The middle between a sample and the previous sample. Its distance from both is larger than any permitted move.
    fn before(&self, n: usize) -> i64 {
        n.checked_sub(1).map_or(i64::MIN, |before| i64::midpoint(self.at(before), self.at(n)))
    }

    /// Sends the samples with these numbers to the series `NAMES[range]`. With `whole`, the values have the type i64 instead of
    /// f64.
    async fn send(&mut self, range: Range<usize>, numbers: impl IntoIterator<Item = usize>, whole: bool) {
        self.batches += 1;
        let mut points = Vec::new();
        for n in numbers {
            let value = (self.batches * 1_000 + n as u64) as f64;
            points.push((self.at(n), if whole { Value::I64(value as i64) } else { Value::F64(value) }));
            for sent in &mut self.sent[range.clone()] {
                sent.insert(n, value);
            }
        }
        let samples = NAMES[range].iter().flat_map(|name| typed(name, &points).samples).collect();
        self.store().append(Batch { samples, ..Batch::default() }, None).await.unwrap();
    }

    async fn merge(&self) {
        self.store().flush().await.unwrap();
        self.store().merge_all().await.unwrap();
    }

    /// Deletes all samples of a series from number `first` to number `last`.
    async fn delete(&mut self, name: &str, first: usize, last: usize) {
        let range = TimeRange::new(self.before(first), self.before(last + 1));
        self.store().delete(&[Matcher::equal(NAME, name)], range).await.unwrap();
        let series = NAMES.iter().position(|other| *other == name).unwrap();
        self.sent[series].retain(|n, _| !(first..=last).contains(n));
    }

    /// Advances the clock until all samples before `horizon` are expired ([`KEEP`]). Never moves it back.
    fn expire(&mut self, horizon: i64) {
        self.horizon = horizon.max(self.horizon);
        self.clock.set(NOW + self.horizon.max(0));
    }

    /// The sent time of a sample near the horizon. Its moved time decides whether it has expired.
    fn doubtful(&self) -> Option<i64> {
        let mut times = (0..SAMPLES).map(|n| self.at(n));
        times.find(|at| at.abs_diff(self.horizon) <= BOUND as u64)
    }

    /// Asserts that reads return exactly the samples that were sent and have not expired, with times moved by at most [`BOUND`].
    /// The sample of [`Self::doubtful`] may be missing. Reads all samples, and the samples from number `first` to number `last`.
    async fn check(&self, first: usize, last: usize) {
        let part = TimeRange::new(self.before(first), self.before(last + 1));
        let questions = [(0..=SAMPLES, TimeRange::ALL), (first..=last, part)];
        let asked = NAMES.iter().zip(&self.sent).flat_map(|asked| questions.clone().map(|q| (asked, q)));
        for ((name, sent), (numbers, range)) in asked {
            let mut read = values(self.store(), name, range).await;
            let sent = sent.range(numbers).map(|(n, value)| (self.at(*n), *value));
            let alive = self.horizon.saturating_add(BOUND);
            let sent: Vec<_> = sent.filter(|(at, _)| *at > alive).collect();
            if let Some(doubtful) = self.doubtful() {
                let before = read.len();
                read.retain(|(at, _)| at.abs_diff(doubtful) > BOUND as u64);
                assert!(before - read.len() <= 1, "{name}: the sample of {doubtful} is stored twice");
            }
            let numbers = |points: &[(i64, f64)]| points.iter().map(|(at, _)| at / MS).collect::<Vec<_>>();
            assert!(read.len() == sent.len(), "{name}\n{:?}\nsent {:?}", numbers(&read), numbers(&sent));
            for ((at, value), (wanted, exact)) in read.iter().zip(&sent) {
                let near = (at - wanted).abs() <= BOUND && value == exact;
                assert!(near && (*name != "exact" || at == wanted), "{at} {value}, sent {wanted} {exact}");
            }
        }
    }
}

/// Options with large and with small merges. Small merges end inside rows with moved times.
fn few_and_many() -> [Options; 3] {
    let few = |merge_values, chunk_values| Options { merge_values, chunk_values, ..Options::default() };
    [Options::default(), few(300, 100), few(64, 30)]
}

#[tokio::test]
async fn samples_are_not_duplicated_by_a_merge_that_ends_inside_a_moved_row() {
    for options in few_and_many() {
        let mut sender = Sender::new(839_601_036, options).await;
        sender.send(0..1, 179..=185, false).await;
        sender.send(0..1, 446..=510, false).await;
        sender.merge().await;
        sender.send(0..1, [0], false).await;
        sender.send(0..1, 332..=421, false).await;
        sender.merge().await;
        sender.send(0..1, [0], false).await;
        sender.merge().await;
        sender.send(0..1, 0..SAMPLES, false).await;
        sender.check(0, SAMPLES - 1).await;
        sender.merge().await;
        sender.check(0, SAMPLES - 1).await;
    }
}

/// All series have the retention [`KEEP`].
fn expiring(options: Options) -> Options {
    let rule = |name: &&str| Rule { matchers: vec![Matcher::equal(NAME, name)], then: Retention::of(KEEP) };
    let retention = NAMES.iter().map(rule).collect();
    Options { policies: Arc::new(Policies { retention, ..Policies::default() }), ..options }
}

/// The limit of the retention is between the original and the moved time of a row's first or last sample. Expired samples are
/// sent again.
#[tokio::test]
async fn samples_are_not_duplicated_when_the_end_of_a_row_expires() {
    for options in few_and_many().map(expiring) {
        for (first, offset) in [(1, 0), (40, -BOUND), (99, BOUND / 2), (300, -BOUND / 2), (340, -300 * MS)] {
            let mut sender = Sender::new(7, options.clone()).await;
            sender.send(0..3, 0..SAMPLES, false).await;
            sender.merge().await;
            sender.expire(sender.at(first) + offset);
            sender.check(0, SAMPLES - 1).await;
            for sweep in [false, true] {
                if sweep {
                    sender.store().sweep().await.unwrap();
                    sender.check(0, SAMPLES - 1).await;
                }
                sender.send(0..3, first - 1..first + 2, false).await;
                sender.check(first - 1, first + 1).await;
                sender.merge().await;
                sender.check(first - 1, first + 1).await;
                sender.send(0..3, 0..SAMPLES, false).await;
                sender.merge().await;
                sender.check(0, SAMPLES - 1).await;
            }
        }
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = mix64(self.0.wrapping_add(0x9e37_79b9_7f4a_7c15));
        (self.0 >> 16) as usize % n
    }
}

async fn play(seed: u64, options: Options, types: bool) {
    let mut dice = Dice(seed);
    let expires = !options.policies.retention.is_empty();
    let mut sender = Sender::new(seed & 0xffff_ffff, options).await;
    for _ in 0..14 {
        let [first, other] = [dice.below(SAMPLES), dice.below(SAMPLES)];
        let near = (first + dice.below(60)).min(SAMPLES - 1);
        let last = if dice.below(2) == 0 { near } else { first.max(other) };
        let first = first.min(last);
        let whole = types && dice.below(4) == 0;
        let series = [0..3, 0..3, 0..2, 0..1, 1..3, 2..3][dice.below(6)].clone();
        match dice.below(12) {
            0..4 => sender.send(series, first..=last, whole).await,
            4 => sender.send(series, (first..=last).step_by(1 + dice.below(9)), whole).await,
            5 => sender.store().flush().await.unwrap(),
            6..9 => sender.merge().await,
            9 => sender.delete(NAMES[series.start], first, near).await,
            10 => sender.store().sweep().await.map(drop).unwrap(),
            _ => sender.restart().await,
        }
        if expires && dice.below(3) == 0 {
            let offset = dice.below(600) as i64 - 300;
            sender.expire(sender.at(dice.below(SAMPLES / 2)) + offset * MS);
        }
        sender.check(first, last).await;
    }
    for series in [0..1, 0..3, 1..3] {
        sender.send(series, 0..SAMPLES, false).await;
        sender.merge().await;
        sender.check(0, SAMPLES - 1).await;
    }
}

async fn play_all(types: bool, of: impl Fn(Options) -> Options) {
    for seed in 0..SEEDS {
        for (n, options) in few_and_many().map(&of).into_iter().enumerate() {
            eprintln!("seed {seed}, options {n}");
            play(seed, options, types).await;
        }
    }
}

#[tokio::test]
async fn resent_samples_are_stored_once_after_merges_deletions_and_restarts() {
    play_all(false, |options| options).await;
}

#[tokio::test]
async fn resent_samples_with_another_value_type_are_stored_once() {
    play_all(true, |options| options).await;
}

#[tokio::test]
async fn resent_samples_are_stored_once_while_older_ones_expire() {
    play_all(false, expiring).await;
}
