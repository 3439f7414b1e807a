//! Functions that read and damage the files of data directories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::support::checked::{files, is_segment};

pub fn contents(data: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files(data).into_iter().map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect()
}

/// Flips a bit in the value of the newest row with this key. A key is the partition, then the clustering.
pub fn damage_row(data: &Path, key: &[u8]) {
    let newest = files(data).into_iter().filter(|path| is_segment(path)).rev().find_map(|path| {
        let bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(key.len()).rposition(|window| window == key)?;
        Some((path, bytes, at + key.len()))
    });
    let (path, mut bytes, value) = newest.unwrap();
    bytes[value + 2] ^= 1;
    std::fs::write(path, bytes).unwrap();
}
