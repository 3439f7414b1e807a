//! Codec for numbers with small or repetitive differences. With entropy coding, a frequent difference takes a fraction of
//! a byte.
//!
//! Tabled asymmetric numeral systems (Duda, "Asymmetric numeral systems", 2013). Differences become tokens (`tokens.rs`), and
//! tokens become states of a machine (`table.rs`). Four states are interleaved, so that the processor works on them in
//! parallel. A column of 8,192 numbers takes about 50 bytes more than the entropy of its tokens, 30 of them for marks
//! (`marks.rs`).

mod marks;
mod table;
mod tokens;

use std::ops::Range;

use tacho_model::ValueType;

use self::marks::{LANES, Mark, STRIDE};
use self::table::{Decoder, Encoder, Entry, Frequencies};
use self::tokens::{LITERALS, RANGES, TOKENS, range_of, step_of, token};
pub(super) use self::tokens::{Plan, plan};
use super::{Codec, Look, Part};
use crate::Error;
use crate::bits::{BitWriter, bits_at, word_at};
use crate::bytes::{Reader, put_varint, unzigzag, zigzag};

pub(super) struct Ans;

/// Minimum number of values. For fewer values, a table takes more bytes than the codec saves.
const COUNT_MIN: usize = 32;
/// Number of bits that one read provides, at any bit offset.
const WORD_BITS: u32 = 57;
/// Highest order of differences.
pub(super) const ORDER_MAX: u8 = 2;
/// Minimum size of a column with marks, bytes. In a smaller column, three marks would take more than one thirtieth
/// of the size.
const MARKED_BYTES_MIN: usize = 1_024;
/// Tokens before the requested part are decoded in groups of this size, a multiple of [`LANES`]. The differences of a group stay
/// in the L1 cache.
const SKIPPED_AT_ONCE: usize = 256;
/// Flag that is added to the order if the column has marks.
const MARKED: u8 = 4;

/// The numbers with which summation starts: for order 1 the first word, for order 2 also the first difference.
fn firsts(words: &[u64], order: u8) -> Option<Vec<u64>> {
    match (order, words) {
        (0, _) => Some(vec![]),
        (1, [first, ..]) => Some(vec![*first]),
        (2, [first, second, ..]) => Some(vec![*first, second.wrapping_sub(*first)]),
        _ => None,
    }
}

/// The differences of the plan's order, mod 2^64, as tokens.
fn tokens(words: &[u64], plan: tokens::Plan) -> Tokens {
    let steps = || words.iter().zip(words.iter().skip(1)).map(|(before, word)| word.wrapping_sub(*before));
    match plan.order {
        0 => Tokens::new(words.iter().copied(), plan.centre),
        1 => Tokens::new(steps(), plan.centre),
        _ => Tokens::new(steps().zip(steps().skip(1)).map(|(a, b)| b.wrapping_sub(a)), plan.centre),
    }
}

/// Replaces differences by their sums in place, once per element of `firsts`. The first `firsts.len()` elements of `words` are
/// free: the differences come after them.
fn add_up(words: &mut [u64], firsts: &[u64]) {
    for (order, first) in firsts.iter().enumerate().rev() {
        let mut sum = *first;
        let mut words = words.iter_mut().skip(order);
        if let Some(word) = words.next() {
            *word = sum;
        }
        for word in words {
            sum = sum.wrapping_add(*word);
            *word = sum;
        }
    }
}

struct Tokens {
    tokens: Vec<u8>,
    counts: [u32; TOKENS],
    more: Vec<u8>,
    /// Position in `more` before each token that has a mark.
    more_bits: Vec<usize>,
}

struct Stream {
    bytes: Vec<u8>,
    /// The states and the bit position before each token that has a mark.
    marks: Vec<([usize; LANES], usize)>,
}

impl Tokens {
    fn new(steps: impl Iterator<Item = u64>, centre: i64) -> Self {
        let mut counts = [0; TOKENS];
        let mut more = vec![];
        let mut writer = BitWriter::new(&mut more);
        let (mut more_bits, mut bit) = (vec![], 0);
        let tokens = steps.enumerate().map(|(place, step)| {
            if place % STRIDE == 0 && place > 0 {
                more_bits.push(bit);
            }
            let number = zigzag(step.cast_signed().wrapping_sub(centre));
            let (token, bits) = token(number);
            if let Some(count) = counts.get_mut(usize::from(token)) {
                *count += 1;
            }
            if bits > 0 {
                writer.put(number & ((1 << bits) - 1), bits);
                bit += bits as usize;
            }
            token
        });
        let tokens = tokens.collect();
        writer.finish();
        Self { tokens, counts, more, more_bits }
    }

