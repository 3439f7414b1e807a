//! Codec for texts such as log lines, which have the same words around varying numbers and ids. The words are stored once, as a
//! template. The places of the numbers and ids in a template are its slots; each slot has its own column.
//!
//! [`cut`] finds the slots of a text. [`slot`] encodes the texts of one slot. Texts without a template are compressed together
//! with the templates.

mod cut;
mod slot;

use std::ops::{Range, RangeInclusive};

use foldhash::{HashMap, HashMapExt};
use tacho_model::ValueType;

use super::{Codec, Strings, Texts, put_nested, take_nested};
use crate::bytes::{Reader, put_varint};
use crate::codec::{self, Numbers, encode_nested};
use crate::limits::{CHUNK_EVENTS_MAX, CHUNK_RECORDS_MAX, CHUNK_TEXT_BYTES_MAX};
use crate::{Encoding, Error};

use self::cut::Cut;
use self::slot::Slot;

pub(super) struct Templates;

/// Marks a slot in a template. A text that contains this byte cannot have a template.
const SLOT: u8 = 0x11;
/// Limit on templates. It bounds the columns of a chunk, because each slot of a template has a column.
const TEMPLATES_MAX: usize = 4_096;
/// Minimum number of texts per template. Below it, the headers of the slots' columns take more than a template saves.
const ROWS_MIN: usize = 16;
/// Limits on the number of strings. Fewer strings save too little. With more strings, or with more slots than [`VALUES_MAX`], the
/// table of strings could exceed the limit of readers.
const STRINGS: RangeInclusive<usize> = 32..=CHUNK_RECORDS_MAX;
/// Limit on the number of slots of all strings.
const VALUES_MAX: usize = CHUNK_EVENTS_MAX / 2;
/// The search for groups stops after this many strings if more than half of them began a new group, because then few
/// strings repeat.
const GLANCE: usize = 1_024;

impl Codec for Templates {
    fn tag(&self) -> u8 {
        37
    }

    fn name(&self) -> &'static str {
        "templates"
    }

    fn encode(&self, strings: Strings<'_>, depth: u8, encoding: &Encoding) -> Option<Vec<u8>> {
        if depth > 0 || !STRINGS.contains(&strings.len()) {
            return None;
        }
        let (mut groups, mut numbers) = (vec![], vec![0; strings.len()]);
        for cut in [cut::numbers, cut::words] {
            add_groups(strings, cut, &mut groups, &mut numbers);
        }
        if groups.is_empty() {
            return None;
        }
        let forms: Vec<Form<'_>> = groups.iter().map(|group| Form::new(group, strings)).collect();
        let mut table: Vec<&[u8]> = forms.iter().map(|form| form.template.as_slice()).collect();
        table.extend(
            strings.iter().zip(&numbers).filter(|(_, number)| **number == 0).map(|(string, _)| *string),
        );
        let mut slots = vec![];
        for texts in forms.iter().flat_map(|form| &form.slots) {
            slot::write(texts, &mut slots, &mut table, depth, encoding);
        }
        let mut out = vec![];
        put_varint(&mut out, groups.len() as u64);
        put_varint(&mut out, table.len() as u64);
        put_nested(&mut out, &table, depth, encoding);
        encode_nested(&mut out, Numbers::u64(&numbers), depth, encoding);
        out.append(&mut slots);
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, depth: u8) -> Result<Texts, Error> {
        let mut reader = Reader::new(bytes);
        let templates = reader.size("number of templates", TEMPLATES_MAX)?;
        let strings = reader.size("strings of templates", CHUNK_EVENTS_MAX)?;
        let table = take_nested(&mut reader, strings, depth)?;
        let numbers = codec::take_nested(&mut reader, count, ValueType::U64, depth)?;
        let mut rows = vec![0usize; templates + 1];
        for number in &numbers {
            let rows = usize::try_from(*number).ok().and_then(|number| rows.get_mut(number));
            *rows.ok_or(Error::value("number of a template", *number))? += 1;
        }
        let mut used = templates.saturating_add(rows.first().copied().unwrap_or(0));
        let (mut read, mut values) = (Vec::with_capacity(templates), 0usize);
        for (number, rows) in rows.into_iter().skip(1).enumerate() {
            let missing = Error::value("number of strings of the templates", strings as u64);
            let template = Template::new(table.get(number).ok_or(missing)?, rows, &mut values)?;
            read.push(template.read(&mut reader, rows, &mut used, depth)?);
        }
        reader.end("templates")?;
        if used != strings {
            return Err(Error::value("number of strings of the templates", strings as u64));
        }
        unfold(&numbers, &mut read, &table)
    }
}

