//! The files of a data directory, for comparisons with a restored one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The files directly in a data directory and in its `chunks/` and `journal/`, except for `LOCK` and `RESERVE`.
pub fn contents(data: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for folder in ["", "chunks/", "journal/"] {
        for entry in fs::read_dir(data.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_file() && name != "LOCK" && name != "RESERVE" {
                all.insert(format!("{folder}{name}"), fs::read(&path).unwrap());
            }
        }
    }
    all
}
