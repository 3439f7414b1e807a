//! Which damaged rows were deleted later? In a file without an intact index, nothing confirms the key of a damaged row, so the
//! key may be damaged, too. The key is probably intact if a later deletion has the same key, and no intact row has this key: the
//! store writes each key of a chunk once.
//!
//! The deletions are searched only if a file without an intact index has damaged rows. This takes a second pass over the entries
//! of all files.

use std::collections::{BTreeSet, HashMap};

use tacho_store::{Result, Table};

use super::super::format::{Action, Entry};
use super::super::scan::Offset;
use super::file::Opened;

/// The number of a file, and the offset of a row in it. Later rows have higher places.
type Place = (u32, Offset);

/// The places of the damaged rows whose key a later deletion has.
#[derive(Debug, Default)]
pub struct Removed(BTreeSet<Place>);

#[derive(Default)]
struct Seen {
    /// Places of damaged rows with this key.
    damaged: Vec<Place>,
    is_put: bool,
    deleted: Option<Place>,
}

impl Seen {
    fn add(&mut self, number: u32, entry: &Entry<'_>) {
        match entry.action {
            Action::Put => self.is_put = true,
            Action::Delete => self.deleted = self.deleted.max(Some((number, entry.offset as Offset))),
        }
    }

    fn removed(self) -> impl Iterator<Item = Place> {
        let deleted = self.deleted.filter(|_| !self.is_put);
        self.damaged.into_iter().filter(move |damaged| deleted.is_some_and(|deleted| *damaged < deleted))
    }
}

impl Removed {
    /// # Errors
    /// `Io` when a file cannot be read for a reason that is not damage.
    pub fn find(files: &mut [Opened]) -> Result<Self> {
        let mut keys: HashMap<Vec<u8>, Seen> = HashMap::new();
        for opened in files.iter_mut() {
            let number = opened.number();
            opened.each_damaged_row(|offset, row| {
                let mut key = Vec::new();
                put_key(&mut key, row.table, row.partition, row.clustering);
                keys.entry(key).or_default().damaged.push((number, offset));
            });
        }
        if keys.is_empty() {
            return Ok(Self::default());
        }
        let mut key = Vec::new();
        for opened in files.iter() {
            let number = opened.number();
            opened.each_entry(|entry| {
                put_key(&mut key, entry.table, entry.partition, entry.clustering);
                if let Some(seen) = keys.get_mut(&key) {
                    seen.add(number, &entry);
                }
            })?;
        }
        Ok(Self(keys.into_values().flat_map(Seen::removed).collect()))
    }

    pub fn contains(&self, number: u32, offset: Offset) -> bool {
        self.0.contains(&(number, offset))
    }
}

fn put_key(out: &mut Vec<u8>, table: Table, partition: &[u8], clustering: &[u8]) {
    out.clear();
    out.push(table as u8);
    out.extend_from_slice(&(partition.len() as u64).to_le_bytes());
    out.extend_from_slice(partition);
    out.extend_from_slice(clustering);
}

#[cfg(test)]
mod tests {
    use tacho_store::check::PlacedRow;

    use super::super::super::format::{RowRef, encode_header, file_path, mark, put_batch};
    use super::super::Image;
    use super::*;

    type Actions<'a> = &'a [(&'a str, Action)];

    const VALUE: &[u8] = b"a value of some length";

    /// Writes a segment with these puts and deletions, damages the value of the first put, and returns for each damaged row
    /// whether it is needed.
    fn needed(actions: Actions<'_>) -> Vec<bool> {
        let mut bytes = [encode_header(1), mark()].concat();
        for (clustering, action) in actions {
            let value: &[u8] = if *action == Action::Put { VALUE } else { b"" };
            let (clustering, action) = (clustering.as_bytes(), *action);
            let row = RowRef { action, table: Table::Chunks, partition: b"p", clustering, value };
            put_batch(&mut bytes, [row].into_iter(), |_, _| ());
            bytes.extend(mark());
        }
        let first = bytes.windows(VALUE.len()).position(|window| window == VALUE).unwrap();
        bytes[first] ^= 1;
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(file_path(directory.path(), 1), bytes).unwrap();
        let image = Image::open(directory.path(), "", &BTreeSet::new(), &BTreeSet::new()).unwrap();
        let mut needed = Vec::new();
        let mut each = |placed: PlacedRow| {
            if placed.row.is_err() {
                assert!(!placed.is_key_certain);
                needed.push(placed.needed);
            }
        };
        image.check_file(1, &mut each).unwrap();
        needed
    }

    #[test]
    fn a_damaged_row_is_needed_unless_only_a_later_deletion_has_its_key() {
        use Action::{Delete, Put};
        let cases: [(&str, Actions<'_>, bool); 5] = [
            ("not deleted", &[("a", Put), ("b", Put)], true),
            ("deleted", &[("a", Put), ("b", Put), ("a", Delete)], false),
            ("another row deleted", &[("a", Put), ("b", Put), ("b", Delete)], true),
            ("deleted before", &[("a", Delete), ("a", Put), ("b", Put)], true),
            ("written twice", &[("a", Put), ("a", Put), ("a", Delete)], true),
        ];
        for (name, actions, is_needed) in cases {
            assert_eq!(needed(actions), [is_needed], "{name}");
        }
    }
}
