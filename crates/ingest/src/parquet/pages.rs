//! How is the memory for the pages of a file limited?
//!
//! A small page can state a decompressed size of gigabytes, and a dictionary stays in memory as long as its column is
//! read. Therefore every page head is checked before the page is decompressed (`page_head.rs`). All columns that are
//! read together share one limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};

use super::page_head::{Head, Kind, pass_deltas};
use crate::reader::Reader;

/// Limit in bytes on the pages of all columns that are read together. Most writers use pages and dictionaries of one MiB. With
/// this size, 64 columns take half of the limit. Pages of DuckDB have up to 100 MB.
pub const PAGES_BYTES_MAX: usize = 256 << 20;
/// The first attempt to read a head reads the first number of bytes. Each further attempt reads 16 times as many bytes as the one
/// before. An attempt with at least the second number of bytes is the last. Heads may be long, because a head may contain the
/// smallest and the largest value of its page.
const HEAD_BYTES: (usize, usize) = (256, 4 << 20);
/// Memory of one value of a dictionary.
const CELL_BYTES: usize = 40;
/// Memory of the length of one text.
const LENGTH_BYTES: usize = 8;

/// A file that several readers share.
pub struct Shared<R>(Arc<R>);

impl<R> Shared<R> {
    pub fn new(input: R) -> Self {
        Self(Arc::new(input))
    }
}

impl<R> Clone for Shared<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Length> Length for Shared<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for Shared<R> {
    type T = R::T;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// Counts the memory of the pages of all columns that are read together.
#[derive(Clone, Debug, Default)]
pub struct PageBudget(Arc<AtomicUsize>);

/// The share of one column in the budget.
#[derive(Clone, Debug, Default)]
pub struct Held {
    budget: PageBudget,
    /// Memory of the pages before the current page. Cells may still reference these pages.
    passed: Arc<AtomicUsize>,
    /// Size of the largest page when decompressed.
    largest: Arc<AtomicUsize>,
}

impl PageBudget {
    pub fn column(&self) -> Held {
        Held { budget: self.clone(), ..Held::default() }
    }

    fn take(&self, bytes: usize) -> Result<()> {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        let taken = before.saturating_add(bytes);
        if taken <= PAGES_BYTES_MAX {
            return Ok(());
        }
        self.give(bytes);
        Err(ParquetError::General(format!(
            "pages that are read together take {taken} bytes of memory, at most {PAGES_BYTES_MAX} are allowed: \
             write the file with smaller pages"
        )))
    }

    fn give(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Held {
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::Relaxed)
    }

    pub fn largest(&self) -> usize {
        self.largest.load(Ordering::Relaxed)
    }

    /// Releases the previous pages. No cell may reference them any more.
    pub fn settle(&self) {
        self.budget.give(self.passed.swap(0, Ordering::Relaxed));
    }
}

/// Whether values of the column are encoded as differences from the previous value (DELTA_BYTE_ARRAY).
pub fn is_prefixed(column: &ColumnChunkMetaData) -> bool {
    column.encodings().any(|encoding| encoding == Encoding::DELTA_BYTE_ARRAY)
}

/// The pages of one column. Each page is checked before it is read.
pub struct Guard<R> {
    inner: Box<dyn PageReader>,
    input: Shared<R>,
    /// Position of the next head, and the remaining bytes of the column.
    at: u64,
    left: u64,
    /// The next head, if it was already read and checked.
    next: Option<Head>,
    physical: Type,
    has_levels: bool,
    is_prefixed: bool,
    held: Held,
    /// Memory of the current page.
    page: usize,
}

impl<R: ChunkReader> Guard<R> {
    pub fn new(
        inner: Box<dyn PageReader>,
        input: Shared<R>,
        column: &ColumnChunkMetaData,
        held: Held,
    ) -> Self {
        let (at, left) = column.byte_range();
        Self {
            inner,
            input,
            at,
            left,
            next: None,
            physical: column.column_type(),
            has_levels: column.column_descr().max_def_level() > 0,
            is_prefixed: is_prefixed(column),
            held,
            page: 0,
        }
    }

