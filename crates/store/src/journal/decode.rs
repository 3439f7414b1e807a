//! Decodes the payload of a journal record into a checked batch.

use std::collections::HashMap;
use std::sync::Arc;

use tacho_model::{
    Attribute, AttributeValue, Body, Carried, Entry, EntrySeries, Event, EventKind, ExecutionSeries,
    Operation, OperationKind, Sample, Segment, SpanId, TraceId, Value, ValueType,
};

use super::columns;
use super::define::{Define, Records};
use super::format::{
    BLOCK_COLUMNS, BLOCK_ENTRIES, BLOCK_EXECUTIONS, BLOCK_SAMPLES, BODY_BYTES, BODY_TEXT, CODE_ENTER,
    CODE_EXIT, CODE_EXIT_FAILED, DEFINITIONS_BYTES_MAX, DEFINITIONS_KEPT_BYTES_MAX, FLAG_FRAMES, FLAG_ORIGIN,
    FLAG_REPEATS, SEGMENT_ATTRIBUTES, SEGMENT_CARRIED, SEGMENT_PARENT, TEXTS_MAX, VALUE_INTEGER, VALUE_TEXT,
    VERSION_SINGLE, VERSION_WHOLE_LABELS,
};
use crate::arrival::{Arrival, Origin};
use crate::coding::{Cursor, Malformed};

/// Definitions of one kind, by number; `None` for a definition that was lost with its record.
type Table<T> = Vec<Option<T>>;

/// State of one file: the definitions of all records read so far.
#[derive(Debug)]
pub struct Decoder<D: Define> {
    version: u16,
    defines: D,
    series: Table<D::Series>,
    operations: Table<Operation>,
    texts: Table<Arc<str>>,
    /// Limit on further missing definitions: the number of lost bytes minus the definitions found missing so far, because
    /// each definition takes at least one byte.
    missing_max: usize,
    /// Whether a record was lost. A repeated definition is then not an error.
    lost: bool,
}

/// Number of bytes of the file that were synced when the record was written. Does not check the fields after this number.
pub fn synced(payload: &[u8]) -> Result<u64, Malformed> {
    let mut cursor = Cursor::new(payload);
    cursor.byte("flags")?;
    cursor.varint("synced")
}

pub fn repeats(payload: &[u8]) -> bool {
    payload.first().is_some_and(|flags| flags & FLAG_REPEATS != 0)
}

#[cfg(test)]
impl Decoder<super::define::Labelled> {
    /// A decoder for a file of this version, whose batches have the labels of their series.
    pub fn new(version: u16) -> Self {
        Self::with(version, super::define::Labelled::default())
    }
}

impl<D: Define> Decoder<D> {
    pub fn with(version: u16, defines: D) -> Self {
        let (series, operations, texts) = (Vec::new(), Vec::new(), Vec::new());
        Self { version, defines, series, operations, texts, missing_max: 0, lost: false }
    }

    /// The receiver of the definitions, with the state that it has collected.
    pub fn into_defines(self) -> D {
        self.defines
    }

    /// Notes that this many bytes of the file could not be read. Definitions in them are missing.
    pub const fn lost(&mut self, bytes: usize) {
        self.missing_max = self.missing_max.saturating_add(bytes);
        self.lost = true;
    }

    pub const fn has_lost(&self) -> bool {
        self.lost
    }

    /// Reads only the definitions of a record. Called after a loss, before records are decoded: records after a lost record
    /// repeat its definitions.
    pub fn learn(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let (mut cursor, _) = front(self.version, payload)?;
        self.define(&mut cursor)
    }

    pub fn decode(&mut self, payload: &[u8]) -> Result<Arrival, Malformed> {
        let (mut cursor, origin) = front(self.version, payload)?;
        self.define(&mut cursor)?;
        let mut records = Records::default();
        while !cursor.is_empty() {
            match cursor.byte("tag")? {
                BLOCK_COLUMNS => self.columns(&mut cursor, &mut records)?,
                BLOCK_SAMPLES => self.samples(&mut cursor, &mut records)?,
                BLOCK_ENTRIES => records.batch.entries.push(self.entries(&mut cursor)?),
                BLOCK_EXECUTIONS => records.batch.executions.push(self.executions(&mut cursor)?),
                _ => return Err(cursor.malformed("tag of a block")),
            }
        }
        Ok(Arrival::with_known(records.batch, records.known, origin))
    }

