//! The decoder of the manifest of segment files never panics. It accepts only bytes that the encoder writes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tacho_drivers::embedded::fuzzing::Manifest;
use tacho_fuzz::bounded;
use tacho_store::ErrorKind;

/// Limit on the length of an error message, because a line may be long.
const MESSAGE_BYTES_MAX: usize = 1_000;

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    // The fuzzer cannot guess a correct checksum.
    read(&with_checksum(bytes));
    read(&with_checksum(&[&b"tachograph manifest 1\n"[..], bytes].concat()));
});

fn with_checksum(body: &[u8]) -> Vec<u8> {
    let line = if body.ends_with(b"\n") { "" } else { "\n" };
    let body = [body, line.as_bytes()].concat();
    let checksum = format!("crc32c {:08x}\n", crc32c::crc32c(&body));
    [body, checksum.into_bytes()].concat()
}

fn read(bytes: &[u8]) {
    match bounded((1 << 16) + 64 * bytes.len(), || Manifest::decode(bytes)) {
        Ok(manifest) => assert_eq!(manifest.encode(), bytes, "{}", String::from_utf8_lossy(bytes)),
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Version), "{error}");
            let message = error.to_string();
            assert!(message.len() <= MESSAGE_BYTES_MAX, "{} bytes: {message:.200}", message.len());
            assert!(!message.chars().any(char::is_control), "{message:?}");
        }
    }
}
