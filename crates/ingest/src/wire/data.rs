//! DATA: which records does a frame hold, which records are refused, and is the frame repeated?
//!
//! Step before: `frame.rs`, which cuts the frame out of the stream. Step after: `server/src/listen/commit.rs`, which
//! appends the batch.

use std::cell::Cell;
use std::sync::Arc;

use tacho_model::{Batch, EntrySeries, ExecutionSeries, LabelError, Labels, NAME, SampleSeries, Segment};

use super::declared::declared;
use super::descriptor::RecordType;
use super::dict::Dictionary;
use super::message::{Hello, malformed};
use super::record::{RecordError, Tag, entry, samples};
use super::segment::{Context, OperationTable, segment};
use super::{SEQ_FIRST_MAX, SEQ_JUMP_MAX};
use crate::budget::Budget;
use crate::reader::{Flaw, Reader};
use crate::{Error, Rejects};

/// Name of the series for the executions of a session.
const EXECUTIONS: &str = "executions";
/// Value of the labels `service` and `host` if the client sends no value or an empty one.
const UNKNOWN: &str = "unknown";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Position in the frame, counted from 0.
    pub record: u64,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    pub seq: u64,
    pub batch: Batch,
    pub rejects: Rejects<Refused>,
}

/// How to handle a DATA frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// A new frame: decode it and keep its records.
    Fresh,
    /// A frame repeated after a reconnect: acknowledge it and discard its records.
    Repeated,
}

/// The sequence numbers of a session's DATA frames. They start at 1 and rise. After the first DATA frame of a
/// connection, gaps of up to [`SEQ_JUMP_MAX`] are allowed. Without this limit, one number that is far too large would turn every
/// later frame of the session into a repeated frame.
#[derive(Clone, Copy, Debug)]
pub struct Sequence {
    taken: u64,
    /// Whether the connection has accepted no DATA frame yet.
    begins: bool,
}

impl Sequence {
    /// `acked` is the number of the session's last durable frame; 0 if there is none.
    pub const fn new(acked: u64) -> Self {
        Self { taken: acked, begins: true }
    }

    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes the number of the next frame, and decides how to handle the frame. The first frame may have any number up to
    /// [`SEQ_FIRST_MAX`]: the session may be old, and the server may have lost its state.
    ///
    /// # Errors
    /// `Number` for a number that is too far above the last number.
    pub fn take(&mut self, seq: u64) -> Result<Numbering, Error> {
        let most = self.taken.saturating_add(SEQ_JUMP_MAX).max(if self.begins { SEQ_FIRST_MAX } else { 0 });
        if seq > most {
            return Err(Error::Number { seq, last: self.taken, most });
        }
        self.begins = false;
        if seq <= self.taken {
            return Ok(Numbering::Repeated);
        }
        self.taken = seq;
        Ok(Numbering::Fresh)
    }
}

/// Decoder state of one connection: its session, and the definitions of the ids.
#[derive(Debug)]
pub struct Session {
    id: u128,
    executions: Arc<Labels>,
    dictionary: Dictionary,
    table: OperationTable,
}

impl Session {
    /// Begins a session. Fails if `service`, `host` or `instance` in HELLO exceeds the limit of a label's value.
    pub fn new(hello: &Hello) -> Result<Self, Error> {
        let executions = execution_labels(hello)
            .map_err(|error| Error::Unexpected { what: format!("pair in HELLO: {error}") })?;
        Ok(Self {
            id: hello.session,
            executions: Arc::new(executions),
            dictionary: Dictionary::default(),
            table: OperationTable::default(),
        })
    }

    /// Labels of the session's executions, including `service`.
    pub const fn executions(&self) -> &Arc<Labels> {
        &self.executions
    }

    /// Estimated memory of the session's dictionary, bytes.
    pub fn dictionary_bytes(&self) -> usize {
        self.dictionary.memory_bytes()
    }

    pub fn define(&mut self, body: &[u8]) -> Result<(), Error> {
        self.dictionary.define(body)
    }

    /// Valid record types that were defined since the last call, at most `NEW_TYPES_MAX` of `dict.rs`. Further types are
    /// omitted.
    pub fn take_record_types(&mut self) -> Vec<Arc<RecordType>> {
        self.dictionary.take_record_types()
    }

    /// Number of types that [`Session::take_record_types`] omitted since the last call of this function.
    pub fn take_omitted_types(&mut self) -> u64 {
        self.dictionary.take_omitted_types()
    }

    /// Number of a DATA frame, for [`Sequence::take`]. It is read before the rest of the frame is decoded.
    pub fn seq(body: &[u8]) -> Result<u64, Error> {
        read_head(&mut Reader::new(body)).map(|(seq, _)| seq)
    }

