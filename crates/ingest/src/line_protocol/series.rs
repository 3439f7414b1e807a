//! Which series does a field of a line belong to? Found by the bytes of the line's head and the field's key.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use tacho_model::{Batch, Body, Entry, EntrySeries, Labels, NAME, Sample, SampleSeries, Timestamp};

use super::FieldValue;
use super::cursor::{Fault, Piece};
use super::text::{shown, unescape};

const IN_MEASUREMENTS: &[char] = &[',', ' '];
const IN_NAMES: &[char] = &[',', '=', ' '];
pub(super) const IN_STRINGS: &[char] = &['"', '\\'];

/// The field whose name does not become part of the series' name.
const VALUE: &str = "value";

/// Position in the table's list of heads.
pub(super) type HeadIndex = usize;
/// Position in the table's list of series.
pub(super) type SeriesIndex = usize;

/// All series of one body.
#[derive(Default)]
pub(super) struct SeriesTable<'a> {
    heads: Vec<Head<'a>>,
    head_by_bytes: HashMap<&'a [u8], HeadIndex>,
    /// The head of the line before: most lines repeat it.
    head_before: HeadIndex,
    series: Vec<Series<'a>>,
    series_by_key: HashMap<(HeadIndex, &'a [u8]), SeriesIndex>,
}

struct Head<'a> {
    bytes: &'a [u8],
    measurement: Cow<'a, str>,
    tags: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The series of the fields, in order, of the last line with this head: a guess for the next one.
    order: Vec<SeriesIndex>,
}

struct Series<'a> {
    key: &'a [u8],
    labels: Arc<Labels>,
    /// Where in the batch its samples and entries are collected, once there are some.
    samples: Option<usize>,
    entries: Option<usize>,
}

impl<'a> SeriesTable<'a> {
    pub(super) fn head(&mut self, piece: Piece<'a>) -> Result<HeadIndex, Fault> {
        if self.heads.get(self.head_before).is_some_and(|head| head.bytes == piece.bytes) {
            return Ok(self.head_before);
        }
        let found = self.head_by_bytes.get(piece.bytes).copied();
        self.head_before = match found {
            Some(index) => index,
            None => {
                self.heads.push(read_head(piece)?);
                let index = self.heads.len() - 1;
                self.head_by_bytes.insert(piece.bytes, index);
                index
            }
        };
        Ok(self.head_before)
    }

    /// The series of a line's field number `position`.
    pub(super) fn field(
        &mut self,
        head: HeadIndex,
        position: usize,
        key: Piece<'a>,
    ) -> Result<SeriesIndex, Fault> {
        let guess = self.heads.get(head).and_then(|head| head.order.get(position)).copied();
        let guessed = guess.filter(|index| self.series.get(*index).is_some_and(|s| s.key == key.bytes));
        if let Some(index) = guessed {
            return Ok(index);
        }
        let index = match self.series_by_key.get(&(head, key.bytes)) {
            Some(index) => *index,
            None => self.add(head, key)?,
        };
        if let Some(head) = self.heads.get_mut(head) {
            head.order.truncate(position);
            head.order.push(index);
        }
        Ok(index)
    }

    fn add(&mut self, head: HeadIndex, key: Piece<'a>) -> Result<SeriesIndex, Fault> {
        let Some(described) = self.heads.get(head) else {
            return Err(Fault::new(key.at, "field without a measurement"));
        };
        let labels = labels(described, &name(key, IN_NAMES)?)
            .map_err(|error| Fault::new(key.at, error.to_string()))?;
        let index = self.series.len();
        self.series.push(Series { key: key.bytes, labels: Arc::new(labels), samples: None, entries: None });
        self.series_by_key.insert((head, key.bytes), index);
        Ok(index)
    }

    /// Adds one value to the batch.
    pub(super) fn keep(
        &mut self,
        batch: &mut Batch,
        index: SeriesIndex,
        at: Timestamp,
        value: FieldValue<'_>,
    ) {
        let Some(series) = self.series.get_mut(index) else { return };
        match value {
            FieldValue::Number(value) => {
                let slot = *series.samples.get_or_insert_with(|| {
                    let labels = Arc::clone(&series.labels);
                    batch.samples.push(SampleSeries { labels, samples: Vec::new() });
                    batch.samples.len() - 1
                });
                if let Some(series) = batch.samples.get_mut(slot) {
                    series.samples.push(Sample { at, value });
                }
            }
            FieldValue::Text(raw) => {
                let slot = *series.entries.get_or_insert_with(|| {
                    let labels = Arc::clone(&series.labels);
                    batch.entries.push(EntrySeries { labels, entries: Vec::new() });
                    batch.entries.len() - 1
                });
                if let Some(series) = batch.entries.get_mut(slot) {
                    series.entries.push(Entry { at, body: Body::Text(unescape(raw, IN_STRINGS).into()) });
                }
            }
        }
    }
}

fn labels(head: &Head<'_>, field: &str) -> Result<Labels, tacho_model::LabelError> {
    let measurement = &head.measurement;
    let name = if field == VALUE { measurement.to_string() } else { format!("{measurement}_{field}") };
    let tags = head.tags.iter().map(|(name, value)| (&**name, &**value));
    Labels::new(tags.chain([(NAME, name.as_str())]))
}

fn read_head(piece: Piece<'_>) -> Result<Head<'_>, Fault> {
    let (measurement, mut rest) = cut(piece, b',');
    if measurement.bytes.is_empty() {
        return Err(Fault::new(piece.at, "measurement has no name"));
    }
    let measurement = name(measurement, IN_MEASUREMENTS)?;
    let mut tags = Vec::new();
    while let Some(piece) = rest {
        let (tag, after) = cut(piece, b',');
        tags.push(read_tag(tag)?);
        rest = after;
    }
    Ok(Head { bytes: piece.bytes, measurement, tags, order: Vec::new() })
}

fn read_tag(tag: Piece<'_>) -> Result<(Cow<'_, str>, Cow<'_, str>), Fault> {
    let (key, value) = cut(tag, b'=');
    if key.bytes.is_empty() {
        return Err(Fault::new(tag.at, "tag has no name"));
    }
    match value {
        Some(value) if !value.bytes.is_empty() => Ok((name(key, IN_NAMES)?, name(value, IN_NAMES)?)),
        _ => Err(Fault::new(tag.at, format!("tag {} has no value", shown(key.bytes)))),
    }
}

fn name<'a>(piece: Piece<'a>, escapable: &[char]) -> Result<Cow<'a, str>, Fault> {
    let text =
        std::str::from_utf8(piece.bytes).map_err(|_| Fault::new(piece.at, "name that is not UTF-8"))?;
    Ok(unescape(text, escapable))
}

/// What is before the first separator that is not escaped, and what is behind it.
fn cut(piece: Piece<'_>, separator: u8) -> (Piece<'_>, Option<Piece<'_>>) {
    let mut escaped = false;
    let found = piece.bytes.iter().position(|byte| {
        let ends = !escaped && *byte == separator;
        escaped = !escaped && *byte == b'\\';
        ends
    });
    let parts = found.and_then(|at| Some((at, piece.bytes.get(..at)?, piece.bytes.get(at + 1..)?)));
    match parts {
        None => (piece, None),
        Some((at, before, behind)) => {
            (Piece { bytes: before, at: piece.at }, Some(Piece { bytes: behind, at: piece.at + at + 1 }))
        }
    }
}
