//! Open samples of series (those in the memtable), packed, and their lookup by series number.
//!
//! The index gives each series a number. With this number, a generation finds the open samples of the series without hashing.
//! While a series shares its times with others, only its values are packed (`words.rs`). A series with too many samples, or with
//! more than a few samples whose times are not shared, has packed times and values (`tacho_chunk::pack`). Samples after a change
//! of the type of value are not packed. Nearly all series have one type.

use std::num::NonZero;

use tacho_chunk::ValueColumn;
use tacho_chunk::pack::PackedSamples;
use tacho_model::{Sample, TimeRange, Timestamp, Value, ValueType};

use super::times::{Node, ROOT, SharedTimes};
use super::words::Words;
use crate::pages::Pages;
use crate::scatter::Walk;

#[derive(Clone, Copy, Debug)]
pub struct OpenSamples<'a> {
    held: &'a Held,
    times: &'a SharedTimes,
}

/// Samples of one series, in order of arrival.
#[derive(Debug)]
struct Held {
    number: u32,
    value_type: ValueType,
    form: Form,
}

/// An idle series has one sample since the last seal. It has no heap memory of its own, because there may be millions of
/// idle series. There may also be millions of series with several samples each. They share their times, and their values take few
/// bytes ([`Form::Shared`]).
#[derive(Debug)]
enum Form {
    One {
        at: Timestamp,
        word: u64,
    },
    /// At most [`SHARED_MAX`] samples, with times that other series may have, too.
    Shared {
        node: Node,
        words: Words,
    },
    /// At most [`FEW_MAX`] samples. Their number is `used`; the rest of the slice is unused.
    Few {
        samples: Box<[Few]>,
        used: u8,
    },
    Many(Box<Packed>),
}

type Few = (Timestamp, u64);

/// Limit on the samples of a series with shared times. If there are many series, the limit differs between them. Otherwise the
/// same scrape would pack all series that are scraped together. Few series may be packed at once.
const fn shared_max(number: u32, series: usize) -> usize {
    if series <= PACKED_SERIES_MAX { FEW_MAX } else { SHARED_MAX - (number % SHARED_LIMITS) as usize }
}

/// The highest limit on the samples of a series with shared times, see [`shared_max`]. A series that exceeds its limit is packed,
/// so that a range of its samples can be read without the others.
const SHARED_MAX: usize = 256;
/// Number of different limits of series with shared times.
const SHARED_LIMITS: u32 = 64;
/// A series with more samples than this, and times that are not shared, is packed. An empty [`Packed`] takes about as much memory
/// as four samples.
const FEW_MAX: usize = 16;
/// A generation with at most this many series packs each of them above [`FEW_MAX`] samples, because their memory is small: some
/// 9 MB. A packed series takes about 1 KiB, but its samples are added and read faster.
const PACKED_SERIES_MAX: usize = 8_192;
const UNUSED: Few = (0, 0);

#[derive(Debug)]
struct Packed {
    samples: PackedSamples,
    value_type: ValueType,
    /// All samples after the packed ones. Begins with the first value of another type.
    mixed: Vec<Sample>,
}

/// Samples of one type, with strictly ascending times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub at: Vec<Timestamp>,
    pub values: ValueColumn,
}

const fn word_of(value: Value) -> u64 {
    match value {
        Value::F64(v) => v.to_bits(),
        Value::I64(v) => v.cast_unsigned(),
        Value::U64(v) => v,
    }
}

const fn value_of(word: u64, value_type: ValueType) -> Value {
    match value_type {
        ValueType::F64 => Value::F64(f64::from_bits(word)),
        ValueType::I64 => Value::I64(word.cast_signed()),
        ValueType::U64 => Value::U64(word),
    }
}

impl Held {
    const fn new(number: u32, first: Sample) -> Self {
        let form = Form::One { at: first.at, word: word_of(first.value) };
        Self { number, value_type: first.value.value_type(), form }
    }

    /// Packs samples with shared times if there are more than `shared_max`. Returns the memory that the samples take without the
    /// shared times, bytes.
    fn push(&mut self, samples: &[Sample], shared_max: usize, times: &mut SharedTimes) -> usize {
        let (mut grown, mut rest) = (0, samples);
        loop {
            if let Form::Many(packed) = &mut self.form {
                rest.iter().for_each(|sample| grown += packed.push(*sample));
                return grown;
            }
            let before = self.heap_bytes();
            rest = self.append_shared(rest, shared_max, times);
            if let Some((sample, more)) = rest.split_first() {
                let is_of_type = sample.value.value_type() == self.value_type;
                if !(is_of_type && self.append(sample.at, word_of(sample.value), times)) {
                    self.change(*sample, is_of_type, times);
                }
                rest = more;
            }
            grown += self.heap_bytes().saturating_sub(before);
            if rest.is_empty() {
                return grown;
            }
        }
    }

