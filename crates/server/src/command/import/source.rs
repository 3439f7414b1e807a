//! A file, unpacked where it is packed, in blocks of whole rows.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use tacho_ingest::rows::Rows;

use crate::command::Failure;

/// Bytes of a block. The same file is always cut into the same blocks, however it is read.
const BLOCK_BYTES: usize = 1 << 20;
/// Bytes of one row: what another program exports as one line may be long.
const ROW_BYTES_MAX: usize = 256 << 20;
/// Bytes that are looked at to find out what a file is.
const HEAD_BYTES: usize = 1 << 20;
/// RFC 1952.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Standard input.
const STDIN: &str = "-";

/// An open file.
pub struct Source {
    path: PathBuf,
    input: Box<dyn Read + Send>,
    /// Read and not yet given out.
    buffer: Vec<u8>,
    ended: bool,
    /// Of the unpacked file, given out.
    pub offset: u64,
}

/// Passes bytes on and counts them.
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

impl Source {
    /// `read` counts the bytes of the file as it lies on the disk.
    pub fn open(path: &Path, read: Arc<AtomicU64>) -> Result<Self, Failure> {
        let failed = |e: io::Error| cannot_read(path, &e);
        let raw: Box<dyn Read + Send> =
            if is_stdin(path) { Box::new(io::stdin()) } else { Box::new(File::open(path).map_err(failed)?) };
        let mut raw = Counting { inner: raw, count: read };
        let mut begin = Vec::new();
        (&mut raw).take(GZIP_MAGIC.len() as u64).read_to_end(&mut begin).map_err(failed)?;
        let packed = begin == GZIP_MAGIC;
        let whole = io::Cursor::new(begin).chain(raw);
        let input: Box<dyn Read + Send> =
            if packed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
        Ok(Self { path: path.to_owned(), input, buffer: Vec::new(), ended: false, offset: 0 })
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

    /// The beginning of the file, which is not given out by this.
    pub fn head(&mut self) -> Result<&[u8], Failure> {
        self.fill(HEAD_BYTES)?;
        Ok(&self.buffer[..self.buffer.len().min(HEAD_BYTES)])
    }

    /// Steps over bytes of the head.
    pub fn skip(&mut self, bytes: usize) {
        self.buffer.drain(..bytes);
        self.offset += bytes as u64;
    }

    /// The next whole rows; `None` at the end.
    pub fn block(&mut self, rows: &dyn Rows) -> Result<Option<Vec<u8>>, Failure> {
        let mut bytes = BLOCK_BYTES;
        loop {
            self.fill(bytes)?;
            let whole = if self.ended { self.buffer.len() } else { rows.whole(&self.buffer) };
            if whole > 0 {
                let rest = self.buffer.split_off(whole);
                self.offset += whole as u64;
                return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
            }
            if self.ended {
                return Ok(None);
            }
            if bytes >= ROW_BYTES_MAX {
                let path = self.path.display();
                let message = format!("{path}: row at byte {} is over {ROW_BYTES_MAX} bytes", self.offset);
                return Err(Failure::new(message).hint("is it the format that was named?"));
            }
            bytes *= 2;
        }
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot read {}: {error}", path.display()))
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
    fn packed_or_not_the_blocks_are_the_same_and_hold_whole_rows() {
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
