//! Decoders of the line protocol. They are reused between requests, because a decoder caches series keys that it has parsed.

use std::sync::{Mutex, PoisonError};

use tacho_ingest::line_protocol;

/// Limit on the decoders kept between requests, each with up to `line_protocol::DECODER_BYTES_MAX`. Load tools usually send
/// this many requests at a time.
const DECODERS_MAX: usize = 4;

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