    /// Appends the first samples that have shared times and the series' type. Returns the other samples.
    #[inline]
    fn append_shared<'a>(
        &mut self,
        samples: &'a [Sample],
        shared_max: usize,
        times: &mut SharedTimes,
    ) -> &'a [Sample] {
        let Form::Shared { node, words } = &mut self.form else { return samples };
        let room = shared_max.saturating_sub(times.count(*node));
        let mut rest = samples;
        for sample in samples.iter().take(room) {
            let is_of_type = sample.value.value_type() == self.value_type;
            let Some(next) = is_of_type.then(|| times.follow(*node, sample.at)).flatten() else { break };
            words.push(word_of(sample.value), self.value_type);
            *node = next;
            rest = rest.split_first().map_or(rest, |(_, more)| more);
        }
        rest
    }

    /// Appends a sample of the series' type, and returns `true`. Returns `false` if the form cannot hold the sample.
    fn append(&mut self, at: Timestamp, word: u64, times: &mut SharedTimes) -> bool {
        let value_type = self.value_type;
        match &mut self.form {
            Form::One { at: first_at, word: first } => {
                let first_node = times.follow(ROOT, *first_at);
                let Some(node) = first_node.and_then(|node| times.follow(node, at)) else { return false };
                let mut words = Words::new(*first, value_type);
                words.push(word, value_type);
                self.form = Form::Shared { node, words };
                true
            }
            Form::Few { samples, used } => {
                let len = usize::from(*used);
                if len == samples.len() && len < FEW_MAX {
                    *samples = few(samples, len * 2);
                }
                let Some(place) = samples.get_mut(len) else { return false };
                (*place, *used) = ((at, word), *used + 1);
                true
            }
            // `append_shared` was called before.
            Form::Shared { .. } | Form::Many(_) => false,
        }
    }

    /// Changes the form and appends a sample. Packs the samples if there are too many, or if the sample has another type.
    #[cold]
    fn change(&mut self, sample: Sample, is_of_type: bool, times: &SharedTimes) {
        let mut all = OpenSamples { held: self, times }.in_order();
        self.form = if is_of_type && all.len() < FEW_MAX {
            all.push((sample.at, word_of(sample.value)));
            let used = u8::try_from(all.len()).unwrap_or(u8::MAX);
            Form::Few { samples: few(&all, all.len().next_power_of_two()), used }
        } else {
            let mut packed = Packed::new(&all, self.value_type);
            packed.push(sample);
            Form::Many(Box::new(packed))
        };
    }

    /// Heap memory without the shared times, bytes.
    fn heap_bytes(&self) -> usize {
        match &self.form {
            Form::One { .. } => 0,
            Form::Shared { words, .. } => words.bytes(),
            Form::Few { samples, .. } => size_of_val(&**samples),
            Form::Many(packed) => packed.bytes(),
        }
    }
}

/// The samples, followed by [`UNUSED`] up to the length `len`.
fn few(samples: &[Few], len: usize) -> Box<[Few]> {
    let mut all = Vec::with_capacity(len);
    all.extend_from_slice(samples);
    all.resize(len, UNUSED);
    all.into_boxed_slice()
}