    /// Encodes the initial states, and the bits for each step between tokens. The encoder runs from the last token to the
    /// first, the decoder from the first to the last.
    fn run(&self, encoder: &Encoder, log: u32) -> Stream {
        let mut states = [encoder.start(); LANES];
        let mut leaving = Vec::with_capacity(self.tokens.len());
        let (groups, rest) = self.tokens.as_chunks::<LANES>();
        for (state, token) in states.iter_mut().zip(rest) {
            leaving.push(encoder.step(state, *token));
        }
        // `leaving` must go from the last token to the first, but the loop above has added the tokens of `rest` from first to
        // last. It may encode these tokens in any order, because each of them has a state of its own.
        leaving.reverse();
        let mut marks = Vec::with_capacity(marks::count(self.tokens.len()));
        let decoder_states = |states: [u32; LANES]| states.map(|state| (state - encoder.start()) as usize);
        for (place, tokens) in groups.iter().enumerate().rev() {
            let behind = (place + 1) * LANES;
            if behind.is_multiple_of(STRIDE) && behind < self.tokens.len() {
                marks.push((decoder_states(states), 0));
            }
            for (state, token) in states.iter_mut().zip(tokens).rev() {
                leaving.push(encoder.step(state, *token));
            }
        }
        marks.reverse();
        let mut bytes = Vec::with_capacity(self.tokens.len() / 2);
        let mut writer = BitWriter::new(&mut bytes);
        let mut bit = LANES * log as usize;
        for state in states {
            writer.put(u64::from(state - encoder.start()), log);
        }
        for (place, leaving) in leaving.into_iter().rev().enumerate() {
            if place % STRIDE == 0
                && let Some((_, at)) =
                    (place / STRIDE).checked_sub(1).and_then(|number| marks.get_mut(number))
            {
                *at = bit;
            }
            writer.put(leaving.bits(), leaving.width());
            bit += leaving.width() as usize;
        }
        writer.finish();
        Stream { bytes, marks }
    }
}

/// The parameters stored before the tokens.
struct Parameters {
    firsts: Vec<u64>,
    marked: bool,
    centre: i64,
    frequencies: Frequencies,
}

impl Parameters {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.firsts.len().to_le_bytes()[0] | if self.marked { MARKED } else { 0 });
        for first in &self.firsts {
            put_varint(out, zigzag(first.cast_signed()));
        }
        put_varint(out, zigzag(self.centre));
        out.push(self.frequencies.log.to_le_bytes()[0]);
        self.frequencies.put(out);
    }

    fn take(reader: &mut Reader<'_>, count: usize) -> Result<Self, Error> {
        let flags = reader.byte("order of differences")?;
        let (order, marked) = (flags & !MARKED, flags & MARKED != 0);
        if order > ORDER_MAX || usize::from(order) > count {
            return Err(Error::value("order of differences", order));
        }
        let mut zigzag = |what| reader.varint(what).map(unzigzag);
        let firsts = (0..order).map(|_| zigzag("first number").map(i64::cast_unsigned));
        let firsts = firsts.collect::<Result<_, _>>()?;
        let centre = zigzag("centre of differences")?;
        Ok(Self { firsts, marked, centre, frequencies: Frequencies::take(reader)? })
    }

    fn has_more(&self) -> bool {
        self.frequencies.highest() >= LITERALS
    }

    /// The mark at the start of the column.
    fn front(&self) -> Mark {
        let bit = LANES * self.frequencies.log as usize;
        Mark { firsts: self.firsts.clone(), bit, ..Mark::default() }
    }
}

/// A column that is ready for reading from the last mark at or before a position.
struct Opened<'a> {
    parameters: Parameters,
    /// Largest number of extra bits of a token; 0 if no token has extra bits.
    widest: u32,
    mark: Mark,
    /// The extra bits of tokens, followed by the rest of the column, so that a read near their end is not slower.
    more: &'a [u8],
    more_bytes: usize,
    bytes: &'a [u8],
}

