//! Does a sample match the declared type of its metric?

use std::borrow::Cow;
use std::collections::HashMap;

use super::exposition::Exposition;
use crate::rows::shown;

/// Limit on the metrics whose types are remembered. Samples of further metrics are not compared with a type.
const METRICS_MAX: usize = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Counter,
    Gauge,
    Histogram,
    GaugeHistogram,
    Summary,
    StateSet,
    Info,
    Unknown,
}

impl Type {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "counter" => Self::Counter,
            "gauge" => Self::Gauge,
            "histogram" => Self::Histogram,
            "gaugehistogram" => Self::GaugeHistogram,
            "summary" => Self::Summary,
            "stateset" => Self::StateSet,
            "info" => Self::Info,
            "unknown" | "untyped" => Self::Unknown,
            _ => return None,
        })
    }

    const fn suffixes(self, exposition: Exposition) -> &'static [&'static str] {
        match (self, exposition) {
            (Self::Counter, Exposition::OpenMetrics) => &["_total", "_created"],
            (Self::Counter, Exposition::Prometheus) => &["", "_total", "_created"],
            (Self::Histogram, _) => &["_bucket", "_count", "_sum", "_created"],
            (Self::GaugeHistogram, _) => &["_bucket", "_gcount", "_gsum"],
            (Self::Summary, _) => &["", "_count", "_sum", "_created"],
            (Self::Info, _) => &["_info"],
            (Self::Gauge | Self::StateSet | Self::Unknown, _) => &[""],
        }
    }

    /// The label that samples with this suffix must have.
    fn label(self, suffix: &str) -> Option<&'static str> {
        match (self, suffix) {
            (Self::Histogram | Self::GaugeHistogram, "_bucket") => Some("le"),
            (Self::Summary, "") => Some("quantile"),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Types(HashMap<String, Type>);

impl Types {
    /// Reads the text after `#`.
    pub(super) fn comment(&mut self, text: &str) -> Result<(), String> {
        let mut words = text.split_ascii_whitespace();
        if words.next() != Some("TYPE") {
            return Ok(());
        }
        let (Some(metric), Some(name)) = (words.next(), words.next()) else {
            return Err("TYPE without a metric and a type".into());
        };
        let of = Type::from_name(name).ok_or_else(|| format!("unknown type {} of {metric}", shown(name)))?;
        if self.0.get(metric).is_some_and(|known| *known != of) {
            return Err(format!("{metric} has another type already"));
        }
        if self.0.len() < METRICS_MAX {
            self.0.insert(metric.to_owned(), of);
        }
        Ok(())
    }

    /// Samples of a metric without a declared type always match.
    pub(super) fn check(
        &self,
        name: &str,
        pairs: &[(&str, Cow<'_, str>)],
        exposition: Exposition,
    ) -> Result<(), String> {
        const ENDS: [&str; 8] =
            ["_total", "_created", "_bucket", "_count", "_sum", "_gcount", "_gsum", "_info"];
        let families =
            ENDS.iter().filter_map(|end| Some((name.strip_suffix(end)?, *end))).chain([(name, "")]);
        for (metric, suffix) in families {
            let Some(of) = self.0.get(metric) else { continue };
            if !of.suffixes(exposition).contains(&suffix) {
                continue;
            }
            return match of.label(suffix) {
                Some(label) if !pairs.iter().any(|(name, _)| *name == label) => {
                    Err(format!("{name} has no label {label:?}"))
                }
                _ => Ok(()),
            };
        }
        match self.0.get(name) {
            Some(Type::Counter) => Err(format!("{name} is a counter: its samples end in \"_total\"")),
            Some(_) => Err(format!("{name} does not fit the type of its metric")),
            None => Ok(()),
        }
    }
}