/// Strings that differ only in their slots.
struct Group {
    rows: Vec<usize>,
    /// Slots of all rows, row by row.
    slots: Vec<Range<usize>>,
}

/// Groups the strings without a template. Adds the groups that are large enough, and sets the template numbers of their strings.
fn add_groups(strings: Strings<'_>, cut: Cut, groups: &mut Vec<Group>, numbers: &mut [u64]) {
    let mut new = group(strings, numbers, cut);
    new.retain(|group| group.rows.len() >= ROWS_MIN);
    new.sort_by_key(|group| std::cmp::Reverse(group.rows.len()));
    let mut values: usize = groups.iter().map(|group| group.slots.len()).sum();
    for group in new {
        values += group.slots.len();
        if groups.len() == TEMPLATES_MAX || values > VALUES_MAX {
            return;
        }
        for row in &group.rows {
            if let Some(number) = numbers.get_mut(*row) {
                *number = groups.len() as u64 + 1;
            }
        }
        groups.push(group);
    }
}

/// Groups the strings without a template that differ only in their slots. Returns no groups if the saving would be small.
fn group(strings: Strings<'_>, numbers: &[u64], cut: Cut) -> Vec<Group> {
    let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
    let (mut groups, mut slots, mut key) = (Vec::<Group>::new(), vec![], vec![]);
    let alone = strings.iter().zip(numbers).enumerate().filter(|(_, (_, number))| **number == 0);
    for (nth, (row, (string, _))) in alone.enumerate() {
        if nth == GLANCE && groups.len() * 2 > nth {
            return vec![];
        }
        if string.contains(&SLOT) || !cut(string, &mut slots) {
            continue;
        }
        fold(string, &slots, &mut key);
        let number = match known.get(&key) {
            Some(number) => *number,
            None => {
                known.insert(key.clone(), groups.len());
                groups.push(Group { rows: vec![], slots: vec![] });
                groups.len() - 1
            }
        };
        if let Some(group) = groups.get_mut(number) {
            group.rows.push(row);
            group.slots.append(&mut slots);
        }
    }
    groups
}

/// The string with each slot replaced by a mark.
fn fold(string: &[u8], slots: &[Range<usize>], template: &mut Vec<u8>) {
    template.clear();
    let mut end = 0;
    for slot in slots {
        template.extend_from_slice(string.get(end..slot.start).unwrap_or_default());
        template.push(SLOT);
        end = slot.end;
    }
    template.extend_from_slice(string.get(end..).unwrap_or_default());
}

/// A template and the texts of its slots.
struct Form<'a> {
    template: Vec<u8>,
    slots: Vec<Vec<&'a [u8]>>,
}

impl<'a> Form<'a> {
    /// Slots with the same text in all rows become part of the template.
    fn new(group: &Group, strings: Strings<'a>) -> Self {
        let mut form = Self { template: vec![], slots: vec![] };
        let width = group.slots.len() / group.rows.len().max(1);
        let first = group.rows.first().and_then(|row| strings.get(*row)).copied().unwrap_or_default();
        let text = |(at, row): (usize, &usize)| {
            let slot = group.slots.get(at)?;
            strings.get(*row)?.get(slot.clone())
        };
        let mut differing = vec![];
        for number in 0..width {
            let places = (number..).step_by(width).zip(&group.rows);
            let texts: Vec<&[u8]> = places.filter_map(text).collect();
            if texts.iter().any(|text| Some(text) != texts.first()) {
                form.slots.push(texts);
                differing.extend(group.slots.get(number).cloned());
            }
        }
        fold(first, &differing, &mut form.template);
        form
    }
}

/// A decoded template.
struct Template<'a> {
    /// The text before each slot, and the text after the last slot.
    words: Vec<&'a [u8]>,
    slots: Vec<Slot>,
    /// Number of texts with this template that were written so far.
    row: usize,
}

