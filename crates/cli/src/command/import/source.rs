//! Reads a file in blocks of whole rows, and decompresses it if needed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use tacho_ingest::rows::Rows;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::failure::Failure;

/// Number of bytes that are read for a block. The block ends after the last whole row in these bytes. A row that is larger than
/// this makes a larger block. The same file is always divided into the same blocks.
const BLOCK_BYTES: usize = 1 << 20;
/// Limit on the bytes of one row. It is high, because VictoriaMetrics exports many samples of a series in one line.
const ROW_BYTES_MAX: usize = 256 << 20;
/// Bytes of a file that are used to detect its format.
const HEAD_BYTES: usize = 1 << 20;
/// Length of each of the two parts of a file that are checked for changes: its head, and the part before the resume position.
/// In a Parquet file, the second part is the end of the file.
pub const STRETCH_BYTES: usize = 4 << 10;
/// First bytes of a gzip file (RFC 1952).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

const STDIN: &str = "-";

pub struct Source {
    path: PathBuf,
    input: Box<dyn Read + Send>,
    /// The file, for seeking. `None` for a compressed file and for standard input.
    plain: Option<File>,
    read: Arc<AtomicU64>,
    /// Checksum of the first [`STRETCH_BYTES`].
    head: u64,
    /// The last bytes that were returned or skipped, for [`Source::check`].
    tail: Vec<u8>,
    /// Bytes that were read but not yet returned.
    buffer: Vec<u8>,
    ended: bool,
    /// Position in the uncompressed file: number of bytes returned or skipped.
    pub offset: u64,
}

struct Counting<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == STDIN
}

/// Checks that the path is a readable file.
pub fn check(path: &Path) -> Result<(), Failure> {
    let file = File::open(path).and_then(|file| file.metadata());
    match file.map_err(|e| cannot_read(path, &e).into_usage())?.is_dir() {
        true => Err(Failure::usage(format!("{} is a directory: name the files in it", path.display()))),
        false => Ok(()),
    }
}

impl Source {
    /// `read` counts the bytes of the file before decompression.
    pub fn open(path: &Path, read: Arc<AtomicU64>) -> Result<Self, Failure> {
        let failed = |e: io::Error| cannot_read(path, &e);
        let mut plain = None;
        let raw: Box<dyn Read + Send> = match is_stdin(path) {
            true => Box::new(io::stdin()),
            false => {
                let file = File::open(path).map_err(failed)?;
                plain = Some(file.try_clone().map_err(failed)?);
                Box::new(file)
            }
        };
        let mut raw = Counting { inner: raw, count: Arc::clone(&read) };
        let mut begin = Vec::new();
        (&mut raw).take(GZIP_MAGIC.len() as u64).read_to_end(&mut begin).map_err(failed)?;
        let packed = begin == GZIP_MAGIC;
        let whole = io::Cursor::new(begin).chain(raw);
        let input: Box<dyn Read + Send> =
            if packed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
        let (path, plain) = (path.to_owned(), plain.filter(|_| !packed));
        let (tail, buffer) = (Vec::new(), Vec::new());
        let mut source = Self { path, input, plain, read, head: 0, tail, buffer, ended: false, offset: 0 };
        let head = source.head()?;
        source.head = xxh3_64(&head[..head.len().min(STRETCH_BYTES)]);
        Ok(source)
    }

    /// A checksum of the head and of the [`STRETCH_BYTES`] before the current position.
    pub fn check(&self) -> u64 {
        xxh3_64_with_seed(&self.tail, self.head)
    }

    /// Continues at this byte of the uncompressed file. A compressed file is read up to this byte.
    pub fn seek_to(&mut self, offset: u64) -> Result<(), Failure> {
        let begin = offset.saturating_sub(STRETCH_BYTES as u64);
        if let Some(mut file) = self.plain.take()
            && file.seek(SeekFrom::Start(begin)).is_ok()
        {
            self.read.store(begin, Ordering::Relaxed);
            self.input = Box::new(Counting { inner: file, count: Arc::clone(&self.read) });
            self.buffer.clear();
            self.tail.clear();
            self.ended = false;
            self.offset = begin;
        }
        while self.offset < begin {
            self.fill(BLOCK_BYTES)?;
            let bytes = usize::try_from(begin - self.offset).unwrap_or(usize::MAX).min(self.buffer.len());
            if bytes == 0 {
                break;
            }
            self.skip(bytes);
        }
        let rest = usize::try_from(offset.saturating_sub(self.offset)).unwrap_or(0);
        self.fill(rest)?;
        self.skip(rest.min(self.buffer.len()));
        Ok(())
    }