impl<'a> Opened<'a> {
    fn take(bytes: &'a [u8], count: usize, from: usize) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let parameters = Parameters::take(&mut reader, count)?;
        let tokens = count - parameters.firsts.len();
        let (log, has_more) = (parameters.frequencies.log, parameters.has_more());
        let front = parameters.front();
        let mut marks = match parameters.marked {
            true => marks::take(&mut reader, front, tokens, log, has_more)?,
            false => vec![front],
        };
        let (mut more, mut more_bytes): (&[u8], usize) = (&[], 0);
        if has_more {
            more_bytes = reader.size("bytes behind tokens", reader.left())?;
            more = Reader::clone(&reader).rest();
            reader.take(more_bytes, "bits behind tokens")?;
        }
        let bytes = reader.rest();
        marks.truncate((from / STRIDE + 1).min(marks.len()));
        let mut mark = marks.pop().unwrap_or_default();
        if mark.bit > bytes.len() * 8 || mark.more_bit > more_bytes * 8 {
            return Err(Error::value("place of a mark", mark.bit as u64));
        }
        if mark.token == 0 {
            mark.states = first_states(bytes, log);
        }
        let (_, widest) = range_of(parameters.frequencies.highest());
        Ok(Self { parameters, widest, mark, more, more_bytes, bytes })
    }

    /// Reads the numbers at these places, which are not before the mark. If `whole` is true, fails unless the streams end with
    /// the last number.
    fn read(&mut self, places: Range<usize>, whole: bool) -> Result<Vec<u64>, Error> {
        let decoder = Decoder::new(&self.parameters.frequencies);
        let order = self.mark.firsts.len();
        let tokens = places.end.saturating_sub(self.mark.token + order);
        self.skip(&decoder, (places.start - self.mark.token).min(tokens));
        let from = self.mark.token;
        let mut words = vec![0; places.end.saturating_sub(from)];
        self.read_steps(&decoder, words.get_mut(order..).unwrap_or_default());
        if whole {
            check_end(self.bytes.len(), self.mark.bit)?;
            check_end(self.more_bytes, self.mark.more_bit)?;
        }
        add_up(&mut words, &self.mark.firsts);
        words.drain(..(places.start - from).min(words.len()));
        Ok(words)
    }

    /// Moves the mark over `tokens` tokens, rounded down to a multiple of [`LANES`], so that the next token belongs to the first
    /// state.
    fn skip(&mut self, decoder: &Decoder, tokens: usize) {
        let mut steps = [0; SKIPPED_AT_ONCE];
        let mut left = tokens - tokens % LANES;
        while left > 0 {
            let steps = steps.get_mut(..left.min(SKIPPED_AT_ONCE)).unwrap_or_default();
            self.read_steps(decoder, steps);
            self.mark.pass(steps);
            left -= steps.len();
        }
    }

    /// Fills `steps` with the differences from the mark on. Moves the mark's states and its places in the streams.
    fn read_steps(&mut self, decoder: &Decoder, steps: &mut [u64]) {
        let Self { parameters, mark, more, bytes, .. } = self;
        match self.widest {
            0 => read_literals(bytes, mark, parameters.centre, decoder, steps),
            1..=WORD_BITS => read_tokens(bytes, mark, parameters.centre, decoder, steps, |bit, width| {
                (word_at(more, bit >> 3) >> (bit & 7)) & ((1 << width) - 1)
            }),
            _ => read_tokens(bytes, mark, parameters.centre, decoder, steps, |bit, width| {
                bits_at(more, bit, width)
            }),
        }
    }
}

/// Decodes literals, which have no extra bits.
fn read_literals(bytes: &[u8], mark: &mut Mark, centre: i64, decoder: &Decoder, steps: &mut [u64]) {
    read_entries(bytes, mark, decoder, steps, |entry| centre.wrapping_add(entry.step.into()).cast_unsigned());
}

/// Decodes any tokens. Tokens above the literals have extra bits in a second stream, which `more` reads.
#[inline]
fn read_tokens(
    bytes: &[u8],
    mark: &mut Mark,
    centre: i64,
    decoder: &Decoder,
    steps: &mut [u64],
    more: impl Fn(usize, u32) -> u64,
) {
    let mut more_bit = mark.more_bit;
    read_entries(bytes, mark, decoder, steps, |entry| {
        let (low, width) = RANGES.get(usize::from(entry.token)).copied().unwrap_or_default();
        let step = step_of(low.wrapping_add(more(more_bit, width)), centre);
        more_bit += width as usize;
        step
    });
    mark.more_bit = more_bit;
}

