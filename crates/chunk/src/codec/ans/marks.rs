//! From which positions can a column be read? From each mark, which stores the state of the decoder. There is one mark
//! every [`STRIDE`] tokens.
//!
//! A full chunk with a sample every ten seconds covers almost a day, but most queries cover an hour. Without marks, all values
//! before that hour must be decoded. A mark takes about 10 bytes. A column of 8,192 numbers has three marks, about one percent of
//! its size.

use crate::Error;
use crate::bits::{bits_at, bytes_of, put_bits};
use crate::bytes::{Reader, put_varint, unzigzag, zigzag};

/// Number of interleaved states. A mark stores all of them. One step of all states takes at most 44 bits of the stream,
/// which a single read provides.
pub(super) const LANES: usize = 4;

/// Tokens between marks; a multiple of [`LANES`].
pub(super) const STRIDE: usize = 2_048;

/// State of the decoder before a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Index of the token.
    pub(super) token: usize,
    /// The numbers with which summation starts ([`super::firsts`]): none for order 0; the number at this position for order 1;
    /// this number and its difference to the next number for order 2.
    pub(super) firsts: Vec<u64>,
    pub(super) states: [usize; LANES],
    /// Position in the stream of tokens, which starts with the states.
    pub(super) bit: usize,
    /// Position in the stream of extra bits.
    pub(super) more_bit: usize,
}

impl Mark {
    /// Moves `token` and `firsts` past the tokens with these differences. The caller moves the states and the positions in the
    /// streams.
    pub(super) fn pass(&mut self, steps: &[u64]) {
        self.token += steps.len();
        match self.firsts.as_mut_slice() {
            [number] => *number = steps.iter().fold(*number, |sum, step| sum.wrapping_add(*step)),
            [number, difference] => {
                for step in steps {
                    *number = number.wrapping_add(*difference);
                    *difference = difference.wrapping_add(*step);
                }
            }
            _ => {}
        }
    }
}

/// Number of stored marks. The mark at the start is not stored.
pub(super) const fn count(tokens: usize) -> usize {
    tokens.saturating_sub(1) / STRIDE
}

/// Writes each mark as the difference from the previous one, then the states of all marks. `front` is the first mark,
/// which is not written. `more` states whether there is a stream of extra bits.
pub(super) fn put(out: &mut Vec<u8>, front: &Mark, marks: &[Mark], log: u32, more: bool) {
    let mut before = front;
    for mark in marks {
        for (first, before) in mark.firsts.iter().zip(&before.firsts) {
            put_varint(out, zigzag(first.wrapping_sub(*before).cast_signed()));
        }
        put_varint(out, (mark.bit - before.bit) as u64);
        if more {
            put_varint(out, (mark.more_bit - before.more_bit) as u64);
        }
        before = mark;
    }
    let states: Vec<u64> = marks.iter().flat_map(|mark| mark.states).map(|state| state as u64).collect();
    put_bits(out, &states, log);
}

/// Reads the marks that [`put`] wrote for a column of `tokens` tokens. The first mark of the result is `front`.
pub(super) fn take(
    reader: &mut Reader<'_>,
    front: Mark,
    tokens: usize,
    log: u32,
    more: bool,
) -> Result<Vec<Mark>, Error> {
    let mut marks = vec![front];
    for number in 1..=count(tokens) {
        let mut mark = marks.last().cloned().unwrap_or_default();
        mark.token = number * STRIDE;
        for first in &mut mark.firsts {
            *first = first.wrapping_add(unzigzag(reader.varint("number at a mark")?).cast_unsigned());
        }
        let mut add = |place: &mut usize| -> Result<(), Error> {
            let bits = reader.varint("place of a mark")?;
            *place = place.saturating_add(usize::try_from(bits).unwrap_or(usize::MAX));
            Ok(())
        };
        add(&mut mark.bit)?;
        if more {
            add(&mut mark.more_bit)?;
        }
        marks.push(mark);
    }
    let size = bytes_of(count(tokens) * LANES, log);
    let bytes = reader.take(size, "states of marks")?;
    let mut bit = 0;
    for state in marks.iter_mut().skip(1).flat_map(|mark| &mut mark.states) {
        *state = usize::try_from(bits_at(bytes, bit, log)).unwrap_or(0);
        bit += log as usize;
    }
    Ok(marks)
}

const _: () = assert!(STRIDE.is_multiple_of(LANES));