    fn define(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        let mut labels =
            LabelsReader { whole: self.version <= VERSION_WHOLE_LABELS, ..LabelsReader::default() };
        let defines = &mut self.defines;
        let mut missing = Missing { max: &mut self.missing_max, again: self.lost };
        let missing = &mut missing;
        define(cursor, &mut self.series, missing, |cursor| labels.read(defines, cursor))?;
        define(cursor, &mut self.operations, missing, |cursor| {
            let kind = OperationKind::from_byte(cursor.byte("operation kind")?);
            let kind = kind.ok_or(cursor.malformed("operation kind"))?;
            Ok(Operation { kind, name: cursor.text("operation name")?.into() })
        })?;
        define(cursor, &mut self.texts, missing, |cursor| Ok(cursor.text("text")?.into()))?;
        if self.texts.len() > TEXTS_MAX { Err(cursor.malformed("number of texts")) } else { Ok(()) }
    }

    fn known_series(&self, cursor: &mut Cursor<'_>) -> Result<D::Series, Malformed> {
        let number = cursor.varint("series number")?;
        self.series_of(number, cursor)
    }

    fn series_of(&self, number: u64, cursor: &Cursor<'_>) -> Result<D::Series, Malformed> {
        lookup(&self.series, number).cloned().ok_or(cursor.malformed("series number (not defined)"))
    }

    /// Consecutive blocks of one series form one series of samples with different types.
    fn samples(&self, cursor: &mut Cursor<'_>, records: &mut Records) -> Result<(), Malformed> {
        let series = self.known_series(cursor)?;
        let value_type = ValueType::from_byte(cursor.byte("value type")?);
        let value_type = value_type.ok_or(cursor.malformed("value type"))?;
        let count = cursor.count(2, "number of samples")?;
        let mut at = 0i64;
        let mut samples = Vec::with_capacity(count);
        for _ in 0..count {
            at = at.wrapping_add(cursor.zigzag("time")?);
            let value = match value_type {
                ValueType::F64 => Value::F64(f64::from_bits(u64::from_le_bytes(cursor.array("f64")?))),
                ValueType::I64 => Value::I64(cursor.zigzag("i64")?),
                ValueType::U64 => Value::U64(cursor.varint("u64")?),
            };
            samples.push(Sample { at, value });
        }
        self.defines.add(records, series, &samples);
        Ok(())
    }

    fn columns(&self, cursor: &mut Cursor<'_>, records: &mut Records) -> Result<(), Malformed> {
        columns::read(cursor, |number, samples, cursor| {
            self.defines.add(records, self.series_of(number, cursor)?, samples);
            Ok(())
        })
    }

