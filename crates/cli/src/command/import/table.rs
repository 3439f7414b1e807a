//! Reads a Parquet file block by block.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tacho_ingest::csv::Given;
use tacho_ingest::parquet::{Bytes, ChunkReader, ChunkResult, Length, Parquet, ParquetError, Place};
use tacho_ingest::time_text::TimeZone;
use xxhash_rust::xxh3::xxh3_64;

use super::blocks::{Blocks, Mark, Part};
use super::early::Counted;
use super::source::{self, STRETCH_BYTES, nameless};
use crate::failure::Failure;

pub struct Table {
    parquet: Parquet<Input>,
    /// Checksum of the head and the end of the file.
    check: u64,
}

struct Input {
    file: File,
    length: u64,
    /// Counts the bytes read, without the footer of the file and the headers of pages.
    read: Arc<AtomicU64>,
}

impl Table {
    /// `base` are labels that every series gets.
    pub fn open(
        path: &Path,
        read: &Arc<AtomicU64>,
        given: &Given,
        zone: TimeZone,
        base: Vec<(String, String)>,
    ) -> Result<Self, Failure> {
        let failed = |e: io::Error| source::cannot_read(path, &e);
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let input = Input { file, length, read: Arc::clone(read) };
        let check =
            input.check().map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())))?;
        let parquet = Parquet::open(input, given, zone, base)
            .map_err(|reason| nameless(Failure::new(format!("{}: {reason}", path.display())), &reason))?;
        Ok(Self { parquet, check })
    }

    pub fn description(&self) -> String {
        self.parquet.description().to_owned()
    }

    pub fn counted(&self) -> Option<Counted> {
        self.parquet.time_format().and_then(Counted::by)
    }

    pub fn doubts(&self) -> Vec<String> {
        self.parquet.doubts().to_vec()
    }
}

impl Blocks for Table {
    fn next(&mut self) -> Result<Option<Part>, Failure> {
        let rows = self.parquet.next_rows();
        Ok(rows.map(|rows| Part { block: rows.block, text: rows.text.into_bytes() }))
    }

    fn mark(&self) -> Option<Mark> {
        let Place { group, part, row } = self.parquet.place();
        Some(Mark::Group { group: group as u64, part: part as u64, row, check: self.check })
    }

    fn seek_to(&mut self, mark: &Mark) -> Result<bool, Failure> {
        let Mark::Group { group, part, row, check } = *mark else { return Ok(false) };
        let [group, part] = [group, part].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        self.parquet.seek(Place { group, part, row });
        Ok(check == self.check)
    }

    fn offset(&self) -> u64 {
        self.parquet.rows_read()
    }
}

impl Input {
    fn check(&self) -> ChunkResult<u64> {
        let stretch = self.length.min(STRETCH_BYTES as u64);
        let bytes = usize::try_from(stretch).unwrap_or(STRETCH_BYTES);
        let (head, end) = (self.get_bytes(0, bytes)?, self.get_bytes(self.length - stretch, bytes)?);
        Ok(xxh3_64(&[head, end].concat()))
    }

    fn at(&self, start: u64) -> io::Result<File> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        Ok(file)
    }
}

impl Length for Input {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Input {
    type T = BufReader<File>;

    /// A reader for the footer of the file or the header of a page. Both are short.
    fn get_read(&self, start: u64) -> ChunkResult<Self::T> {
        Ok(BufReader::with_capacity(256, self.at(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ChunkResult<Bytes> {
        // The length is checked before memory is allocated.
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            let text = format!("{length} bytes at byte {start} are beyond the file's end");
            return Err(ParquetError::EOF(text));
        }
        let mut bytes = vec![0; length];
        self.at(start)?.read_exact(&mut bytes)?;
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        Ok(bytes.into())
    }
}
