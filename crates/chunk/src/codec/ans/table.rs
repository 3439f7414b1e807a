//! The state machine: assigns states to tokens by frequency, and defines the next state for each state.
//!
//! A token with frequency `f` out of `2^log` has `f` states. The decoder outputs the token of its current state. The next
//! state is the base of the current state ([`Entry`]) plus the next bits of the stream. States are assigned to tokens as in
//! RFC 8878, section 4.1.1.

use super::tokens::TOKENS;
use crate::Error;
use crate::bits::{BitWriter, bits_at, bytes_of, width_of};
use crate::bytes::Reader;

/// Base 2 logarithm of the largest number of states. With this many states, the table fits into the L1 cache, and four steps
/// fit into one read.
pub(super) const LOG_MAX: u32 = 11;
const LOG_MIN: u32 = 5;
/// The logarithm exceeds this only if all [`TOKENS`] occur, or if rare tokens need a larger table.
const LOG_ENOUGH: u32 = 9;
/// Limit on the states that rare tokens may get in excess of their share: one in `2^EXCESS_LOG`. This excess costs other tokens
/// 0.006 bits each.
const EXCESS_LOG: u32 = 8;
const STATES_MAX: usize = 1 << LOG_MAX;

/// Frequency of each token, out of `2^log`.
pub(super) struct Frequencies {
    pub(super) log: u32,
    of: [u16; TOKENS],
}

impl Frequencies {
    /// Scales counts so that their sum is a power of two and every token that occurs has a frequency of at least one.
    pub(super) fn new(counts: &[u32; TOKENS], total: usize) -> Option<Self> {
        let log = log_of(counts, total);
        let mut of = [0u16; TOKENS];
        for (frequency, count) in of.iter_mut().zip(counts).filter(|(_, count)| **count > 0) {
            let scaled = ((u64::from(*count) << (log + 1)) / total as u64).div_ceil(2);
            *frequency = u16::try_from(scaled).ok()?.max(1);
        }
        while let Some(over) =
            of.iter().map(|f| i64::from(*f)).sum::<i64>().checked_sub(1 << log).filter(|n| *n != 0)
        {
            let most = of.iter_mut().max()?;
            let less = i64::from(*most) - over;
            *most = u16::try_from(less.max(i64::from(*most) / 2)).ok()?;
        }
        Some(Self { log, of })
    }

    /// Writes the tokens in order until all states are assigned: one bit that states whether the token occurs, and if so its
    /// frequency minus one, in as many bits as the remaining states require.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let mut writer = BitWriter::new(out);
        let mut left = 1u64 << self.log;
        for frequency in self.of.iter().map(|frequency| u64::from(*frequency)) {
            if left == 0 {
                break;
            }
            writer.put(u64::from(frequency > 0), 1);
            if frequency > 0 {
                writer.put(frequency - 1, width_of(left - 1));
                left -= frequency;
            }
        }
        writer.finish();
    }

    pub(super) fn take(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let log = reader.byte("size of a table")?;
        let log = Some(u32::from(log))
            .filter(|log| (LOG_MIN..=LOG_MAX).contains(log))
            .ok_or_else(|| Error::value("size of a table", log))?;
        let bytes = Reader::clone(reader).rest();
        let (mut bit, mut left) = (0, 1u64 << log);
        let mut of = [0u16; TOKENS];
        for frequency in &mut of {
            if left == 0 {
                break;
            }
            let occurs = bits_at(bytes, bit, 1) == 1;
            bit += 1;
            if occurs {
                let width = width_of(left - 1);
                let number = bits_at(bytes, bit, width) + 1;
                bit += width as usize;
                left =
                    left.checked_sub(number).ok_or_else(|| Error::value("frequency of a token", number))?;
                *frequency = u16::try_from(number).unwrap_or(u16::MAX);
            }
        }
        if left > 0 {
            return Err(Error::value("states without a token", left));
        }
        reader.take(bytes_of(1, u32::try_from(bit).unwrap_or(u32::MAX)), "table")?;
        Ok(Self { log, of })
    }

    /// The highest token that occurs.
    pub(super) fn highest(&self) -> u8 {
        let at = self.of.iter().rposition(|frequency| *frequency > 0);
        at.and_then(|at| u8::try_from(at).ok()).unwrap_or(0)
    }

    /// The token of each state. Entries above the number of states are unused.
    fn deal(&self) -> [u8; STATES_MAX] {
        let (mut sorted, mut states) = ([0; STATES_MAX], [0; STATES_MAX]);
        let mut from = 0;
        for (token, frequency) in (0..=u8::MAX).zip(&self.of).filter(|(_, frequency)| **frequency > 0) {
            let to = from + usize::from(*frequency);
            sorted.get_mut(from..to).unwrap_or_default().fill(token);
            from = to;
        }
        let size = 1usize << self.log;
        let step = (size >> 1) + (size >> 3) + 3;
        // Each position is computed as a product. A sum would depend on the previous position.
        for (number, token) in sorted.iter().take(size).enumerate() {
            if let Some(state) = states.get_mut((number * step) & (size - 1) & (STATES_MAX - 1)) {
                *state = *token;
            }
        }
        states
    }
}

