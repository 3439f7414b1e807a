//! A store that finds series by the text of their senders holds the same records, refuses the same ones and has the same counters
//! as a store that makes labels for every sample.
//!
//! Random bodies in line protocol and remote write go to both stores, with samples in any order. Series have several spellings,
//! which are learned at random moments. Series are deleted, forgotten and created again, also while a body is decoded. In every
//! second pair of stores, records far from the present time are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use tacho_ingest::line_protocol::{Decoder, Precision};
use tacho_ingest::{Rejects, remote_write};
use tacho_model::{
    Batch, FindSeries, Kind, KnownSamples, KnownSeries, ManualClock, Matcher, Random, Spelling, SpellingKeys,
    TimeRange,
};
use tacho_store::{Appended, ErrorKind, Finder, Learned, MemoryDriver, Options, REFUSED_NAMED_MAX, Store};

const SEEDS: u64 = 10;
const STEPS: usize = 60;
const NOW: i64 = 1_000;
/// More than two days after [`NOW`].
const FAR_MS: u64 = 200_000_000;
const BODY_BYTES_MAX: usize = 1 << 20;

/// Counts of events that must happen, because the test would otherwise prove nothing.
#[derive(Debug, Default)]
struct Seen {
    known: usize,
    forgotten: u64,
    stale: usize,
    learned_within: usize,
    far: usize,
    replaced: u64,
}

impl Seen {
    fn count(&mut self, side: &Side) {
        let stats = side.store.stats();
        self.forgotten += stats.upkeep.series_forgotten;
        self.replaced += stats.samples_replaced;
    }
}

struct Side {
    driver: Arc<MemoryDriver>,
    directory: tempfile::TempDir,
    chunks_max: usize,
    store: Arc<Store>,
}

impl Side {
    async fn new(chunks_max: usize) -> Self {
        let (driver, directory) = (Arc::new(MemoryDriver::new()), tempfile::tempdir().unwrap());
        let store = open(&driver, &directory, chunks_max).await;
        Self { driver, directory, chunks_max, store }
    }

    async fn reopen(self) -> Self {
        let Self { driver, directory, chunks_max, store } = self;
        drop(store);
        let store = open(&driver, &directory, chunks_max).await;
        Self { driver, directory, chunks_max, store }
    }

    /// The counters since the store was opened, after all flushes that have begun. A flush counts replaced samples.
    async fn counters(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        while self.store.stats().sealed > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let stats = self.store.stats();
        let refused = (stats.series_refused, stats.records_far_refused);
        (
            stats.series,
            stats.records,
            stats.samples_replaced,
            stats.batches,
            refused,
            stats.upkeep.series_forgotten,
        )
    }

    /// Deletes the samples of one host, and forgets the series that become empty.
    async fn delete(&self, host: u64) {
        let matcher = Matcher::equal("host", &host.to_string());
        self.store.delete(&[matcher], TimeRange::ALL).await.unwrap();
        self.store.flush().await.unwrap();
        self.store.sweep().await.unwrap();
    }

    async fn records(&self) -> BTreeMap<String, Vec<String>> {
        let mut all = BTreeMap::new();
        for (id, labels) in self.store.find(Kind::Sample, &[]) {
            let samples = self.store.samples(id, TimeRange::ALL).await.unwrap();
            all.insert(labels.to_string(), samples.iter().map(|sample| format!("{sample:?}")).collect());
        }
        for (id, labels) in self.store.find(Kind::Entry, &[]) {
            let entries = self.store.entries(id, TimeRange::ALL).await.unwrap();
            all.insert(
                format!("entries {labels}"),
                entries.iter().map(|entry| format!("{entry:?}")).collect(),
            );
        }
        all
    }
}

async fn open(driver: &Arc<MemoryDriver>, directory: &tempfile::TempDir, chunks_max: usize) -> Arc<Store> {
    let options = Options { merge_in_background: false, chunks_max, ..Options::default() };
    let clock = Arc::new(ManualClock::new(NOW));
    Store::open(driver.clone(), directory.path(), options, clock).await.unwrap()
}

/// A finder during whose lookups the store learns further spellings.
struct Sudden<'a> {
    finder: Finder<'a>,
    store: &'a Store,
    learned: Vec<Learned>,
    /// Number of lookups before the store learns them.
    lookups: u64,
}

impl FindSeries for Sudden<'_> {
    fn keys(&self) -> &SpellingKeys {
        self.finder.keys()
    }

    fn find(&mut self, spelling: Spelling) -> Option<KnownSeries> {
        if self.lookups == 0 {
            self.finder.release();
            self.store.learn(&std::mem::take(&mut self.learned));
        }
        self.lookups = self.lookups.wrapping_sub(1);
        self.finder.find(spelling)
    }

    fn release(&mut self) {
        self.finder.release();
    }
}

enum Body {
    Lines(String),
    Remote(Vec<u8>),
}

struct Decoded {
    batch: Batch,
    known: KnownSamples,
    spellings: Vec<Spelling>,
    /// The refused lines or series, with the reasons.
    rejects: Vec<String>,
}