impl OpenSamples<'_> {
    pub fn len(self) -> usize {
        match &self.held.form {
            Form::One { .. } => 1,
            Form::Shared { node, .. } => self.times.count(*node),
            Form::Few { used, .. } => usize::from(*used),
            Form::Many(packed) => packed.samples.len() + packed.mixed.len(),
        }
    }

    fn last(self) -> Timestamp {
        match &self.held.form {
            Form::One { at, .. } => *at,
            Form::Shared { node, .. } => self.times.last(*node),
            Form::Few { .. } => self.few().last().map_or(0, |(at, _)| *at),
            Form::Many(packed) => {
                let packed_last = || packed.samples.last().map_or(0, |(at, _)| at);
                packed.mixed.last().map_or_else(packed_last, |sample| sample.at)
            }
        }
    }

    fn few(&self) -> &[Few] {
        match &self.held.form {
            Form::Few { samples, used } => samples.get(..usize::from(*used)).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Times and words of all samples, in order of arrival; nothing for [`Form::Many`].
    fn in_order(self) -> Vec<(Timestamp, u64)> {
        match &self.held.form {
            Form::One { at, word } => vec![(*at, *word)],
            Form::Shared { node, words } => {
                self.times.list(*node).into_iter().zip(words.unpack(self.held.value_type)).collect()
            }
            Form::Few { .. } => self.few().to_vec(),
            Form::Many(_) => Vec::new(),
        }
    }

    /// Appends the times of all samples, in order of arrival.
    pub fn times(self, at: &mut Vec<Timestamp>) {
        match &self.held.form {
            Form::One { at: one, .. } => at.push(*one),
            Form::Shared { node, .. } => at.extend(self.times.list(*node)),
            Form::Few { .. } => at.extend(self.few().iter().map(|(at, _)| *at)),
            Form::Many(packed) => {
                packed.samples.unpack_into(at, &mut Vec::new());
                at.extend(packed.mixed.iter().map(|sample| sample.at));
            }
        }
    }

    /// Sorted samples of a range, as one column per type of value. Of samples with equal times, only the last one is
    /// kept. Also returns the number of replaced samples.
    pub fn columns(self, range: TimeRange) -> (Vec<Column>, usize) {
        let (at, words, replaced) = match &self.held.form {
            Form::One { at, word } if range.contains(*at) => (vec![*at], vec![*word], 0),
            Form::One { .. } => return (Vec::new(), 0),
            Form::Shared { node, words } if range == TimeRange::ALL => {
                ascending((self.times.list(*node), words.unpack(self.held.value_type)))
            }
            Form::Shared { .. } | Form::Few { .. } => {
                ascending(self.in_order().into_iter().filter(|(at, _)| range.contains(*at)).unzip())
            }
            Form::Many(packed) if packed.mixed.is_empty() => packed.columns(range),
            Form::Many(packed) => return packed.columns_by_type(range),
        };
        let values = ValueColumn::from_words(words, self.held.value_type);
        (if at.is_empty() { Vec::new() } else { vec![Column { at, values }] }, replaced)
    }
}

impl Packed {
    fn new(first: &[Few], value_type: ValueType) -> Self {
        let mut samples = PackedSamples::default();
        first.iter().for_each(|(at, word)| _ = samples.push(*at, *word));
        Self { samples, value_type, mixed: Vec::new() }
    }

    /// Returns the memory that the sample takes, bytes.
    #[inline]
    fn push(&mut self, sample: Sample) -> usize {
        if self.mixed.is_empty() && sample.value.value_type() == self.value_type {
            return self.samples.push(sample.at, word_of(sample.value));
        }
        let capacity = self.mixed.capacity();
        self.mixed.push(sample);
        (self.mixed.capacity() - capacity) * size_of::<Sample>()
    }

    fn bytes(&self) -> usize {
        let rest = size_of::<Self>() - size_of::<PackedSamples>();
        self.samples.bytes() + rest + self.mixed.capacity() * size_of::<Sample>()
    }

    /// Times and words of the packed values, and the number of values that later ones replaced.
    fn columns(&self, range: TimeRange) -> (Vec<Timestamp>, Vec<u64>, usize) {
        let (mut at, mut words) = (Vec::new(), Vec::new());
        self.samples.unpack_range(range, &mut at, &mut words);
        ascending((at, words))
    }

    fn columns_by_type(&self, range: TimeRange) -> (Vec<Column>, usize) {
        let (mut at, mut words) = (Vec::new(), Vec::new());
        self.samples.unpack_range(range, &mut at, &mut words);
        let packed = at.iter().zip(&words);
        let packed = packed.map(|(at, word)| Sample { at: *at, value: value_of(*word, self.value_type) });
        let mixed = self.mixed.iter().copied().filter(|sample| range.contains(sample.at));
        let all: Vec<Sample> = packed.chain(mixed).collect();
        let count = all.len();
        let all = latest(all);
        (by_type(&all), count - all.len())
    }
}

/// Times and words sorted by time. Of samples with equal times, only the last one is kept. Also returns the number of replaced
/// samples.
fn ascending((at, words): (Vec<Timestamp>, Vec<u64>)) -> (Vec<Timestamp>, Vec<u64>, usize) {
    if at.is_sorted_by(|a, b| a < b) {
        return (at, words, 0);
    }
    let mut both: Vec<(Timestamp, u64)> = at.into_iter().zip(words).collect();
    both.sort_by_key(|(at, _)| *at);
    let count = both.len();
    keep_last(&mut both, |(at, _)| *at);
    let replaced = count - both.len();
    let (at, words) = both.into_iter().unzip();
    (at, words, replaced)
}

/// Samples sorted by time. Of samples with equal times, only the last one is kept.
pub fn latest(mut samples: Vec<Sample>) -> Vec<Sample> {
    if !samples.is_sorted_by(|a, b| a.at < b.at) {
        samples.sort_by_key(|sample| sample.at);
        keep_last(&mut samples, |sample| sample.at);
    }
    samples
}

/// Keeps the last of each run of equal times.
fn keep_last<T: Copy>(sorted: &mut Vec<T>, at: impl Fn(&T) -> Timestamp) {
    // `dedup_by` passes (later, earlier) and removes the later element.
    sorted.dedup_by(|later, earlier| {
        let same = at(later) == at(earlier);
        if same {
            *earlier = *later;
        }
        same
    });
}

/// One column for each type of value in the samples, f64 first.
fn by_type(samples: &[Sample]) -> Vec<Column> {
    let column = |value_type: ValueType| {
        let of_type = samples.iter().filter(|s| s.value.value_type() == value_type);
        let (at, words): (Vec<_>, Vec<_>) = of_type.map(|s| (s.at, word_of(s.value))).unzip();
        Column { at, values: ValueColumn::from_words(words, value_type) }
    };
    let all = [ValueType::F64, ValueType::I64, ValueType::U64].map(column);
    all.into_iter().filter(|column| !column.at.is_empty()).collect()
}

/// Series per block. A block is never reallocated, so a million series do not leave a half-empty vector.
const BLOCK: usize = 1_024;

/// Number of series of a page of `places`.
const PLACES: usize = 256;

/// The open samples of all series of a generation, by their number in the index.
#[derive(Debug, Default)]
pub struct OpenSeries {
    /// For the number of each series with samples, 1 + position of the series, counted over all `blocks`.
    places: Pages<NonZero<u32>, PLACES>,
    blocks: Vec<Vec<Held>>,
    times: SharedTimes,
    values_max: usize,
    /// Number of samples that are in another window of time than the previous sample of their series.
    window_changes: usize,
}

impl OpenSeries {
    /// Adds samples of a series, in their order. Returns the memory that they take, bytes.
    pub fn push(&mut self, number: u32, samples: &[Sample]) -> usize {
        let Some((first, rest)) = samples.split_first() else { return 0 };
        let Some(last) = self.get(number).map(OpenSamples::last) else {
            let grown = self.make_place(number, *first);
            return grown + self.push(number, rest);
        };
        let mut walk = Walk::from(last);
        self.window_changes += samples.iter().filter(|sample| walk.changes_window(sample.at)).count();
        let (before, shared_max) = (self.times.bytes(), shared_max(number, self.len()));
        let Some((held, times)) = self.get_mut(number) else { return 0 };
        let grown = held.push(samples, shared_max, times) + times.bytes().saturating_sub(before);
        let values = OpenSamples { held, times }.len();
        self.values_max = self.values_max.max(values);
        grown
    }

    /// Adds a new series with its first sample. Returns the memory that it takes, bytes.
    fn make_place(&mut self, number: u32, first: Sample) -> usize {
        let places = self.places.bytes();
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let before = (self.blocks.len() - 1) * BLOCK;
        if let Some(block) = self.blocks.last_mut() {
            block.push(Held::new(number, first));
            // The position is at most the number of series, which is a u32.
            let place = u32::try_from(before + block.len()).ok().and_then(NonZero::new);
            self.places.insert(number, place.unwrap_or(NonZero::<u32>::MAX));
        }
        self.values_max = self.values_max.max(1);
        size_of::<Held>() + self.places.bytes().saturating_sub(places)
    }

    fn place(&self, number: u32) -> Option<usize> {
        self.places.get(number).map(|place| place.get() as usize - 1)
    }

    fn get_mut(&mut self, number: u32) -> Option<(&mut Held, &mut SharedTimes)> {
        let place = self.place(number)?;
        let held = self.blocks.get_mut(place / BLOCK)?.get_mut(place % BLOCK)?;
        Some((held, &mut self.times))
    }

    pub fn get(&self, number: u32) -> Option<OpenSamples<'_>> {
        let place = self.place(number)?;
        let held = self.blocks.get(place / BLOCK)?.get(place % BLOCK)?;
        Some(OpenSamples { held, times: &self.times })
    }

    /// Series with samples, in the order in which their first samples arrived.
    pub fn iter(&self) -> impl Iterator<Item = (u32, OpenSamples<'_>)> {
        let of = |held| OpenSamples { held, times: &self.times };
        self.blocks.iter().flatten().map(move |held| (held.number, of(held)))
    }

    pub fn len(&self) -> usize {
        // All blocks before the last one are full.
        self.blocks.last().map_or(0, |last| (self.blocks.len() - 1) * BLOCK + last.len())
    }

    pub const fn window_changes(&self) -> usize {
        self.window_changes
    }

    /// Number of samples of the longest series.
    pub const fn values_max(&self) -> usize {
        self.values_max
    }
}

#[cfg(test)]
mod tests;
