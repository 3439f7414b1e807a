//! DATA: which records does a frame hold, which of them are refused, and was the frame here before?
//!
//! Step before: `frame.rs` cut the frame out of the stream. Step after: `server/src/listen/commit.rs` appends the batch.

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

/// Name of the series that a session's executions belong to.
const EXECUTIONS: &str = "executions";
/// What stands for a missing `service` or `host`.
const UNKNOWN: &str = "unknown";

/// One record that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Position in the frame, from 0.
    pub record: u64,
    pub reason: String,
}

/// A decoded DATA frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    pub seq: u64,
    pub batch: Batch,
    pub rejects: Rejects<Refused>,
}

/// What is to be done with a DATA frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// Decode it and keep its records.
    Fresh,
    /// Sent again after a reconnect: acknowledge it, keep nothing.
    Repeated,
}

/// The numbers of a session's DATA frames: they begin at 1 and rise. Gaps are allowed up to [`SEQ_JUMP_MAX`] behind the
/// first that comes: a number out of all proportion would make a repetition of every frame that the session still sends.
#[derive(Clone, Copy, Debug)]
pub struct Sequence {
    taken: u64,
    /// Nothing has come yet.
    begins: bool,
}

impl Sequence {
    /// `acked` is the number of the session's last frame that is on disk, 0 for none.
    pub const fn new(acked: u64) -> Self {
        Self { taken: acked, begins: true }
    }

    /// Number of the last frame that was taken.
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// # Errors
    /// `Malformed` for a number that is too far from the last one. The first one that comes may be any up to [`SEQ_FIRST_MAX`]:
    /// the session may have been going for long, and the server does not know it any more, or as it was when its data were
    /// copied.
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

/// One connection of a session, seen by the decoder: who it is and what its ids stand for.
#[derive(Debug)]
pub struct Session {
    id: u128,
    executions: Arc<Labels>,
    dictionary: Dictionary,
    table: OperationTable,
}

impl Session {
    /// Fails where a pair of HELLO is over the limits of a label.
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

    /// Labels of the session's executions; `service` is among them.
    pub const fn executions(&self) -> &Arc<Labels> {
        &self.executions
    }

    /// About how much memory the session's dictionary takes, bytes.
    pub fn dictionary_bytes(&self) -> usize {
        self.dictionary.memory_bytes()
    }

    /// Takes the body of a DICT frame.
    pub fn define(&mut self, body: &[u8]) -> Result<(), Error> {
        self.dictionary.define(body)
    }

    /// Record types that were defined since this was asked last.
    pub fn take_record_types(&mut self) -> Vec<Arc<RecordType>> {
        self.dictionary.take_record_types()
    }

    /// Number of a DATA frame: what [`Sequence::take`] wants to know before the rest is read.
    pub fn seq(body: &[u8]) -> Result<u64, Error> {
        read_head(&mut Reader::new(body)).map(|(seq, _)| seq)
    }

    /// Takes the body of a DATA frame apart. A bad record never takes good ones with it; only a frame
    /// without number or base is an error.
    pub fn data(&mut self, body: &[u8]) -> Result<Data, Error> {
        self.data_within(body, &mut Budget::of_body(body.len()))
    }

    /// As [`Session::data`], of a frame that shares its room with others.
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
                // What it had taken stays taken: to find out that a record is too long takes time.
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

/// Reads one record and steps over it, whatever is in it. Where its length is not to be trusted, nothing
/// after it can be found: the rest of the frame is this one bad record.
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

/// Records of one series that follow each other become one.
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