/// Chooses the table size. Each state takes time to build, and few states are enough for most columns. But in a small table, a
/// rare token gets more states than its share, at the cost of the other tokens.
fn log_of(counts: &[u32; TOKENS], total: usize) -> u32 {
    let occurring = || counts.iter().filter(|count| **count > 0).map(|count| *count as usize);
    let least = width_of(occurring().count() as u64) + 1;
    let most = width_of(total as u64).saturating_sub(2).max(least).clamp(LOG_MIN, LOG_MAX);
    let excess = |log: u32| -> usize { occurring().map(|count| total.saturating_sub(count << log)).sum() };
    (least.max(LOG_ENOUGH).min(most)..most)
        .find(|log| excess(*log) <= total << log >> EXCESS_LOG)
        .unwrap_or(most)
}

#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    /// The difference of a literal (`tokens.rs`), minus the centre of the column's plan. Unused for other tokens.
    pub(super) step: i32,
    /// The next state before `bits` bits of the stream are added.
    base: u16,
    bits: u8,
    pub(super) token: u8,
}

pub(super) struct Decoder {
    /// One entry per state; their number is a power of two.
    entries: Box<[Entry]>,
}

impl Decoder {
    pub(super) fn new(frequencies: &Frequencies) -> Self {
        let mut next = frequencies.of;
        let mut entries = Vec::with_capacity(1 << frequencies.log);
        for token in frequencies.deal().iter().take(1 << frequencies.log).copied() {
            let Some(place) = next.get_mut(usize::from(token)) else { continue };
            let bits = frequencies.log + 1 - width_of(u64::from(*place));
            let base = (u32::from(*place) << bits) - (1 << frequencies.log);
            let half = i32::from(token >> 1);
            *place += 1;
            entries.push(Entry {
                step: if token & 1 == 0 { half } else { -half - 1 },
                base: u16::try_from(base).unwrap_or(0),
                bits: u8::try_from(bits).unwrap_or(0),
                token,
            });
        }
        Self { entries: entries.into() }
    }

    /// The entry of `state` and its number of bits. Replaces `state` with the base of the entry plus this number of bits of
    /// `stream`.
    #[inline]
    pub(super) fn step(&self, state: &mut usize, stream: u64) -> (Entry, u32) {
        let entry = self.entries.get(*state & (self.entries.len() - 1)).copied().unwrap_or_default();
        let bits = u32::from(entry.bits & 15);
        let more = stream.to_le_bytes();
        let more = usize::from(u16::from_le_bytes([more[0], more[1]]));
        *state = usize::from(entry.base) + (more & ((1 << bits) - 1));
        (entry, bits)
    }
}

/// The encoder's data of one token.
#[derive(Clone, Copy, Default)]
struct Symbol {
    /// Added to a state. The upper half of the sum is the number of bits to emit.
    bits: u32,
    /// Added to the state without the emitted bits. The sum is the index of the next state.
    places: i32,
}

/// The bits that a step emits, at most [`LOG_MAX`]. The low four bits of the field are their number, the bits above are the
/// emitted bits.
#[derive(Clone, Copy)]
pub(super) struct Leaving(u16);

impl Leaving {
    pub(super) const fn bits(self) -> u64 {
        (self.0 >> 4) as u64
    }

    pub(super) const fn width(self) -> u32 {
        (self.0 & 15) as u32
    }
}

pub(super) struct Encoder {
    log: u32,
    symbols: [Symbol; TOKENS],
    /// The states of all tokens, ordered by token and then by number.
    states: Vec<u16>,
}

impl Encoder {
    pub(super) fn new(frequencies: &Frequencies) -> Self {
        let size = 1u32 << frequencies.log;
        let mut symbols = [Symbol::default(); TOKENS];
        let mut starts = [0u16; TOKENS];
        let mut start = 0u16;
        for ((symbol, place), frequency) in symbols.iter_mut().zip(&mut starts).zip(&frequencies.of) {
            let most = frequencies.log + 1 - width_of(u64::from(frequency.saturating_sub(1)));
            let most = if *frequency <= 1 { frequencies.log } else { most };
            *symbol = Symbol {
                bits: (most << 16).wrapping_sub(u32::from(*frequency) << most),
                places: i32::from(start) - i32::from(*frequency),
            };
            *place = start;
            start = start.saturating_add(*frequency);
        }
        let mut states = vec![0u16; size as usize];
        for (state, token) in (size..size * 2).zip(frequencies.deal()) {
            let Some(place) = starts.get_mut(usize::from(token)) else { continue };
            if let Some(slot) = states.get_mut(usize::from(*place)) {
                *slot = u16::try_from(state).unwrap_or(0);
            }
            *place += 1;
        }
        Self { log: frequencies.log, symbols, states }
    }

    /// The initial state of all lanes.
    pub(super) const fn start(&self) -> u32 {
        1 << self.log
    }

    /// Moves `state` to a state of `token`. Returns the bits that the decoder needs to move back.
    #[inline]
    pub(super) fn step(&self, state: &mut u32, token: u8) -> Leaving {
        let symbol = self.symbols.get(usize::from(token)).copied().unwrap_or_default();
        let bits = state.wrapping_add(symbol.bits) >> 16;
        let leaving = *state & ((1 << (bits & 15)) - 1);
        let place = (*state >> (bits & 15)).cast_signed().wrapping_add(symbol.places);
        let next = usize::try_from(place).ok().and_then(|place| self.states.get(place));
        *state = next.copied().map_or(0, u32::from);
        let low = (leaving << 4 | bits & 15).to_le_bytes();
        Leaving(u16::from_le_bytes([low[0], low[1]]))
    }
}
