//! Reads one row at its position, or only parts of its value. A short row is always read whole. If only parts of a long row
//! are wanted, its first bytes are read first, because they select the parts.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use tacho_store::disk::ReadFile;
use tacho_store::driver::Scan;
use tacho_store::sectors::is_damage;

use super::format::{Action, ROW_HEAD_BYTES, RowRef, Taken, take_head, take_row};
use super::index::Place;
use super::patience::Patience;

/// Limit on the size of rows that are always read whole. To read a part costs a further system call, which a short row does not
/// justify.
pub const WHOLE_BYTES_MAX: usize = 16 << 10;
/// Bytes of a longer row that are read first. They contain the header of most chunks.
const FRONT_BYTES: usize = 4 << 10;

/// Selects the parts of a value by its first bytes. `None` selects the whole value.
pub type Choice<'a> = dyn Fn(&[u8]) -> Option<Vec<Range<usize>>> + 'a;

pub struct Damage {
    /// The bytes at the position of the row's value. Empty if the position has another row or no row, or cannot be read.
    pub value: Bytes,
    pub reason: String,
}

pub struct Spot<'a> {
    pub scan: &'a Scan,
    pub clustering: &'a [u8],
    pub place: Place,
    pub file: &'a dyn ReadFile,
    /// Whether the row is known to be damaged. Such a row is always read whole.
    pub doubted: bool,
    pub patience: Patience,
}

impl Spot<'_> {
    /// Number of bytes before the value.
    pub fn before(&self) -> usize {
        ROW_HEAD_BYTES + self.scan.partition.len() + self.clustering.len()
    }

    /// Returns the value, or its wanted parts one after the other, or the damage of the row.
    ///
    /// # Errors
    /// An error of the disk that is not damage, so a retry may help. With [`Patience::Memory`], also an error if
    /// some of the bytes are not in memory.
    pub fn read(&self, parts: Option<&Choice<'_>>) -> io::Result<Result<Bytes, Damage>> {
        let long = self.before() + self.place.value_bytes as usize > WHOLE_BYTES_MAX;
        let read = match parts.filter(|_| long && !self.doubted) {
            Some(parts) => match self.read_parts(parts) {
                Ok(Some(value)) => Ok(Ok(value)),
                Ok(None) => self.read_whole(),
                Err(error) => Err(error),
            },
            None => self.read_whole(),
        };
        match read {
            Err(error) if is_damage(&error) => {
                Ok(Err(Damage { value: Bytes::new(), reason: error.to_string() }))
            }
            read => read,
        }
    }

    fn read_whole(&self) -> io::Result<Result<Bytes, Damage>> {
        let mut row = vec![0; self.before() + self.place.value_bytes as usize];
        self.patience.read(self.file, &mut row, self.place.offset.into())?;
        let is_this_one = take_head(&row, self.wanted()).is_some();
        let is_sound = is_this_one && matches!(take_row(&row), Taken::Row(_));
        let value = Bytes::from(row).split_off(self.before());
        if is_sound {
            return Ok(Ok(value));
        }
        let reason = if is_this_one { "checksum mismatch" } else { "its place holds other bytes" };
        let value = if is_this_one { value } else { Bytes::new() };
        Ok(Err(Damage { value, reason: reason.to_owned() }))
    }

    /// Reads only the selected parts of the value. Returns `None` if the whole row must be read.
    fn read_parts(&self, parts: &Choice<'_>) -> io::Result<Option<Bytes>> {
        let whole = self.place.value_bytes as usize;
        let mut front = vec![0; FRONT_BYTES];
        self.patience.read(self.file, &mut front, self.place.offset.into())?;
        // The checksum covers the whole row, so it cannot be compared. The head shows that this is the wanted row.
        let Some(value) = take_head(&front, self.wanted()) else { return Ok(None) };
        let Some(parts) = parts(value).filter(|parts| are_within(parts, whole)) else { return Ok(None) };
        let bytes: usize = parts.iter().map(Range::len).sum();
        if bytes > whole / 2 {
            return Ok(None);
        }
        let mut out = vec![0; bytes];
        let mut rest = out.as_mut_slice();
        for part in parts {
            let (mine, others) = rest.split_at_mut(part.len());
            match value.get(part.clone()) {
                Some(known) => mine.copy_from_slice(known),
                None => {
                    let offset = u64::from(self.place.offset) + (self.before() + part.start) as u64;
                    self.patience.read(self.file, mine, offset)?;
                }
            }
            rest = others;
        }
        Ok(Some(out.into()))
    }

    /// The row according to the index, without its value, and the length of the value.
    fn wanted(&self) -> (RowRef<'_>, usize) {
        let row = RowRef {
            action: Action::Put,
            table: self.scan.table,
            partition: &self.scan.partition,
            clustering: self.clustering,
            value: &[],
        };
        (row, self.place.value_bytes as usize)
    }
}

/// Whether the parts are in ascending order, do not overlap, and end within this many bytes.
fn are_within(parts: &[Range<usize>], bytes: usize) -> bool {
    let ordered = parts.iter().zip(parts.iter().skip(1)).all(|(a, b)| a.end <= b.start);
    ordered && parts.iter().all(|part| part.start <= part.end && part.end <= bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tacho_store::Table;

    use super::super::format::put_batch;
    use super::*;

    /// The index and the rows of a file may be from different times.
    #[test]
    fn an_intact_row_of_another_key_is_not_returned() {
        let rows = [(Action::Put, b"a"), (Action::Put, b"b"), (Action::Delete, b"a")];
        let rows = rows.map(|(action, clustering)| RowRef {
            action,
            table: Table::Chunks,
            partition: b"p",
            clustering,
            value: if action == Action::Put { b"v" } else { b"" },
        });
        let (mut bytes, mut places) = (Vec::new(), Vec::new());
        put_batch(&mut bytes, rows.into_iter(), |row, offset| {
            places.push((offset as u32, row.value.len() as u32))
        });
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let read = |partition: &str, clustering: &[u8], (offset, value_bytes): (u32, u32)| {
            let scan = Scan::all(Table::Chunks, partition);
            let place = Place { segment: 1, offset, value_bytes };
            let (patience, file) = (Patience::Disk, &file);
            let spot = Spot { scan: &scan, clustering, place, file, doubted: false, patience };
            spot.read(None).unwrap().map_err(|damage| damage.reason)
        };
        let other = || Err("its place holds other bytes".to_owned());
        assert_eq!(read("p", b"a", places[0]), Ok(Bytes::from_static(b"v")));
        assert_eq!(read("p", b"a", places[1]), other());
        assert_eq!(read("q", b"b", places[1]), other());
        assert_eq!(read("p", b"a", places[2]), other(), "a deleted row");
    }
}
