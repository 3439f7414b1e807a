//! Decoders of the line protocol, reused between requests: a warm one does not parse known series keys again.

use std::sync::{Mutex, PoisonError};

use tacho_ingest::line_protocol;

/// Decoders kept between writes, each with up to `line_protocol::DECODER_BYTES_MAX`: as many as the
/// senders of load tools, far fewer than concurrent writes.
const DECODERS_MAX: usize = 4;

/// Idle decoders; each caches the series keys of the bodies it has decoded. At most [`DECODERS_MAX`] are kept.
#[derive(Default)]
pub struct Decoders(Mutex<Vec<line_protocol::Decoder>>);

impl Decoders {
    pub fn with<T>(&self, work: impl FnOnce(&mut line_protocol::Decoder) -> T) -> T {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut decoder = idle.unwrap_or_default();
        let done = work(&mut decoder);
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < DECODERS_MAX {
            idle.push(decoder);
        }
        done
    }
}