impl<'a> Template<'a> {
    /// Adds the number of slots in all `rows` to `values`. Checks the limit on `values` before any slot is decoded.
    fn new(template: &'a [u8], rows: usize, values: &mut usize) -> Result<Self, Error> {
        let slots = template.iter().filter(|byte| **byte == SLOT).count();
        *values = values.saturating_add(rows.max(1).saturating_mul(slots));
        if *values > CHUNK_EVENTS_MAX {
            return Err(Error::limit("slots of all strings", *values, CHUNK_EVENTS_MAX));
        }
        let words = template.split(|byte| *byte == SLOT).collect();
        Ok(Self { words, slots: vec![], row: 0 })
    }

    fn read(
        mut self,
        reader: &mut Reader<'_>,
        rows: usize,
        used: &mut usize,
        depth: u8,
    ) -> Result<Self, Error> {
        for _ in 1..self.words.len() {
            self.slots.push(slot::read(reader, rows, used, depth)?);
        }
        Ok(self)
    }

    /// Appends the next text.
    fn put(&mut self, table: &Texts, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some((last, words)) = self.words.split_last() else { return Ok(()) };
        for (word, slot) in words.iter().zip(&self.slots) {
            out.extend_from_slice(word);
            slot.put(self.row, table, out)?;
        }
        out.extend_from_slice(last);
        self.row += 1;
        Ok(())
    }
}

fn unfold(numbers: &[u64], templates: &mut [Template<'_>], table: &Texts) -> Result<Texts, Error> {
    let mut texts = Texts::with_capacity(numbers.len(), 0);
    let mut rest = templates.len();
    for number in numbers {
        let number = usize::try_from(*number).unwrap_or(usize::MAX);
        match number.checked_sub(1).and_then(|number| templates.get_mut(number)) {
            Some(template) => template.put(table, &mut texts.bytes)?,
            None => {
                let missing = Error::value("text without a template", rest as u64);
                texts.bytes.extend_from_slice(table.get(rest).ok_or(missing)?);
                rest += 1;
            }
        }
        if texts.bytes.len() > CHUNK_TEXT_BYTES_MAX {
            return Err(Error::limit("bytes of strings", texts.bytes.len(), CHUNK_TEXT_BYTES_MAX));
        }
        texts.ends.push(texts.bytes.len());
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes a template that has this number of slots and that no string uses, and one string without a template.
    fn unused(slots: usize) -> Result<Texts, Error> {
        let encoding = Encoding::default();
        let mut bytes = vec![];
        put_varint(&mut bytes, 1);
        put_varint(&mut bytes, 2);
        put_nested(&mut bytes, &[&vec![SLOT; slots], b"alone"], 0, &encoding);
        encode_nested(&mut bytes, Numbers::u64(&[0]), 0, &encoding);
        assert!(bytes.len() < 1_000);
        Templates.decode(&bytes, 1, 0)
    }

    #[test]
    fn a_few_bytes_cannot_request_many_slots() {
        let past = Error::limit("slots of all strings", CHUNK_EVENTS_MAX + 1, CHUNK_EVENTS_MAX);
        assert_eq!(unused(CHUNK_EVENTS_MAX + 1).unwrap_err(), past);
        // The number is within the limit, but the slots are missing.
        assert!(matches!(unused(CHUNK_EVENTS_MAX).unwrap_err(), Error::Short { .. }));
        assert_eq!(unused(0).unwrap().get(0), Some(&b"alone"[..]));
    }

    #[test]
    fn texts_that_are_few_nested_or_mostly_unique_get_no_templates() {
        let lines: Vec<String> = (0..2_000).map(|n| format!("{n} {}", "x ".repeat(n % 1_000))).collect();
        let strings: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        assert_eq!(Templates.encode(&strings, 0, &Encoding::default()), None);
        let alike: Vec<&[u8]> = vec![b"line 7"; 32];
        assert!(Templates.encode(&alike, 0, &Encoding::default()).is_some());
        assert_eq!(Templates.encode(&alike[1..], 0, &Encoding::default()), None);
        assert_eq!(Templates.encode(&alike, 1, &Encoding::default()), None);
    }
}
