//! How are blocks of values packed? The words of a block, of any type, determine its form.

use super::steps::{BLOCK, Numbers, PackedSteps, Steps, put_steps, spread, steps_of, width_byte};
use crate::Error;
use crate::bits::{put_bits, width_of};
use crate::bytes::{Reader, put_varint, unzigzag, zigzag};
use crate::codec::{decimal, integer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Steps between the words.
    Words,
    /// Steps between integers. The words are these integers as `f64`.
    Whole,
    /// Steps between integers. The words are these integers as `f64`, divided by 10 to the power of the parameter.
    Decimal,
    /// Bits in which neighbours differ, shifted right by the parameter.
    Xor,
}

impl Form {
    const ALL: [Self; 4] = [Self::Words, Self::Whole, Self::Decimal, Self::Xor];
}

pub(super) fn put(out: &mut Vec<u8>, words: &[u64; BLOCK]) {
    if words.iter().all(|word| integer::whole(*word).is_some()) {
        let whole = |word: &u64| integer::whole(*word).unwrap_or(0).cast_signed();
        return put_integers(out, Form::Whole, 0, whole(&words[0]), &steps_of(words.iter().map(whole)));
    }
    if let Some(exponent) = decimal::exponent(words.iter().copied()) {
        let scaled = |word: &u64| decimal::scaled(*word, exponent).unwrap_or(0);
        let steps = steps_of(words.iter().map(scaled));
        return put_integers(out, Form::Decimal, exponent, scaled(&words[0]), &steps);
    }
    let steps = steps_of(words.iter().map(|word| word.cast_signed()));
    let mut changes: Numbers = [0; BLOCK - 1];
    for (change, (before, word)) in changes.iter_mut().zip(words.iter().zip(words.iter().skip(1))) {
        *change = before ^ word;
    }
    let all = changes.iter().fold(0, |all, change| all | change);
    let shift = all.trailing_zeros() & 63;
    let width = width_of(all >> shift);
    let first = words[0].cast_signed();
    if width >= spread(&steps).1 {
        return put_integers(out, Form::Words, 0, first, &steps);
    }
    out.extend([Form::Xor as u8, width_byte(shift), width_byte(width)]);
    put_varint(out, zigzag(first));
    put_varint(out, 0);
    put_bits(out, &changes.map(|change| change >> shift), width);
}

fn put_integers(out: &mut Vec<u8>, form: Form, parameter: u8, first: i64, steps: &Steps) {
    let (low, width) = spread(steps);
    out.extend([form as u8, parameter, width_byte(width)]);
    put_varint(out, zigzag(first));
    put_steps(out, steps, low, width);
}

/// A block with decoded parameters.
pub(super) struct Block<'a> {
    form: Form,
    parameter: u8,
    first: i64,
    steps: PackedSteps<'a>,
}

impl<'a> Block<'a> {
    pub(super) fn take(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let [form, parameter, width] = reader.array("form and width")?;
        let form = *Form::ALL.get(usize::from(form)).ok_or(Error::value("form of words", form))?;
        let first = unzigzag(reader.varint("first word")?);
        Ok(Self { form, parameter, first, steps: PackedSteps::take(reader, width)? })
    }

    pub(super) fn unpack(&self, out: &mut Vec<u64>) {
        match self.form {
            Form::Words => self.steps.add_up(self.first, 1, out, i64::cast_unsigned),
            Form::Whole => self.steps.add_up(self.first, 1, out, |n| integer::float(n.cast_unsigned())),
            Form::Decimal => self.steps.add_up(self.first, 1, out, |n| decimal::float(n, self.parameter)),
            Form::Xor => {
                let mut word = self.first.cast_unsigned();
                out.push(word);
                out.extend(self.steps.numbers().into_iter().map(|change| {
                    word ^= change << (self.parameter & 63);
                    word
                }));
            }
        }
    }
}
