//! The answer to a query in Prometheus' JSON, written straight from the output: millions of points pass here.

use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};
use tacho_model::{Labels, Timestamp};
use tacho_query::promql::{Output, Point, Series};

use crate::http::error::ApiError;
use crate::http::json::{number, seconds};

/// Points of one answer: some 150 MB of JSON, more than any reader shows.
const POINTS_MAX: usize = 5_000_000;

/// `data` of an answer: type and result, at most `limit` series of it.
pub struct Data {
    output: Output,
    limit: usize,
}

impl Data {
    pub fn new(output: Output, limit: Option<usize>) -> Result<Self, ApiError> {
        let limit = limit.unwrap_or(usize::MAX);
        if let Output::Matrix(series) = &output {
            let points: usize = series.iter().take(limit).map(|s| s.points.len()).sum();
            if points > POINTS_MAX {
                let message = format!(
                    "answer has {points} points, at most {POINTS_MAX} are allowed: raise step, or aggregate"
                );
                return Err(ApiError::execution(message));
            }
        }
        Ok(Self { output, limit })
    }

    /// Whether the limit cut series off.
    pub fn truncated(&self) -> bool {
        match &self.output {
            Output::Vector(elements) => elements.len() > self.limit,
            Output::Matrix(series) => series.len() > self.limit,
            Output::Scalar(_) | Output::String { .. } => false,
        }
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        match &self.output {
            Output::Scalar(point) => {
                map.serialize_entry("resultType", "scalar")?;
                map.serialize_entry("result", &pair(point))?;
            }
            Output::String { at, text } => {
                map.serialize_entry("resultType", "string")?;
                map.serialize_entry("result", &(Seconds(*at), &**text))?;
            }
            Output::Vector(elements) => {
                map.serialize_entry("resultType", "vector")?;
                map.serialize_entry("result", &Elements(elements, self.limit))?;
            }
            Output::Matrix(series) => {
                map.serialize_entry("resultType", "matrix")?;
                map.serialize_entry("result", &Rows(series, self.limit))?;
            }
        }
        map.end()
    }
}

/// The first so many elements of a vector.
struct Elements<'a>(&'a [(Arc<Labels>, Point)], usize);

#[derive(serde::Serialize)]
struct Element<'a> {
    metric: LabelMap<'a>,
    value: (Seconds, String),
}

impl Serialize for Elements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let elements = self.0.iter().take(self.1);
        serializer.collect_seq(
            elements.map(|(labels, point)| Element { metric: LabelMap(labels), value: pair(point) }),
        )
    }
}

/// The first so many series of a matrix.
struct Rows<'a>(&'a [Series], usize);

#[derive(serde::Serialize)]
struct Row<'a> {
    metric: LabelMap<'a>,
    values: Points<'a>,
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let series = self.0.iter().take(self.1);
        serializer.collect_seq(series.map(|s| Row { metric: LabelMap(&s.labels), values: Points(&s.points) }))
    }
}

struct Points<'a>(&'a [Point]);

impl Serialize for Points<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(pair))
    }
}

/// `[seconds, "value"]`.
fn pair(point: &Point) -> (Seconds, String) {
    (Seconds(point.at), number(point.value))
}

struct Seconds(Timestamp);

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        seconds(self.0).serialize(serializer)
    }
}

/// Labels as an object, sorted by name.
pub struct LabelMap<'a>(pub &'a Labels);

impl Serialize for LabelMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter())
    }
}
