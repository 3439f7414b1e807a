//! Numbers whose differences are small or much alike: an entropy coder, so that a frequent difference takes a fraction of a byte.
//!
//! Tabled asymmetric numeral systems (Duda, "Asymmetric numeral systems", 2013). Differences become tokens (`tokens.rs`), tokens
//! become states of a machine (`table.rs`), four of which take turns so that a processor works on all at once.
//! A column of 8,192 numbers costs about 20 bytes beside the entropy of its tokens.

mod table;
mod tokens;

use tacho_model::ValueType;

use self::table::{Decoder, Encoder, Frequencies};
use self::tokens::{LITERALS, TOKENS, range_of, step_of, token};
pub(super) use self::tokens::{Plan, plan};
use super::{Codec, Look};
use crate::Error;
use crate::bits::{BitWriter, bits_at, word_at};
use crate::bytes::{Reader, put_varint, unzigzag, zigzag};

pub(super) struct Ans;

/// States that take turns. Four steps need at most 44 bits: one read.
const LANES: usize = 4;
/// Fewer numbers than this never pay for a table.
const COUNT_MIN: usize = 32;
/// Bits that one read yields, whichever bit of a byte they begin at.
const WORD_BITS: u32 = 57;
/// Differences of differences, at most.
pub(super) const ORDER_MAX: u8 = 2;

/// The first number of each order below `order`: where adding up begins.
fn firsts(words: &[u64], order: u8) -> Option<Vec<u64>> {
    match (order, words) {
        (0, _) => Some(vec![]),
        (1, [first, ..]) => Some(vec![*first]),
        (2, [first, second, ..]) => Some(vec![*first, second.wrapping_sub(*first)]),
        _ => None,
    }
}

/// The differences of an order, mod 2^64.
fn tokens(words: &[u64], plan: tokens::Plan) -> Tokens {
    let steps = || words.iter().zip(words.iter().skip(1)).map(|(before, word)| word.wrapping_sub(*before));
    match plan.order {
        0 => Tokens::new(words.iter().copied(), plan.centre),
        1 => Tokens::new(steps(), plan.centre),
        _ => Tokens::new(steps().zip(steps().skip(1)).map(|(a, b)| b.wrapping_sub(a)), plan.centre),
    }
}

/// Adds differences up in place, as many times as there are `firsts`, for which there is room in front of the differences.
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

/// Differences as tokens, and the bits behind them.
struct Tokens {
    tokens: Vec<u8>,
    counts: [u32; TOKENS],
    more: Vec<u8>,
}

impl Tokens {
    fn new(steps: impl Iterator<Item = u64>, centre: i64) -> Self {
        let mut counts = [0; TOKENS];
        let mut more = vec![];
        let mut writer = BitWriter::new(&mut more);
        let tokens = steps.map(|step| {
            let number = zigzag(step.cast_signed().wrapping_sub(centre));
            let (token, bits) = token(number);
            if let Some(count) = counts.get_mut(usize::from(token)) {
                *count += 1;
            }
            if bits > 0 {
                writer.put(number & ((1 << bits) - 1), bits);
            }
            token
        });
        let tokens = tokens.collect();
        writer.finish();
        Self { tokens, counts, more }
    }

    /// The states to begin with, and the bits that lead from token to token. The machine runs from the last token to the first;
    /// the decoder runs forward.
    fn run(&self, encoder: &Encoder, log: u32, out: &mut Vec<u8>) {
        let mut states = [encoder.start(); LANES];
        let mut leaving = Vec::with_capacity(self.tokens.len());
        let (groups, rest) = self.tokens.as_chunks::<LANES>();
        for (state, token) in states.iter_mut().zip(rest) {
            leaving.push(encoder.step(state, *token));
        }
        // Each lane has a state of its own, so their order within a group is free; bits leave from the last to the first.
        leaving.reverse();
        for tokens in groups.iter().rev() {
            for (state, token) in states.iter_mut().zip(tokens).rev() {
                leaving.push(encoder.step(state, *token));
            }
        }
        let mut writer = BitWriter::new(out);
        for state in states {
            writer.put(u64::from(state - encoder.start()), log);
        }
        for leaving in leaving.into_iter().rev() {
            writer.put(leaving.bits(), leaving.width());
        }
        writer.finish();
    }
}

/// What stands before the tokens.
struct Parameters {
    firsts: Vec<u64>,
    centre: i64,
    frequencies: Frequencies,
}

impl Parameters {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.firsts.len().to_le_bytes()[0]);
        for first in &self.firsts {
            put_varint(out, zigzag(first.cast_signed()));
        }
        put_varint(out, zigzag(self.centre));
        out.push(self.frequencies.log.to_le_bytes()[0]);
        self.frequencies.put(out);
    }

    fn take(reader: &mut Reader<'_>, count: usize) -> Result<Self, Error> {
        let order = reader.byte("order of differences")?;
        if order > ORDER_MAX || usize::from(order) > count {
            return Err(Error::value("order of differences", order));
        }
        let mut zigzag = |what| reader.varint(what).map(unzigzag);
        let firsts = (0..order).map(|_| zigzag("first number").map(i64::cast_unsigned));
        let firsts = firsts.collect::<Result<_, _>>()?;
        let centre = zigzag("centre of differences")?;
        Ok(Self { firsts, centre, frequencies: Frequencies::take(reader)? })
    }
}

