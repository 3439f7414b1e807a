//! What are the properties of a column? Before any codec encodes the column, the permitted codecs estimate their output
//! sizes, most of them from a sample.
//!
//! This file and the codecs `ans/` and `multiple.rs` use each other. Like all codecs, they take a [`Look`]. A [`Look`] uses their
//! functions to compute the cost of entropy coding, with or without division by a common divisor.

use std::cell::{Cell, OnceCell};

use super::{Codec, Numbers, ans, encode_nested, multiple};
use crate::{Effort, Encoding};

/// Number of values in a sample.
const SAMPLE: usize = 512;
/// Number of contiguous runs in the sample of a long column.
const RUNS: usize = 4;

/// With [`Effort::Thorough`], a codec that searches for patterns gets a trial despite a poor estimate if the best output so
/// far takes more bits per number than this. Columns that are so large may contain repetitions, which no estimate shows.
const OPEN_ABOVE: f64 = 8.0;
/// Number of values in a trial. With half as many values, the tables would be so large relative to the values that the
/// trial would miss columns that the codec makes smaller.
const TRIAL: usize = 1_024;

/// A column, the permitted encoding, and a sample of the column.
pub(super) struct Look<'a> {
    pub(super) numbers: Numbers<'a>,
    /// Nesting level: 0 for a column of the chunk.
    pub(super) depth: u8,
    pub(super) encoding: &'a Encoding,
    plan: OnceCell<ans::Plan>,
    /// The lowest estimate so far of all codecs, bits per number.
    least: Cell<f64>,
}

impl<'a> Look<'a> {
    pub(super) const fn new(numbers: Numbers<'a>, depth: u8, encoding: &'a Encoding) -> Self {
        Self { numbers, depth, encoding, plan: OnceCell::new(), least: Cell::new(f64::INFINITY) }
    }

    pub(super) fn promise(&self, bits: f64) {
        self.least.set(self.least.get().min(bits));
    }

    /// Whether all earlier estimates exceed `bits` per number, so that another estimate may help. Always true with
    /// [`Effort::Thorough`].
    pub(super) fn leaves(&self, bits: f64) -> bool {
        self.encoding.effort == Effort::Thorough || self.least.get() > bits
    }

    /// Whether a codec with a poor estimate may still need less than `bytes`. For a long column, encodes a part of it.
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

    /// Contiguous runs of numbers, evenly distributed over the column. All numbers if there are few.
    pub(super) fn runs(&self) -> impl Iterator<Item = &'a [u64]> + Clone + use<'a> {
        self.runs_of(SAMPLE)
    }

    fn runs_of(&self, size: usize) -> impl Iterator<Item = &'a [u64]> + Clone + use<'a> {
        let words = self.numbers.words;
        let (count, length) = if words.len() <= size { (1, words.len()) } else { (RUNS, size / RUNS) };
        let gap = (words.len() - length) / (count - 1).max(1);
        (0..count).filter_map(move |run| words.get(run * gap..run * gap + length))
    }

    pub(super) fn sample(&self) -> impl Iterator<Item = u64> + Clone + use<'a> {
        self.runs().flatten().copied()
    }

    /// How the sample would be entropy coded, and its cost in bits per number.
    pub(super) fn plan(&self) -> ans::Plan {
        *self.plan.get_or_init(|| ans::plan(self.runs(), ans::ORDER_MAX))
    }

    /// Bits per number of entropy coding after `map`. `None` if `map` returns `None` for a number of the sample.
    pub(super) fn bits_after(&self, map: impl Fn(u64) -> Option<u64>) -> Option<f64> {
        let runs = self.runs().map(|run| run.iter().map(|word| map(*word)).collect::<Option<Vec<u64>>>());
        self.bits_of(runs.collect::<Option<Vec<_>>>()?)
    }

    /// Bits per number of entropy coding for runs that are derived from the sample, after division by their common
    /// divisor.
    pub(super) fn bits_of(&self, runs: Vec<Vec<u64>>) -> Option<f64> {
        let bits = |runs: &[Vec<u64>]| ans::plan(runs.iter().map(Vec::as_slice), ans::ORDER_MAX).bits;
        let low = runs.iter().flatten().copied().min_by_key(|word| word.cast_signed())?;
        let divisor = multiple::common_divisor(runs.iter().flatten().copied(), low);
        if divisor < 2 {
            return Some(bits(&runs));
        }
        // The nested column will be encoded as multiples.
        let mut quotients = runs;
        quotients.iter_mut().flatten().for_each(|word| *word = word.wrapping_sub(low) / divisor);
        Some(bits(&quotients))
    }

    /// Converts a fixed size in bytes into bits per number of the column.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn bits_each(&self, bytes: usize) -> f64 {
        (bytes * 8) as f64 / self.numbers.words.len().max(1) as f64
    }

    pub(super) fn put_nested(&self, out: &mut Vec<u8>, numbers: Numbers<'_>) {
        encode_nested(out, numbers, self.depth, self.encoding);
    }
}