    /// Decodes the body of a DATA frame. A refused record does not affect the records before it. It affects those
    /// after it only if its length is invalid, or the memory budget is used up. The only errors are a frame number that is
    /// missing, malformed or 0, and a missing base time.
    pub fn data(&mut self, body: &[u8]) -> Result<Data, Error> {
        self.data_within(body, &mut Budget::of_body(body.len()))
    }

    /// The same as [`Session::data`], but the frame shares its budget with other frames.
    pub fn data_within(&mut self, body: &[u8], budget: &mut Budget) -> Result<Data, Error> {
        let mut reader = Reader::new(body);
        let (seq, base) = read_head(&mut reader)?;
        let Self { id, executions, dictionary, table } = self;
        let context = Context { session: *id, base, dictionary, budget: Cell::new(*budget) };
        table.begin_frame(dictionary);
        let mut batch = Batch::default();
        let mut segments = Vec::new();
        let mut rejects = Rejects::default();
        let mut position = 0;
        while !reader.is_empty() {
            match read_record(&context, table, &mut reader) {
                Ok(Record::Samples(series)) => add_samples(&mut batch.samples, series),
                Ok(Record::Entry(series)) => add_entries(&mut batch.entries, series),
                Ok(Record::Segment(segment)) => segments.push(segment),
                // The memory of a refused record is not returned to the budget. So the budget also limits the time for a frame
                // with many records that are too long.
                Err(reason) => rejects.add(|| Refused { record: position, reason: reason.to_string() }),
            }
            position += 1;
        }
        *budget = context.budget.get();
        if !segments.is_empty() {
            let labels = Arc::clone(executions);
            batch.executions.push(ExecutionSeries { labels, operations: table.take(), segments });
        }
        Ok(Data { seq, batch, rejects })
    }
}

fn execution_labels(hello: &Hello) -> Result<Labels, LabelError> {
    let known = |key| hello.get(key).filter(|value| !value.is_empty());
    Labels::new([
        (NAME, EXECUTIONS),
        ("service", known("service").unwrap_or(UNKNOWN)),
        ("host", known("host").unwrap_or(UNKNOWN)),
        ("instance", known("instance").unwrap_or_default()),
    ])
}

fn read_head(reader: &mut Reader<'_>) -> Result<(u64, i64), Error> {
    let head = |reader: &mut Reader<'_>| {
        let zero = reader.flaw("frame number 0");
        match reader.varint()? {
            0 => Err(zero),
            seq => Ok((seq, reader.i64()?)),
        }
    };
    head(reader).map_err(|flaw: Flaw| malformed("DATA", flaw))
}

enum Record {
    Samples(SampleSeries),
    Entry(EntrySeries),
    Segment(Segment),
}

/// Reads one record and moves to the next record, even if the record is refused. If the length of a record is invalid,
/// the following records cannot be located. In this case the rest of the frame counts as one refused record.
fn read_record(
    context: &Context<'_>,
    table: &mut OperationTable,
    reader: &mut Reader<'_>,
) -> Result<Record, RecordError> {
    let (tag, mut record) = match cut_record(reader) {
        Ok(cut) => cut,
        Err(flaw) => {
            reader.take_rest();
            return Err(RecordError::Malformed(flaw));
        }
    };
    match Tag::from_byte(tag) {
        Some(Tag::Samples) => samples(context, &mut record).map(Record::Samples),
        Some(Tag::Entry) => entry(context, &mut record).map(Record::Entry),
        Some(Tag::Segment) => segment(context, table, &mut record).map(Record::Segment),
        Some(Tag::Declared) => declared(context, &mut record).map(Record::Entry),
        None => Err(RecordError::Tag(tag)),
    }
}

fn cut_record<'a>(reader: &mut Reader<'a>) -> Result<(u8, Reader<'a>), Flaw> {
    let tag = reader.u8()?;
    let record = reader.bytes()?;
    Ok((tag, Reader::new(record)))
}

/// Merges adjacent records of one series.
fn add_samples(list: &mut Vec<SampleSeries>, series: SampleSeries) {
    match list.last_mut() {
        Some(last) if Arc::ptr_eq(&last.labels, &series.labels) => last.samples.extend(series.samples),
        _ => list.push(series),
    }
}

fn add_entries(list: &mut Vec<EntrySeries>, series: EntrySeries) {
    match list.last_mut() {
        Some(last) if Arc::ptr_eq(&last.labels, &series.labels) => last.entries.extend(series.entries),
        _ => list.push(series),
    }
}
