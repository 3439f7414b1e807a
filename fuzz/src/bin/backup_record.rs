//! The decoder of backup records never panics, and an accepted record names only files of a data directory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tacho_backup::{Hash, Id, Record};

fuzz_target!(|bytes: &[u8]| {
    let id: Id = "20260301T020000Z-7f3a".parse().expect("id");
    // The fuzzer cannot guess a correct checksum. With a correct checksum it reaches the code after the check.
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let with_checksum = [line, format!("\nsha256 {}\n", Hash::of(line)).as_bytes()].concat();
    for bytes in [bytes, &with_checksum] {
        let Ok(record) = Record::decode(bytes, &id) else { continue };
        for file in &record.files {
            assert!(!file.name.contains("..") || !file.name.split('/').any(|part| part == ".."));
            assert!(!file.name.starts_with('/') && file.name.split('/').count() <= 3);
        }
        let again = record.encode().expect("record that was just decoded");
        assert_eq!(Record::decode(&again, &id).expect("record that was just encoded"), record);
    }
});
