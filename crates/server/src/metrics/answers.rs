//! Metrics of the memory of answers.

use super::registry::{Collect, Counter, Family, Gauge};

pub struct AnswerFigures {
    pub bytes: Family<Gauge, 0>,
    pub refused: Family<Counter, 0>,
}

impl Default for AnswerFigures {
    fn default() -> Self {
        Self {
            bytes: Family::new(
                "tacho_answer_bytes",
                [],
                "Memory of the answers over 64 KiB that are being sent, and of the lists of series of exports and counts.",
            ),
            refused: Family::new(
                "tacho_answers_refused_total",
                [],
                "Requests refused because the memory for answers was used up.",
            ),
        }
    }
}

impl AnswerFigures {
    pub fn families(&self) -> [&dyn Collect; 2] {
        [&self.bytes, &self.refused]
    }
}