/// Fills `steps` with the differences that `step` makes of the next entries.
#[inline]
fn read_entries(
    bytes: &[u8],
    mark: &mut Mark,
    decoder: &Decoder,
    steps: &mut [u64],
    mut step: impl FnMut(Entry) -> u64,
) {
    let (mut states, mut bit) = (mark.states, mark.bit);
    let (groups, rest) = steps.as_chunks_mut::<LANES>();
    // The four states are written out, because the compiler does not always unroll a loop over them.
    for [a, b, c, d] in groups {
        let mut stream = word_at(bytes, bit >> 3) >> (bit & 7);
        let mut next = |state: &mut usize| {
            let (entry, width) = decoder.step(state, stream);
            stream >>= width;
            bit += width as usize;
            step(entry)
        };
        let [first, second, third, fourth] = &mut states;
        (*a, *b, *c, *d) = (next(first), next(second), next(third), next(fourth));
    }
    for (state, number) in states.iter_mut().zip(rest) {
        let (entry, width) = decoder.step(state, word_at(bytes, bit >> 3) >> (bit & 7));
        bit += width as usize;
        *number = step(entry);
    }
    (mark.states, mark.bit) = (states, bit);
}

/// The initial states, which are stored before the stream of bits.
fn first_states(bytes: &[u8], log: u32) -> [usize; LANES] {
    let mut bit = 0;
    [(); LANES].map(|()| {
        let state = bits_at(bytes, bit, log);
        bit += log as usize;
        usize::try_from(state).unwrap_or(0)
    })
}

/// Checks that `bytes` is the length of a stream of `bits` bits.
fn check_end(bytes: usize, bits: usize) -> Result<(), Error> {
    let wanted = bits.div_ceil(8);
    match bytes {
        left if left < wanted => Err(Error::Short { what: "tokens", wanted, left }),
        left if left > wanted => Err(Error::Trailing { what: "tokens", left: left - wanted }),
        _ => Ok(()),
    }
}

impl Codec for Ans {
    fn tag(&self) -> u8 {
        12
    }

    fn name(&self) -> &'static str {
        "ans"
    }

    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        if look.numbers.kind == ValueType::F64 || look.numbers.words.len() < COUNT_MIN {
            return None;
        }
        Some(look.plan().bits + look.bits_each(24))
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let plan = look.plan();
        let first_numbers = firsts(look.numbers.words, plan.order)?;
        let tokens = tokens(look.numbers.words, plan);
        let frequencies = Frequencies::new(&tokens.counts, tokens.tokens.len())?;
        let encoder = Encoder::new(&frequencies);
        let stream = tokens.run(&encoder, frequencies.log);
        let small = stream.bytes.len() + tokens.more.len() < MARKED_BYTES_MIN;
        let marked = !stream.marks.is_empty() && !small;
        let parameters = Parameters { firsts: first_numbers, marked, centre: plan.centre, frequencies };
        let mut out = Vec::with_capacity(stream.bytes.len() + tokens.more.len() + 128);
        parameters.put(&mut out);
        let places = stream.marks.into_iter().zip(&tokens.more_bits);
        let marks = places.enumerate().map(|(number, ((states, bit), more_bit))| {
            let token = (number + 1) * STRIDE;
            let firsts = firsts(look.numbers.words.get(token..)?, plan.order)?;
            Some(Mark { token, firsts, states, bit, more_bit: *more_bit })
        });
        let marks: Vec<Mark> = marks.collect::<Option<_>>()?;
        let has_more = parameters.has_more();
        if marked {
            marks::put(&mut out, &parameters.front(), &marks, parameters.frequencies.log, has_more);
        }
        if has_more {
            put_varint(&mut out, tokens.more.len() as u64);
            out.extend_from_slice(&tokens.more);
        }
        out.extend_from_slice(&stream.bytes);
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        self.decode_part(bytes, &Part::whole(count), kind, depth)
    }

    fn decode_part(&self, bytes: &[u8], part: &Part, _: ValueType, _: u8) -> Result<Vec<u64>, Error> {
        let Part { count, places } = part;
        Opened::take(bytes, *count, places.start)?.read(places.clone(), places.end == *count)
    }
}