    fn fill(&mut self, bytes: usize) -> Result<(), Failure> {
        let wanted = bytes.saturating_sub(self.buffer.len());
        if wanted == 0 || self.ended {
            return Ok(());
        }
        let got = (&mut self.input).take(wanted as u64).read_to_end(&mut self.buffer);
        let got = got.map_err(|e| cannot_read(&self.path, &e))?;
        self.ended = got < wanted;
        Ok(())
    }

    /// The beginning of the file. Does not consume it.
    pub fn head(&mut self) -> Result<&[u8], Failure> {
        self.fill(HEAD_BYTES)?;
        Ok(&self.buffer[..self.buffer.len().min(HEAD_BYTES)])
    }

    /// Skips bytes that are in the buffer, for example a header.
    pub fn skip(&mut self, bytes: usize) {
        let gone: Vec<u8> = self.buffer.drain(..bytes).collect();
        self.remember(&gone);
        self.offset += bytes as u64;
    }

    /// Keeps the end of the returned or skipped bytes for [`Source::check`].
    fn remember(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(STRETCH_BYTES)..]);
        self.tail.drain(..self.tail.len().saturating_sub(STRETCH_BYTES));
    }

    /// The next block of whole rows, or `None` at the end.
    pub fn block(&mut self, rows: &dyn Rows) -> Result<Option<Vec<u8>>, Failure> {
        let mut bytes = BLOCK_BYTES;
        loop {
            self.fill(bytes)?;
            let whole = if self.ended { self.buffer.len() } else { rows.whole(&self.buffer) };
            if whole > 0 {
                let rest = self.buffer.split_off(whole);
                self.offset += whole as u64;
                let block = std::mem::replace(&mut self.buffer, rest);
                self.remember(&block);
                return Ok(Some(block));
            }
            if self.ended {
                return Ok(None);
            }
            if bytes >= ROW_BYTES_MAX {
                let path = self.path.display();
                let message = format!("{path}: row at byte {} is over {ROW_BYTES_MAX} bytes", self.offset);
                return Err(Failure::new(message).hint("is --format right?"));
            }
            bytes *= 2;
        }
    }
}

pub fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot read {}: {error}", path.display()))
}

/// Adds a hint when neither the file nor an argument names the series.
pub fn nameless(failure: Failure, reason: &str) -> Failure {
    match reason.contains("no column names the series") {
        true => failure.hint("give --name, or --wide if each column of numbers is a series"),
        false => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;
    use std::io::Write;
    use tacho_ingest::json_lines::JsonLines;

    fn blocks(bytes: &[u8]) -> Vec<usize> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let rows = JsonLines::new(TimeZone::UTC);
        let mut source = Source::open(file.path(), Arc::default()).unwrap();
        let mut out = Vec::new();
        while let Some(block) = source.block(&rows).unwrap() {
            out.push(block.len());
        }
        assert_eq!(source.offset as usize, out.iter().sum::<usize>());
        out
    }

    #[test]
    fn compressed_and_plain_files_have_the_same_blocks_of_whole_rows() {
        let row = [&[b'x'; 99][..], b"\n"].concat();
        let text = row.repeat(30_000);
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&text).unwrap();
        let packed = packed.finish().unwrap();
        let plain = blocks(&text);
        assert_eq!(plain.iter().sum::<usize>(), text.len());
        assert!(plain.len() > 2 && plain.iter().all(|bytes| bytes % 100 == 0), "{plain:?}");
        assert_eq!(blocks(&packed), plain);
        assert_eq!(blocks(b"a\nb"), [3]);
        assert_eq!(blocks(b""), Vec::<usize>::new());
        assert_eq!(blocks(&[&[b'x'; 3 << 20][..], b"\ny"].concat()), [(3 << 20) + 2]);
    }
}