    fn entries(&self, cursor: &mut Cursor<'_>) -> Result<EntrySeries, Malformed> {
        let labels = self.defines.labels(&self.known_series(cursor)?);
        let count = cursor.count(3, "number of entries")?;
        let mut at = 0i64;
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            at = at.wrapping_add(cursor.zigzag("time")?);
            let body = match cursor.byte("form of a body")? {
                BODY_TEXT => Body::Text(cursor.text("body")?.into()),
                BODY_BYTES => Body::Bytes(cursor.string("body")?.into()),
                _ => return Err(cursor.malformed("form of a body")),
            };
            entries.push(Entry { at, body });
        }
        Ok(EntrySeries { labels, entries })
    }

    fn executions(&self, cursor: &mut Cursor<'_>) -> Result<ExecutionSeries, Malformed> {
        let labels = self.defines.labels(&self.known_series(cursor)?);
        let count = cursor.count(30, "number of segments")?;
        let mut before = 0i64;
        let mut operations =
            Operations { known: &self.operations, indices: HashMap::new(), used: Vec::new() };
        let mut segments = Vec::with_capacity(count);
        for _ in 0..count {
            let segment = self.segment(cursor, before, &mut operations)?;
            segment.check(operations.used.len()).map_err(|_| cursor.malformed("segment"))?;
            before = segment.start;
            segments.push(segment);
        }
        Ok(ExecutionSeries { labels, operations: operations.used, segments })
    }

    fn segment(
        &self,
        cursor: &mut Cursor<'_>,
        before: i64,
        operations: &mut Operations<'_>,
    ) -> Result<Segment, Malformed> {
        let flags = cursor.byte("segment flags")?;
        let mut segment = Segment {
            trace: TraceId(u128::from_be_bytes(cursor.array("trace")?)),
            base: u64::from_le_bytes(cursor.array("base")?),
            part: cursor.varint_u32("part")?,
            first_call: cursor.varint_u32("first call")?,
            thread: self.textref(cursor)?,
            start: before.wrapping_add(cursor.zigzag("start")?),
            parent: None,
            carried: Vec::new(),
            events: Vec::new(),
            attributes: Vec::new(),
        };
        if flags & SEGMENT_PARENT != 0 {
            segment.parent = Some(SpanId(u64::from_le_bytes(cursor.array("parent")?)));
        }
        if flags & SEGMENT_CARRIED != 0 {
            for _ in 0..cursor.count(3, "number of carried calls")? {
                let operation = operations.index(cursor.varint("carried operation")?, cursor)?;
                let call = cursor.varint_u32("carried call")?;
                segment.carried.push(Carried { operation, call, age: cursor.varint("age")? });
            }
        }
        let events = cursor.count(2, "number of events")?;
        segment.events.reserve_exact(events);
        for _ in 0..events {
            let delta = cursor.varint("delta")?;
            let kind = match cursor.varint("event code")? {
                CODE_EXIT => EventKind::Exit,
                CODE_EXIT_FAILED => EventKind::ExitFailed,
                code => EventKind::Enter(operations.index(code - CODE_ENTER, cursor)?),
            };
            segment.events.push(Event { delta, kind });
        }
        if flags & SEGMENT_ATTRIBUTES != 0 {
            segment.attributes = self.attributes(cursor)?;
        }
        Ok(segment)
    }

    fn attributes(&self, cursor: &mut Cursor<'_>) -> Result<Vec<Attribute>, Malformed> {
        let count = cursor.count(4, "number of attributes")?;
        let mut attributes = Vec::with_capacity(count);
        for _ in 0..count {
            let call = cursor.varint_u32("attribute call")?;
            let key = self.textref(cursor)?;
            let value = match cursor.byte("form of a value")? {
                VALUE_TEXT => AttributeValue::Text(cursor.text("attribute value")?.into()),
                VALUE_INTEGER => AttributeValue::Integer(cursor.zigzag("attribute value")?),
                _ => return Err(cursor.malformed("form of a value")),
            };
            attributes.push(Attribute { call, key, value });
        }
        Ok(attributes)
    }

    fn textref(&self, cursor: &mut Cursor<'_>) -> Result<Arc<str>, Malformed> {
        match cursor.varint("text number")? {
            0 => Ok(cursor.text("text")?.into()),
            number => {
                let known = lookup(&self.texts, number - 1).cloned();
                known.ok_or(cursor.malformed("text number (not defined)"))
            }
        }
    }
}

/// Reads the fields before the definitions.
fn front(version: u16, payload: &[u8]) -> Result<(Cursor<'_>, Option<Origin>), Malformed> {
    let mut cursor = Cursor::new(payload);
    let flags = cursor.byte("flags")?;
    cursor.varint("synced")?;
    let mut origin = None;
    if flags & FLAG_ORIGIN != 0 {
        let session = u128::from_be_bytes(cursor.array("session")?);
        let seq = cursor.varint("seq")?;
        let before = match flags & FLAG_FRAMES {
            0 if version <= VERSION_SINGLE => seq,
            0 => 0,
            _ => cursor.varint("frames")?,
        };
        let first = seq.checked_sub(before).ok_or(cursor.malformed("frames"))?;
        origin = Some(Origin { session, first, seq });
    }
    Ok((cursor, origin))
}

