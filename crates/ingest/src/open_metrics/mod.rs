//! Which samples does an exposition in OpenMetrics 1.0 or in the Prometheus text format hold?
//!
//! ```text
//!   # TYPE http_requests counter
//!   http_requests_total{code="200"} 1027 1700000000.5 # {trace_id="a"} 1.0 1700000000
//!   └──────── series ─────────────┘ value  └ time, s   └ exemplar: counted and ignored
//! ```
//! Sources: the OpenMetrics specification 1.0 (sections "Text format" and "Metric types"), and "Exposition formats" of
//! Prometheus. In the format of Prometheus, times are whole milliseconds and counters need no `_total`. Types are not stored.
//! A sample that does not match the declared type of its metric is refused, because the meaning of the sample would be
//! unclear. A sample without a time gets the time `now` of [`OpenMetrics::new`].

mod exposition;
mod line;
mod types;

use std::collections::HashMap;
use std::sync::Arc;

use tacho_model::{Labels, Sample, SampleSeries, Timestamp, Value};

use crate::rows::{At, Block, Broken, Rows, lines, shown, whole_lines};
use crate::time_text::decimal;
pub use exposition::Exposition;
use line::Line;
use types::Types;

#[derive(Clone, Debug)]
pub struct OpenMetrics {
    exposition: Exposition,
    now: Timestamp,
    types: Types,
    /// Whether the line `# EOF` was read.
    ended: bool,
}

impl OpenMetrics {
    /// `now` is the time of samples without a time.
    pub fn new(exposition: Exposition, now: Timestamp) -> Self {
        Self { exposition, now, types: Types::default(), ended: false }
    }
}

impl Rows for OpenMetrics {
    fn whole(&self, bytes: &[u8]) -> usize {
        whole_lines(bytes)
    }

    /// False, because types are declared before the samples of their metric.
    fn stand_alone(&self) -> bool {
        false
    }

    fn lacks(&self) -> Option<String> {
        let is_cut = self.exposition == Exposition::OpenMetrics && !self.ended;
        is_cut.then(|| "\"# EOF\" is missing at the end: the file may be truncated".into())
    }

    fn decode(&mut self, block: &[u8], before: u64) -> Block {
        let mut out = Block::default();
        let mut places = HashMap::new();
        for (bytes, line) in lines(block) {
            out.rows += 1;
            let line = std::str::from_utf8(line).map_err(|_| "row is not UTF-8".to_owned());
            if let Err(reason) = line.and_then(|line| self.line(line, &mut places, &mut out)) {
                out.broken.push(Broken { row: before + out.rows, at: At::Unknown, reason, bytes });
            }
        }
        out
    }
}

impl OpenMetrics {
    fn line<'a>(
        &mut self,
        text: &'a str,
        places: &mut HashMap<&'a str, usize>,
        out: &mut Block,
    ) -> Result<(), String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(());
        }
        if self.ended {
            return Err("row after # EOF".into());
        }
        if let Some(comment) = text.strip_prefix('#') {
            self.ended = self.exposition == Exposition::OpenMetrics && comment.trim() == "EOF";
            // A TYPE line changes the samples that are allowed, so each series must be checked again.
            places.clear();
            return self.types.comment(comment);
        }
        let line = Line::read(text)?;
        let value = number(line.value).ok_or_else(|| format!("{} is not a number", shown(line.value)))?;
        let at = self.time(line.time)?;
        out.exemplars += u64::from(line.exemplar);
        let place = match places.get(line.series) {
            Some(place) => *place,
            None => {
                let (name, pairs) = line.labels()?;
                self.types.check(name, &pairs, self.exposition)?;
                let labels = pairs.iter().map(|(name, value)| (*name, &**value));
                let labels =
                    Labels::new(labels.chain([(tacho_model::NAME, name)])).map_err(|e| e.to_string())?;
                out.batch.samples.push(SampleSeries { labels: Arc::new(labels), samples: Vec::new() });
                let place = out.batch.samples.len() - 1;
                places.insert(line.series, place);
                place
            }
        };
        if let Some(series) = out.batch.samples.get_mut(place) {
            series.samples.push(Sample { at, value });
        }
        Ok(())
    }

    fn time(&self, time: Option<&str>) -> Result<Timestamp, String> {
        let Some(text) = time else { return Ok(self.now) };
        let read = match self.exposition {
            Exposition::OpenMetrics => decimal(text, 1_000_000_000),
            Exposition::Prometheus => text.parse::<i64>().ok().and_then(|ms| ms.checked_mul(1_000_000)),
        };
        let unit = match self.exposition {
            Exposition::OpenMetrics => "seconds",
            Exposition::Prometheus => "milliseconds",
        };
        read.ok_or_else(|| format!("{} is not a time in {unit} in the years 1677 to 2262", shown(text)))
    }
}

/// Reads a number in the syntax of both formats. `f64::from_str` accepts more words, such as `infinity`.
fn number(text: &str) -> Option<Value> {
    let number = match text {
        "NaN" | "nan" => f64::NAN,
        "+Inf" | "Inf" | "+inf" | "inf" => f64::INFINITY,
        "-Inf" | "-inf" => f64::NEG_INFINITY,
        digits => digits.parse().ok().filter(|number: &f64| number.is_finite())?,
    };
    Some(Value::F64(number))
}

#[cfg(test)]
mod tests;
