//! Numbers and definitions of the series in one journal file, kept by its encoder.
//!
//! This folder and `index/` use each other. This file finds the number of a series with the hash table of the index
//! (`index/numbers.rs`). `encode.rs` takes the labels of known series from the index. `index/admission.rs` refuses labels beyond
//! the limit of one journal record.

use std::sync::Arc;

use tacho_model::{Labels, SeriesId};

use crate::coding::{put_string, put_varint};
use crate::index::{Numbers, as_number, id_at};
use crate::size::in_memory;

/// The series of a file, in the order of their numbers.
#[derive(Debug, Default)]
pub struct SeriesTable {
    ids: Vec<SeriesId>,
    numbers: Numbers,
    /// Number found by the previous lookup. The next number is usually one higher.
    before: usize,
    /// Number of the first series that the current record defines.
    first: usize,
    /// The encoded definitions of the current record.
    new: Vec<u8>,
    /// Canonical labels of the last series that the current record defines.
    last: Vec<u8>,
    /// Bytes of the canonical labels of all series that the current record defines.
    labels_bytes: usize,
}

impl SeriesTable {
    pub fn len(&self) -> u64 {
        self.ids.len() as u64
    }

    pub const fn labels_bytes(&self) -> usize {
        self.labels_bytes
    }

    /// The number of a series. Asks for the labels if the file does not define the series yet.
    pub fn number(&mut self, id: SeriesId, labels: impl FnOnce() -> Arc<Labels>) -> u64 {
        let guess = self.before + 1;
        if self.ids.get(guess) == Some(&id) {
            self.before = guess;
            return guess as u64;
        }
        let Self { ids, numbers, .. } = self;
        let number = match numbers.find(id, |number| id_at(ids, number)) {
            Some(known) => known as usize,
            None => self.define(id, &labels()),
        };
        self.before = number;
        number as u64
    }

    fn define(&mut self, id: SeriesId, labels: &Labels) -> usize {
        let labels = &*labels.canonical();
        let (begins, ends) = shared(&self.last, labels);
        put_varint(&mut self.new, begins as u64);
        put_varint(&mut self.new, ends as u64);
        put_string(&mut self.new, labels.get(begins..labels.len() - ends).unwrap_or_default());
        self.last.clear();
        self.last.extend_from_slice(labels);
        self.labels_bytes += labels.len();
        let number = self.ids.len();
        self.ids.push(id);
        let Self { ids, numbers, .. } = self;
        numbers.insert(id, as_number(number), |number| id_at(ids, number));
        number
    }

    /// Writes the definitions added since the last call.
    pub fn write_new(&mut self, out: &mut Vec<u8>) {
        put_varint(out, self.first as u64);
        put_varint(out, (self.ids.len() - self.first) as u64);
        out.append(&mut self.new);
        self.begin_record();
    }

    /// Removes all series from this number on.
    pub fn rollback(&mut self, length: u64) {
        self.ids.truncate(in_memory(length));
        self.numbers = Numbers::default();
        let Self { ids, numbers, .. } = self;
        for (number, id) in ids.iter().enumerate() {
            numbers.insert(*id, as_number(number), |number| id_at(ids, number));
        }
        self.new.clear();
        self.before = 0;
        self.begin_record();
    }

    fn begin_record(&mut self) {
        self.first = self.ids.len();
        self.last.clear();
        self.labels_bytes = 0;
    }
}

/// Lengths of the common prefix and the common suffix. Prefix and suffix do not overlap.
fn shared(a: &[u8], b: &[u8]) -> (usize, usize) {
    let begins = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let [a, b] = [a, b].map(|all| all.get(begins..).unwrap_or_default().iter().rev());
    let ends = a.zip(b).take_while(|(a, b)| a == b).count();
    (begins, ends)
}
