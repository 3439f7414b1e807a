//! How do columns become a chunk of version 1 (entries) or 5 (executions)? Each column is encoded with the best codec (`codec/`,
//! `text/`) when it is added. `finish` then writes the header and the columns.
//!
//! This file and `chunk.rs` use each other: this file writes the prefix with the constants that `chunk.rs` checks, and `chunk.rs`
//! decodes entries with `entries.rs`, which encodes entries with the [`Builder`].

use tacho_model::{Kind, TimeRange, ValueType};

use crate::chunk::{CALLER_VERSION, MAGIC, PREFIX_BYTES, VERSION};
use crate::codec::{Encoded, Numbers};
use crate::header::{ColumnInfo, Header, Tables};
use crate::{Encoding, FilterInfo, Role, SummaryInfo, codec, text};

pub(crate) struct Builder<'a> {
    encoding: &'a Encoding,
    columns: Vec<ColumnInfo>,
    body: Vec<u8>,
    /// The filters of a chunk of executions, and their bytes.
    filters: Option<(FilterInfo, Vec<u8>)>,
    /// The bytes of the summary of a chunk of executions.
    summary: Vec<u8>,
}

/// A summary has at most the bytes of the columns divided by this number. A longer summary is omitted, because the columns are
/// read almost as fast.
const SUMMARY_SHARE: usize = 4;

impl<'a> Builder<'a> {
    pub(crate) const fn new(encoding: &'a Encoding) -> Self {
        Self { encoding, columns: vec![], body: vec![], filters: None, summary: vec![] }
    }

    pub(crate) fn numbers(&mut self, role: Role, words: &[u64], kind: ValueType) {
        let encoded = codec::encode(Numbers { words, kind }, 0, self.encoding);
        self.add(role, &encoded, codec::name(encoded.codec));
    }

    pub(crate) fn u64(&mut self, role: Role, words: &[u64]) {
        self.numbers(role, words, ValueType::U64);
    }

    pub(crate) fn i64(&mut self, role: Role, numbers: &[i64]) {
        let words: Vec<u64> = numbers.iter().map(|n| n.cast_unsigned()).collect();
        self.numbers(role, &words, ValueType::I64);
    }

    pub(crate) fn strings(&mut self, role: Role, strings: text::Strings<'_>) {
        let encoded = text::encode(strings, 0, self.encoding);
        self.add(role, &encoded, text::name(encoded.codec));
    }

    fn add(&mut self, role: Role, encoded: &Encoded, name: Option<&'static str>) {
        let codec = name.unwrap_or_default();
        self.columns.push(ColumnInfo { role, codec, tag: encoded.codec, bytes: encoded.bytes.len() });
        self.body.extend_from_slice(&encoded.bytes);
    }

    pub(crate) fn filters(&mut self, filters: (FilterInfo, Vec<u8>)) {
        self.filters = Some(filters);
    }

    /// Adds the summary of a chunk with filters. The caller has added all columns before. A summary that is too long is omitted.
    pub(crate) fn summary(&mut self, summary: Vec<u8>) {
        if summary.len() <= self.body.len() / SUMMARY_SHARE {
            self.summary = summary;
        }
    }

    /// The chunk: prefix, header, filters, summary, columns.
    pub(crate) fn finish(
        self,
        kind: Kind,
        count: usize,
        range: TimeRange,
        tables: Option<Tables>,
    ) -> Vec<u8> {
        let (start, end) = (range.start, range.end);
        let (time_error_max, members, times, columns) = (0, vec![], None, self.columns);
        let (filters, filter_bytes) = self.filters.unzip();
        let version = if filters.is_some() { CALLER_VERSION } else { VERSION };
        let names = tables.as_ref().map_or(0, Tables::name_columns);
        let names: usize = columns.iter().take(names).map(|column| column.bytes).sum();
        let names = self.body.get(..names).unwrap_or_default();
        let summary = filters.is_some().then(|| SummaryInfo::of(&self.summary, names));
        let filter_bytes = filter_bytes.unwrap_or_default();
        let header = Header {
            kind,
            count,
            start,
            end,
            time_error_max,
            members,
            tables,
            bytes: 0,
            filters,
            summary,
            times,
            columns,
        };
        let mut fields = vec![];
        header.put(&mut fields);
        let fields_bytes = u32::try_from(fields.len()).unwrap_or(u32::MAX);

        let front_bytes = fields.len() + filter_bytes.len() + self.summary.len();
        let mut out = Vec::with_capacity(PREFIX_BYTES + front_bytes + self.body.len());
        out.extend_from_slice(MAGIC);
        out.extend([version, kind as u8, 0, 0]);
        out.extend_from_slice(&fields_bytes.to_le_bytes());
        out.extend_from_slice(&crc32c::crc32c(&self.body).to_le_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&out), &fields);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&fields);
        out.extend_from_slice(&filter_bytes);
        out.extend_from_slice(&self.summary);
        out.extend_from_slice(&self.body);
        out
    }
}