#[derive(Default)]
struct LabelsReader {
    /// Whether each set of labels is written as one string.
    whole: bool,
    last: Vec<u8>,
    /// Bytes of all labels when written out.
    written: usize,
    /// Bytes of the labels in memory, where series share labels.
    bytes: usize,
}

impl LabelsReader {
    fn read<D: Define>(&mut self, defines: &mut D, cursor: &mut Cursor<'_>) -> Result<D::Series, Malformed> {
        if self.whole {
            self.last = cursor.string("labels")?.to_vec();
        } else {
            let mut shared =
                || usize::try_from(cursor.varint("shared labels")?).map_err(|_| cursor.malformed("labels"));
            let (begins, ends) = (shared()?, shared()?);
            let between = cursor.string("labels")?;
            let malformed = cursor.malformed("shared labels");
            let rest = self
                .last
                .len()
                .checked_sub(begins)
                .and_then(|rest| rest.checked_sub(ends))
                .ok_or(malformed.clone())?;
            self.last.splice(begins..begins + rest, between.iter().copied());
            self.written += self.last.len();
            if self.written > DEFINITIONS_BYTES_MAX {
                return Err(malformed);
            }
        }
        let (series, bytes) = defines.define(&self.last).map_err(|_| cursor.malformed("labels"))?;
        self.bytes += bytes;
        if !self.whole && self.bytes > DEFINITIONS_KEPT_BYTES_MAX {
            return Err(cursor.malformed("shared labels"));
        }
        Ok(series)
    }
}

/// The operations of a block, numbered by first use.
struct Operations<'a> {
    known: &'a Table<Operation>,
    indices: HashMap<u64, u32>,
    used: Vec<Operation>,
}

impl Operations<'_> {
    fn index(&mut self, number: u64, cursor: &Cursor<'_>) -> Result<u32, Malformed> {
        if let Some(index) = self.indices.get(&number) {
            return Ok(*index);
        }
        let what = "operation number (not defined)";
        let operation = lookup(self.known, number).ok_or(cursor.malformed(what))?;
        let index = u32::try_from(self.used.len()).map_err(|_| cursor.malformed(what))?;
        self.used.push(operation.clone());
        self.indices.insert(number, index);
        Ok(index)
    }
}

fn lookup<T>(table: &Table<T>, number: u64) -> Option<&T> {
    table.get(usize::try_from(number).ok()?)?.as_ref()
}

/// Gaps and repetitions that [`define`] permits because the file is damaged.
struct Missing<'a> {
    /// [`Decoder::missing_max`].
    max: &'a mut usize,
    /// Whether a definition may be repeated.
    again: bool,
}

fn define<T>(
    cursor: &mut Cursor<'_>,
    table: &mut Table<T>,
    missing: &mut Missing<'_>,
    mut read: impl FnMut(&mut Cursor<'_>) -> Result<T, Malformed>,
) -> Result<(), Malformed> {
    let what = "number of the first definition";
    let first = usize::try_from(cursor.varint(what)?).map_err(|_| cursor.malformed(what))?;
    let count = cursor.count(1, "number of definitions")?;
    if count == 0 {
        return Ok(());
    }
    if first < table.len() && !missing.again {
        return Err(cursor.malformed(what));
    }
    let gap = first.saturating_sub(table.len());
    *missing.max = missing.max.checked_sub(gap).ok_or(cursor.malformed(what))?;
    table.resize_with(table.len() + gap, || None);
    for at in first..first + count {
        let definition = read(cursor)?;
        match table.get_mut(at) {
            Some(known) => drop(known.get_or_insert(definition)),
            None => table.push(Some(definition)),
        }
    }
    Ok(())
}
