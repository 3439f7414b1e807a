//! How is a summary stored outside of a chunk? With the names that its indexes refer to, in columns before its figures.

use std::sync::Arc;

use tacho_model::{Operation, SeriesId};

use super::columns::{Taker, Writer};
use super::{CallSummary, bytes};
use crate::bytes::{Reader, low_word, put_varint};
use crate::execution::operation;
use crate::limits::SUMMARY_CELLS_MAX;
use crate::{Caller, Encoding, Error};

impl CallSummary {
    /// The bytes of the summary with its names. They have no checksum.
    pub fn encode_with_names(&self) -> Vec<u8> {
        let encoding = &Encoding::default();
        let mut writer = Writer { encoding, out: vec![] };
        put_varint(&mut writer.out, self.operations.len() as u64);
        put_varint(&mut writer.out, self.callers.len() as u64);
        put_operations(&mut writer, self.operations.iter());
        for shift in [64, 0] {
            writer.column(self.callers.iter().map(|caller| low_word(caller.series.0 >> shift)));
        }
        put_operations(&mut writer, self.callers.iter().map(|caller| &caller.operation));
        writer.out.extend_from_slice(&bytes::encode(self, encoding));
        writer.out
    }

    /// # Errors
    /// If the bytes are malformed, or of a newer version.
    pub fn decode_with_names(bytes: &[u8]) -> Result<Self, Error> {
        let mut taker = Taker { reader: Reader::new(bytes) };
        let operations = taker.reader.size("operations of the summary", SUMMARY_CELLS_MAX)?;
        let callers = taker.reader.size("callers of the summary", SUMMARY_CELLS_MAX)?;
        let operations = take_operations(&mut taker, operations)?;
        let mut column = |what| taker.column(what, callers);
        let (highs, lows) = (column("series of a caller")?, column("series of a caller")?);
        let series =
            highs.into_iter().zip(lows).map(|(high, low)| SeriesId(u128::from(high) << 64 | u128::from(low)));
        let called = take_operations(&mut taker, callers)?;
        let callers = series.zip(called).map(|(series, operation)| Caller { series, operation });
        let callers: Arc<[Caller]> = callers.collect();
        bytes::decode(taker.reader.rest(), operations.into(), callers)
    }
}

fn put_operations<'a>(writer: &mut Writer<'_>, operations: impl Iterator<Item = &'a Operation> + Clone) {
    writer.column(operations.clone().map(|operation| operation.kind as u64));
    let names: Vec<&[u8]> = operations.map(|operation| operation.name.as_bytes()).collect();
    writer.texts(&names);
}

fn take_operations(taker: &mut Taker<'_>, count: usize) -> Result<Vec<Operation>, Error> {
    let kinds = taker.column("kind of operation", count)?;
    let names = taker.texts("name of an operation", count)?;
    kinds.into_iter().zip(names.iter()).map(|(kind, name)| operation(kind, name)).collect()
}
