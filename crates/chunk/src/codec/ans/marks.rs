//! Where else than at its front may a column be read from? Every [`STRIDE`] tokens a mark says how the machine stands there.
//!
//! A chunk covers a day and most questions an hour: without marks, everything before the hour would be decoded to be thrown away.
//! A mark takes about 10 bytes, of a column of 8,192 numbers three take a hundredth.

use super::LANES;
use crate::Error;
use crate::bits::{bits_at, bytes_of, put_bits};
use crate::bytes::{Reader, put_varint, unzigzag, zigzag};

/// Tokens from one mark to the next; a multiple of [`LANES`].
pub(super) const STRIDE: usize = 2_048;

/// How the machine stands before a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Number of the token.
    pub(super) token: usize,
    /// The number of the column at that place, and the first of each order of differences below the column's.
    pub(super) firsts: Vec<u64>,
    pub(super) states: [usize; LANES],
    /// Of the stream of tokens, which begins with the states at its front.
    pub(super) bit: usize,
    /// Of the stream behind the tokens.
    pub(super) more_bit: usize,
}

/// How many marks there are beside the one at the front.
pub(super) const fn count(tokens: usize) -> usize {
    tokens.saturating_sub(1) / STRIDE
}

/// What differs from the mark before, then all states. `front` is the first mark, which is not written; `more`: there is a stream
/// behind the tokens.
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

/// Reads what [`put`] wrote for a column of so many tokens; the front comes first.
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