/// Literals only: nothing but the states' own bits.
fn read_literals(bytes: &[u8], parameters: &Parameters, decoder: &Decoder, steps: &mut [u64]) -> usize {
    let (mut states, mut bit) = first_states(bytes, parameters.frequencies.log);
    let centre = parameters.centre;
    let (groups, rest) = steps.as_chunks_mut::<LANES>();
    for group in groups {
        let mut stream = word_at(bytes, bit >> 3) >> (bit & 7);
        for (state, step) in states.iter_mut().zip(group) {
            let (entry, width) = decoder.step(state, stream);
            *step = centre.wrapping_add(entry.step.into()).cast_unsigned();
            stream >>= width;
            bit += width as usize;
        }
    }
    for (state, step) in states.iter_mut().zip(rest) {
        let (entry, width) = decoder.step(state, word_at(bytes, bit >> 3) >> (bit & 7));
        *step = centre.wrapping_add(entry.step.into()).cast_unsigned();
        bit += width as usize;
    }
    bit
}

/// Any tokens: those that are not literals have more bits in a stream of their own. Returns where both streams end.
fn read_tokens(
    [bytes, more]: [&[u8]; 2],
    parameters: &Parameters,
    decoder: &Decoder,
    steps: &mut [u64],
) -> [usize; 2] {
    let (_, widest) = range_of(parameters.frequencies.highest());
    if widest <= WORD_BITS {
        read_tokens_with(bytes, parameters, decoder, steps, |bit, width| {
            (word_at(more, bit >> 3) >> (bit & 7)) & ((1 << width) - 1)
        })
    } else {
        read_tokens_with(bytes, parameters, decoder, steps, |bit, width| bits_at(more, bit, width))
    }
}

#[inline]
fn read_tokens_with(
    bytes: &[u8],
    parameters: &Parameters,
    decoder: &Decoder,
    steps: &mut [u64],
    more: impl Fn(usize, u32) -> u64,
) -> [usize; 2] {
    let (mut states, mut bit) = first_states(bytes, parameters.frequencies.log);
    let mut more_bit = 0;
    let mut ranges = [(0, 0); TOKENS];
    ranges.iter_mut().zip(0..=u8::MAX).for_each(|(range, token)| *range = range_of(token));
    for group in steps.chunks_mut(LANES) {
        let mut stream = word_at(bytes, bit >> 3) >> (bit & 7);
        for (state, step) in states.iter_mut().zip(group) {
            let (entry, width) = decoder.step(state, stream);
            stream >>= width;
            bit += width as usize;
            let (low, width) = ranges.get(usize::from(entry.token)).copied().unwrap_or_default();
            *step = step_of(low.wrapping_add(more(more_bit, width)), parameters.centre);
            more_bit += width as usize;
        }
    }
    [bit, more_bit]
}

/// The states stand before the stream; the stream begins where they end.
fn first_states(bytes: &[u8], log: u32) -> ([usize; LANES], usize) {
    let mut bit = 0;
    let states = [(); LANES].map(|()| {
        let state = bits_at(bytes, bit, log);
        bit += log as usize;
        usize::try_from(state).unwrap_or(0)
    });
    (states, bit)
}

/// Fails when a stream ends elsewhere than where its bytes do.
fn check_end(bytes: &[u8], bits: usize) -> Result<(), Error> {
    let wanted = bits.div_ceil(8);
    match bytes.len() {
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
        let firsts = firsts(look.numbers.words, plan.order)?;
        let tokens = tokens(look.numbers.words, plan);
        let frequencies = Frequencies::new(&tokens.counts, tokens.tokens.len())?;
        let encoder = Encoder::new(&frequencies);
        let (log, highest) = (frequencies.log, frequencies.highest());
        let mut out = Vec::with_capacity(tokens.tokens.len() / 2 + tokens.more.len() + 64);
        Parameters { firsts, centre: plan.centre, frequencies }.put(&mut out);
        if highest >= LITERALS {
            put_varint(&mut out, tokens.more.len() as u64);
            out.extend_from_slice(&tokens.more);
        }
        tokens.run(&encoder, log, &mut out);
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, _: ValueType, _: u8) -> Result<Vec<u64>, Error> {
        let mut reader = Reader::new(bytes);
        let parameters = Parameters::take(&mut reader, count)?;
        let decoder = Decoder::new(&parameters.frequencies);
        let mut words = vec![0; count];
        let steps = words.get_mut(parameters.firsts.len()..).unwrap_or_default();
        if parameters.frequencies.highest() < LITERALS {
            let bytes = reader.rest();
            check_end(bytes, read_literals(bytes, &parameters, &decoder, steps))?;
        } else {
            let size = reader.size("bytes behind tokens", reader.left())?;
            let more = reader.take(size, "bits behind tokens")?;
            let bytes = reader.rest();
            let [end, more_end] = read_tokens([bytes, more], &parameters, &decoder, steps);
            check_end(bytes, end)?;
            check_end(more, more_end)?;
        }
        add_up(&mut words, &parameters.firsts);
        Ok(words)
    }
}
