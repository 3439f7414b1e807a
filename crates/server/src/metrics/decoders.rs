//! Metrics of the decoders of bodies.

use super::registry::{Collect, Counter, Family};

pub struct DecoderFigures {
    pub resets: Family<Counter, 0>,
    /// `protocol` is remote-write or line.
    pub samples_known: Family<Counter, 1>,
}

impl Default for DecoderFigures {
    fn default() -> Self {
        Self {
            resets: Family::new(
                "tacho_line_decoder_resets_total",
                [],
                "Number of times that a line protocol decoder cleared its full cache of series keys.",
            ),
            samples_known: Family::new(
                "tacho_samples_known_total",
                ["protocol"],
                "Samples in bodies whose series were found by the text of the sender, so that no labels were made.",
            ),
        }
    }
}

impl DecoderFigures {
    pub fn families(&self) -> [&dyn Collect; 2] {
        [&self.resets, &self.samples_known]
    }
}
