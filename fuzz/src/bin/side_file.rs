//! The decoders of four files never panic: rules for probes, record types, tokens, and the rules in `tacho.toml`. An accepted
//! file of the first three is encoded again, and read with the same result. The bound on memory depends on the size of the file.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tacho_fuzz::bounded;
use tacho_server::config;
use tacho_server::fuzzing::{record_types, rules, tokens};

/// Limit on the memory of the automata of all patterns in a file of tokens, bytes.
const PATTERNS_BYTES_MAX: usize = 64 << 20;

type Read = fn(&[u8]) -> Result<Vec<u8>, String>;

fuzz_target!(|bytes: &[u8]| {
    for (read, bytes_max) in [(rules as Read, 0), (record_types, 0), (tokens, PATTERNS_BYTES_MAX)] {
        let memory = (1 << 16) + 256 * bytes.len() + bytes_max;
        match bounded(memory, || read(bytes)) {
            Ok(again) => assert_eq!(read(&again).as_ref(), Ok(&again)),
            Err(error) => check(&error, bytes),
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Err(error) =
            bounded((1 << 20) + 4_096 * bytes.len(), || config::rules(Path::new("fuzz.toml"), text))
    {
        let message = error.to_string();
        assert!(message.contains("fuzz.toml"), "the error does not name the file: {message}");
        check(&message, bytes);
    }
});

/// A message has no control characters other than line breaks. The limit on its length grows with the file.
fn check(message: &str, bytes: &[u8]) {
    assert!(!message.is_empty() && message.len() <= 1_000 + 8 * bytes.len());
    assert!(!message.chars().any(|c| c.is_control() && c != '\n'), "{message:?}");
}