fn plain(body: &Body) -> Decoded {
    let (batch, rejects) = match body {
        Body::Lines(lines) => {
            let decoded = Decoder::default().decode(lines.as_bytes(), Precision::Nanoseconds, NOW);
            (decoded.batch, texts(&decoded.rejects))
        }
        Body::Remote(message) => {
            let decoded = remote_write::decode(message, BODY_BYTES_MAX).unwrap();
            (decoded.batch, texts(&decoded.rejects))
        }
    };
    Decoded { batch, rejects, known: KnownSamples::default(), spellings: Vec::new() }
}

fn texts<R: ToString>(rejects: &Rejects<R>) -> Vec<String> {
    rejects.named.iter().map(ToString::to_string).chain([rejects.count.to_string()]).collect()
}

fn known(body: &Body, decoder: &mut Decoder, finder: &mut dyn FindSeries) -> Decoded {
    match body {
        Body::Lines(lines) => {
            let decoded = decoder.decode_known(lines.as_bytes(), Precision::Nanoseconds, NOW, finder);
            let rejects = texts(&decoded.rejects);
            Decoded { batch: decoded.batch, known: decoded.known, spellings: decoded.spellings, rejects }
        }
        Body::Remote(message) => {
            let decoded = remote_write::decode_known(message, BODY_BYTES_MAX, finder).unwrap();
            let rejects = texts(&decoded.rejects);
            Decoded { batch: decoded.batch, known: decoded.known, spellings: decoded.spellings, rejects }
        }
    }
}

/// An `odd` line may have texts or errors. Lines with different spellings of a series never have the same time: of two samples
/// with the same time, the stores could keep different ones.
fn line(random: &mut Random, host: u64, odd: bool) -> String {
    let spelling = random.below(2);
    let tags = [format!("host={host}"), r"path=/a\ b\,c".to_owned()];
    let (first, second) = if spelling == 0 { (&tags[0], &tags[1]) } else { (&tags[1], &tags[0]) };
    let space = if random.one_in(4) { "  " } else { " " };
    let mut line = format!("m{},{first},{second}{space}", host % 3);
    let mut separator = "";
    for _ in 0..=random.below(3) {
        let field = ["v", "w", "value", r"a\ b", "late"][usize::try_from(random.below(5)).unwrap()];
        let value = match random.below(20) {
            0..3 if odd => "\"a text, 1\"".to_owned(),
            3 if odd => "soon".to_owned(),
            4 => "t".to_owned(),
            5 => format!("{}i", random.below(1_000)),
            6 => "12345678901234567890.5".to_owned(),
            _ => format!("{}.5", random.below(1_000)),
        };
        let _ = write!(line, "{separator}{field}={value}");
        separator = ",";
    }
    match random.below(10) {
        0 if odd => line.push_str(" never"),
        1 => _ = write!(line, " {}", FAR_MS * 1_000_000 + random.below(3) * 2 + spelling),
        _ => _ = write!(line, " {}", random.below(6) * 2 + spelling),
    }
    line.push('\n');
    line
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
    out.extend_from_slice(bytes);
    out
}

/// An encoded series of remote write. An `odd` series may have a histogram or a late label, and then the decoder makes its
/// labels even if the store knows it. The times differ from the times of all lines.
fn series(random: &mut Random, host: u64, odd: bool) -> Vec<u8> {
    let label =
        |name: &str, value: &str| field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat());
    let mut labels = [
        label("__name__", &format!("m{}_v", host % 3)),
        label("host", &host.to_string()),
        label("path", "/a b,c"),
    ];
    let spelling = random.below(2);
    if spelling == 1 {
        labels.reverse();
    }
    let mut message = labels.concat();
    for _ in 0..random.below(3) {
        let begin = if random.one_in(8) { FAR_MS + 40 } else { 40 };
        let mut ms = begin + random.below(4) * 2 + spelling;
        let value = random.below(1_000) as f64;
        let mut sample = [&[0x09], &value.to_le_bytes()[..], &[0x10]].concat();
        while ms > 0x7f {
            sample.push(ms as u8 | 0x80);
            ms >>= 7;
        }
        sample.push(ms as u8);
        message.extend(field(2, &sample));
    }
    match random.below(12) {
        0 if odd => message.extend(field(4, b"")),
        1 if odd => message.extend(label("late", "label")),
        2 => message.extend(field(3, b"")),
        _ => {}
    }
    message
}

fn body(random: &mut Random) -> Body {
    let host = |random: &mut Random| random.below(9);
    let odd = random.one_in(3);
    if random.one_in(3) {
        let all = (0..random.below(12)).flat_map(|_| {
            let host = host(random);
            let message = series(random, host, odd);
            [&[0x0a, u8::try_from(message.len()).unwrap()], &message[..]].concat()
        });
        let message: Vec<u8> = all.collect();
        return Body::Remote(snap::raw::Encoder::new().compress_vec(&message).unwrap());
    }
    let lines = (0..random.below(30)).map(|_| {
        let host = host(random);
        line(random, host, odd)
    });
    Body::Lines(lines.collect())
}