    /// Reads the head of the next page; `None` at the end.
    fn look(&mut self) -> Result<Option<Head>> {
        if self.next.is_some() || self.left == 0 {
            return Ok(self.next);
        }
        let mut wanted = HEAD_BYTES.0;
        let head = loop {
            let bytes = wanted.min(usize::try_from(self.left).unwrap_or(usize::MAX));
            match Head::parse(&self.input.get_bytes(self.at, bytes)?) {
                Ok(head) => break head,
                Err(flaw) if bytes < wanted || wanted >= HEAD_BYTES.1 => {
                    return Err(ParquetError::General(format!("head of a page: {flaw}")));
                }
                Err(_) => wanted *= 16,
            }
        };
        let wrong =
            |what: &str| Err(ParquetError::General(format!("page of {} values: {what}", head.values)));
        if head.bytes as u64 + head.packed as u64 > self.left {
            return wrong("the page ends after its column");
        }
        // Minimum size of a value. A text has at least the four bytes of its length.
        let least = match self.physical {
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
            Type::BOOLEAN | Type::FIXED_LEN_BYTE_ARRAY => 1,
        };
        if head.kind == Kind::Dictionary && head.values.saturating_mul(least) > head.unpacked {
            return wrong("dictionary page too short");
        }
        self.next = Some(head);
        Ok(self.next)
    }

    fn pass(&mut self) {
        if let Some(head) = self.next.take() {
            let bytes = head.bytes as u64 + head.packed as u64;
            self.at += bytes;
            self.left -= bytes;
        }
    }

    /// Memory of the decoder for text lengths that are stored separately. Checks the number of the lengths first.
    fn lengths(&self, page: &Page) -> Result<usize> {
        let encoding = page.encoding();
        let lists = match encoding {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => return Ok(0),
        };
        let wrong = |what: String| ParquetError::General(format!("page of texts: {what}"));
        if encoding == Encoding::DELTA_BYTE_ARRAY && !self.is_prefixed {
            return Err(wrong("the column does not list the encoding of the page".into()));
        }
        let values = usize::try_from(page.num_values()).unwrap_or(usize::MAX);
        let mut reader = Reader::new(page.buffer());
        let levels = match page {
            Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
                def_levels_byte_len.saturating_add(*rep_levels_byte_len) as usize
            }
            Page::DataPage { def_level_encoding: Encoding::RLE, .. } if self.has_levels => {
                reader.array().map_or(usize::MAX, |length| u32::from_le_bytes(length) as usize)
            }
            Page::DataPage { .. } if self.has_levels => usize::MAX,
            _ => 0,
        };
        let lengths = reader.take(levels);
        let passed = lengths.and_then(|_| (0..lists).try_for_each(|_| pass_deltas(&mut reader, values)));
        passed.map_err(|flaw| wrong(flaw.to_string()))?;
        Ok(lists * values.saturating_mul(LENGTH_BYTES))
    }
}

impl<R: ChunkReader> PageReader for Guard<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(head) = self.look()? else { return Ok(None) };
        let budget = self.held.budget.clone();
        let values = if head.kind == Kind::Dictionary { head.values.saturating_mul(CELL_BYTES) } else { 0 };
        let mut kept = head.unpacked.saturating_add(values);
        budget.take(kept.saturating_add(head.packed))?;
        let page = self.inner.get_next_page();
        budget.give(head.packed);
        self.pass();
        let page = page?;
        let lengths = page.as_ref().map_or(Ok(0), |page| self.lengths(page))?;
        budget.take(lengths)?;
        kept += lengths;
        self.held.largest.fetch_max(head.unpacked, Ordering::Relaxed);
        if head.kind == Kind::Data {
            let before = std::mem::replace(&mut self.page, kept);
            self.held.passed.fetch_add(before, Ordering::Relaxed);
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.look()?;
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.look()?;
        self.inner.skip_next_page()?;
        self.pass();
        Ok(())
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.look()?;
        self.inner.at_record_boundary()
    }
}

impl<R: ChunkReader> Iterator for Guard<R> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}
