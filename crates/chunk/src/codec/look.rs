//! What does a column look like? Codecs judge by it what they would make of the column, before any of them writes it.

use std::cell::{Cell, OnceCell};

use super::{Codec, Numbers, ans, encode_nested, multiple};
use crate::{Effort, Encoding};

/// Numbers of a sample.
const SAMPLE: usize = 512;
/// Runs of neighbours that a sample of a longer column consists of.
const RUNS: usize = 4;

/// Bits a number above which codecs that search get a trial at full effort: of numbers that take more than a byte each much may
/// repeat.
const OPEN_ABOVE: f64 = 8.0;
/// Numbers of a trial. With half as many, tables weigh so much that columns which would be smaller are missed.
const TRIAL: usize = 1_024;

/// A column, what may be done to it, and a sample of it.
pub(super) struct Look<'a> {
    pub(super) numbers: Numbers<'a>,
    /// 0 for a column of the chunk; grows with nesting.
    pub(super) depth: u8,
    pub(super) encoding: &'a Encoding,
    plan: OnceCell<ans::Plan>,
    /// The least bits a number that a codec has promised so far.
    least: Cell<f64>,
}

impl<'a> Look<'a> {
    pub(super) const fn new(numbers: Numbers<'a>, depth: u8, encoding: &'a Encoding) -> Self {
        Self { numbers, depth, encoding, plan: OnceCell::new(), least: Cell::new(f64::INFINITY) }
    }

    /// Notes what a codec promises.
    pub(super) fn promise(&self, bits: f64) {
        self.least.set(self.least.get().min(bits));
    }

    /// Whether the codecs before this one leave so many bits a number that another look may pay. At full effort it always may.
    pub(super) fn leaves(&self, bits: f64) -> bool {
        self.encoding.effort == Effort::Thorough || self.least.get() > bits
    }

    /// Whether a codec that promised too much may still write the column in less than so many bytes: by what it makes of a part.
    #[expect(clippy::cast_precision_loss, reason = "a measure of preference")]
    pub(super) fn is_missed(&self, codec: &dyn Codec, bytes: f64) -> bool {
        let words = self.numbers.words;
        let bits = bytes * 8.0 / words.len() as f64;
        if self.encoding.effort == Effort::Fast || bits <= OPEN_ABOVE || !codec.searches() {
            return false;
        }
        if words.len() <= TRIAL {
            return true;
        }
        let part = self.runs_of(TRIAL).flatten().copied().collect::<Vec<u64>>();
        let part = Look::new(Numbers { words: &part, ..self.numbers }, self.depth, self.encoding);
        codec.encode(&part).is_some_and(|written| part.bits_each(written.len()) < bits)
    }

    /// Runs of neighbours, spread evenly; all numbers when there are few.
    pub(super) fn runs(&self) -> impl Iterator<Item = &'a [u64]> + Clone + use<'a> {
        self.runs_of(SAMPLE)
    }

    fn runs_of(&self, size: usize) -> impl Iterator<Item = &'a [u64]> + Clone + use<'a> {
        let words = self.numbers.words;
        let (count, length) = if words.len() <= size { (1, words.len()) } else { (RUNS, size / RUNS) };
        let gap = (words.len() - length) / (count - 1).max(1);
        (0..count).filter_map(move |run| words.get(run * gap..run * gap + length))
    }

    /// All numbers of the sample.
    pub(super) fn sample(&self) -> impl Iterator<Item = u64> + Clone + use<'a> {
        self.runs().flatten().copied()
    }

    /// What entropy coding would make of the numbers; the measure that other codecs are held against.
    pub(super) fn plan(&self) -> ans::Plan {
        *self.plan.get_or_init(|| ans::plan(self.runs(), ans::ORDER_MAX))
    }

    /// Bits a number that entropy coding would need after `map`; `None` when a number of the sample has no image.
    pub(super) fn bits_after(&self, map: impl Fn(u64) -> Option<u64>) -> Option<f64> {
        let runs = self.runs().map(|run| run.iter().map(|word| map(*word)).collect::<Option<Vec<u64>>>());
        self.bits_of(runs.collect::<Option<Vec<_>>>()?)
    }

    /// Bits a number that entropy coding would need for runs that stand for those of the sample, in multiples of what divides
    /// them all.
    pub(super) fn bits_of(&self, runs: Vec<Vec<u64>>) -> Option<f64> {
        let bits = |runs: &[Vec<u64>]| ans::plan(runs.iter().map(Vec::as_slice), ans::ORDER_MAX).bits;
        let low = runs.iter().flatten().copied().min_by_key(|word| word.cast_signed())?;
        let divisor = multiple::common_divisor(runs.iter().flatten().copied(), low);
        if divisor < 2 {
            return Some(bits(&runs));
        }
        // The nested column will be one of multiples.
        let mut quotients = runs;
        quotients.iter_mut().flatten().for_each(|word| *word = word.wrapping_sub(low) / divisor);
        Some(bits(&quotients))
    }

    /// So many bytes, once for the column, in bits a number.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn bits_each(&self, bytes: usize) -> f64 {
        (bytes * 8) as f64 / self.numbers.words.len().max(1) as f64
    }

    /// Writes a column inside this one.
    pub(super) fn put_nested(&self, out: &mut Vec<u8>, numbers: Numbers<'_>) {
        encode_nested(out, numbers, self.depth, self.encoding);
    }
}