/// A decoder that has discarded the heads (measurement and tags) that it remembered, so that it asks the store for series.
fn asking() -> Decoder {
    let mut decoder = Decoder::default();
    let lines: String = (0..40_000).map(|n| format!("fill,n={n} v=1\n")).collect();
    decoder.decode(lines.as_bytes(), Precision::Nanoseconds, NOW);
    assert_eq!(decoder.resets(), 1);
    decoder
}

/// Writes a body to a store that knows spellings. The series of the host `deleted` are deleted after the body is decoded.
async fn write_known(
    side: &Side,
    (body, deleted): (&Body, Option<u64>),
    (decoder, pending): (&mut Decoder, &mut Vec<Learned>),
    random: &mut Random,
    seen: &mut Seen,
) -> Appended {
    let spellings = side.store.spellings();
    let within = random.one_in(3) && !pending.is_empty();
    let decoded = if within {
        seen.learned_within += 1;
        let (learned, lookups) = (std::mem::take(pending), random.below(8));
        let mut finder = Sudden { finder: spellings.finder(), store: &side.store, learned, lookups };
        known(body, decoder, &mut finder)
    } else {
        known(body, decoder, &mut spellings.finder())
    };
    seen.known += decoded.known.samples().len();
    if let Some(host) = deleted {
        side.delete(host).await;
    }
    let series = decoded.batch.samples.iter().zip(&decoded.spellings);
    let learned = series.map(|(series, spelling)| Learned {
        id: series.labels.id(),
        spelling: *spelling,
        note: 0,
        labels_bytes: u16::try_from(series.labels.canonical_bytes()).unwrap(),
    });
    pending.extend(learned);
    assert_eq!(decoded.rejects, plain(body).rejects);
    let appended = match side.store.append_known(decoded.batch, decoded.known, None).await {
        Ok(appended) => appended,
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Full { .. }), "{error}");
            seen.stale += 1;
            side.store.append(plain(body).batch, None).await.unwrap()
        }
    };
    if !random.one_in(3) {
        side.store.learn(&std::mem::take(pending));
    }
    appended
}

/// The refused records by kind, and the refused series that the answer names. It may name a series twice if the series occurs
/// twice in the batch. Returns no series if the answer names [`REFUSED_NAMED_MAX`], because each store may then name others.
fn refused(appended: Appended) -> ([usize; 3], BTreeSet<String>) {
    let Appended::Partly(refused) = appended else { return Default::default() };
    let names = refused.named.iter().filter_map(|series| series.reason.split(": limit").next());
    let names = if refused.named.len() < REFUSED_NAMED_MAX {
        names.map(str::to_owned).collect()
    } else {
        BTreeSet::new()
    };
    (refused.records, names)
}

#[tokio::test]
async fn known_series_hold_the_same_records_as_labelled_ones_and_refuse_the_same() {
    let (mut seen, mut decoder) = (Seen::default(), asking());
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let chunks_max = if seed % 2 == 0 { Options::default().chunks_max } else { 0 };
        let (mut with, mut without) = (Side::new(chunks_max).await, Side::new(chunks_max).await);
        let mut pending = Vec::new();
        for step in 0..STEPS {
            match random.below(16) {
                0 => {
                    seen.count(&with);
                    (with, without) = (with.reopen().await, without.reopen().await);
                }
                1 => {
                    with.store.flush().await.unwrap();
                    without.store.flush().await.unwrap();
                }
                2 => {
                    let host = random.below(9);
                    with.delete(host).await;
                    without.delete(host).await;
                }
                _ => {
                    let body = body(&mut random);
                    let deleted = random.one_in(6).then(|| random.below(9));
                    let state = (&mut decoder, &mut pending);
                    let appended = write_known(&with, (&body, deleted), state, &mut random, &mut seen).await;
                    if let Some(host) = deleted {
                        without.delete(host).await;
                    }
                    let expect = without.store.append(plain(&body).batch, None).await.unwrap();
                    let (found, expect) = (refused(appended), refused(expect));
                    seen.far += found.0.iter().sum::<usize>();
                    assert_eq!(found.0, expect.0, "seed {seed}, step {step}");
                    if !found.1.is_empty() && !expect.1.is_empty() {
                        assert_eq!(found.1, expect.1, "seed {seed}, step {step}");
                    }
                }
            }
            assert_eq!(with.counters().await, without.counters().await, "seed {seed}, step {step}");
            let (found, expect) = (with.records().await, without.records().await);
            for name in found.keys().chain(expect.keys()) {
                assert_eq!(found.get(name), expect.get(name), "seed {seed}, step {step}: {name}");
            }
        }
        seen.count(&with);
    }
    println!("{seen:?}");
    assert!(
        seen.known > 300 && seen.forgotten > 10 && seen.stale > 0 && seen.learned_within > 10,
        "{seen:?}"
    );
    assert!(seen.far > 50 && seen.replaced > 50, "{seen:?}");
}
