//! Query responses in Prometheus' JSON. They have up to millions of points, so they are serialized by hand for speed.
//!
//! A response is written in one piece, except a matrix of more than `PART_POINTS` points. Its parts are written while the
//! client reads, several at the same time.
//!
//! Step before: `crates/query/src/promql/` computes the result. Step after: `ui/src/lib/api.ts` or another client receives it.

use std::ops::Range;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use serde::Serialize;
use serde::ser::Serializer;
use tacho_api::json::json_text_bytes;
use tacho_model::Labels;
use tacho_query::promql::{Output, Point, Series, ValueWriter, write_milliseconds};

use super::envelope::TRUNCATED;
use super::stats::Stats;
use crate::http::answers::Keeps;
use crate::http::error::ApiError;

/// Limit on the points of a matrix: some 150 MB of JSON.
const POINTS_MAX: usize = 5_000_000;
/// Number of points of one part: half a MB of JSON, about a millisecond of work.
const PART_POINTS: usize = 16_384;
const PARTS_AT_ONCE: usize = 4;
const POINT_BYTES: usize = 32;
/// Approximate bytes of the parts that are written and not yet sent.
const PARTS_BYTES: usize = PARTS_AT_ONCE * PART_POINTS * POINT_BYTES;

pub struct Answer {
    output: Output,
    /// Whether the parameter `limit` has cut off series.
    is_truncated: bool,
    /// Bytes of the labels as JSON, or an upper estimate.
    pub label_bytes: usize,
    pub stats: Option<Stats>,
    /// Does not include [`TRUNCATED`].
    pub warnings: Vec<String>,
    /// Notes about correct but possibly unexpected results.
    pub infos: Vec<String>,
}

/// A range of points of one series of a matrix. A part of the response consists of one or more such ranges.
struct Part {
    series: usize,
    points: Range<usize>,
}

/// Limit on the labels of one response, bytes of JSON. Series share labels in memory, but a response repeats them.
const LABELS_BYTES_MAX: usize = 128 << 20;
/// Limit on the labels of a response that is written at the same time as the response of a heavy query, bytes of JSON.
pub(super) const LIGHT_LABELS_BYTES_MAX: usize = 8 << 20;

/// Bytes of the labels as JSON. For few labels, an upper estimate.
///
/// # Errors
/// When the labels exceed their limit.
pub(super) fn label_bytes<'a>(series: impl Iterator<Item = &'a Labels> + Clone) -> Result<usize, ApiError> {
    // Upper estimate: six bytes for each byte of a label, and the punctuation.
    let most = series.clone().map(|labels| 6 * labels.canonical_bytes() + 16).sum::<usize>();
    if most <= LIGHT_LABELS_BYTES_MAX {
        return Ok(most);
    }
    let written = |text: &str| json_text_bytes(text) + 3;
    let of_one =
        |labels: &Labels| labels.iter().map(|(name, value)| written(name) + written(value)).sum::<usize>();
    let bytes: usize = series.map(of_one).sum();
    if bytes <= LABELS_BYTES_MAX {
        return Ok(bytes);
    }
    Err(ApiError::execution(format!(
        "answer has labels of {bytes} bytes, at most {LABELS_BYTES_MAX} are allowed: narrow the selectors, give a limit, \
         or aggregate"
    )))
}

/// Removes the elements above the limit and frees their memory. Returns whether it removed any.
fn cut<T>(elements: &mut Vec<T>, limit: usize) -> bool {
    let is_truncated = elements.len() > limit;
    if is_truncated {
        elements.truncate(limit);
        elements.shrink_to_fit();
    }
    is_truncated
}

impl Answer {
    /// Keeps the first `limit` series, and frees the memory of the others.
    ///
    /// # Errors
    /// When the points or the labels exceed their limit.
    pub fn new(mut output: Output, limit: Option<usize>) -> Result<Self, ApiError> {
        let limit = limit.unwrap_or(usize::MAX);
        let is_truncated = match &mut output {
            Output::Matrix(series) => cut(series, limit),
            Output::Vector(rows) => cut(rows, limit),
            Output::Scalar(_) | Output::String { .. } => false,
        };
        if let Output::Matrix(series) = &output {
            let points: usize = series.iter().map(|s| s.points.len()).sum();
            if points > POINTS_MAX {
                let message = format!(
                    "answer has {points} points, at most {POINTS_MAX} are allowed: raise step, or aggregate"
                );
                return Err(ApiError::execution(message));
            }
        }
        let label_bytes = match &output {
            Output::Matrix(series) => label_bytes(series.iter().map(|s| &*s.labels))?,
            Output::Vector(rows) => label_bytes(rows.iter().map(|(labels, _)| &**labels))?,
            Output::Scalar(_) | Output::String { .. } => 0,
        };
        Ok(Self { output, is_truncated, label_bytes, stats: None, warnings: Vec::new(), infos: Vec::new() })
    }

    pub fn into_response(self) -> Response {
        let parts = self.parts();
        let points: usize = self.series().iter().map(|series| series.points.capacity()).sum();
        let points_bytes = points.saturating_mul(size_of::<Point>());
        let series_bytes = size_of_val(self.series());
        let (keeps, body) = if parts.len() < 2 {
            let whole = self.whole(&parts);
            (Keeps(whole.len()), Body::from(whole))
        } else {
            (Keeps(points_bytes + series_bytes + self.label_bytes + PARTS_BYTES), self.stream(parts))
        };
        let mut response = ([(header::CONTENT_TYPE, "application/json")], body).into_response();
        response.extensions_mut().insert(keeps);
        response
    }

    /// Empty for results other than a matrix.
    fn series(&self) -> &[Series] {
        match &self.output {
            Output::Matrix(series) => series,
            _ => &[],
        }
    }

    /// Divides a matrix into parts of at most `PART_POINTS` points, of one series or of several consecutive series. Other results
    /// have no parts.
    fn parts(&self) -> Vec<Vec<Part>> {
        let mut parts: Vec<Vec<Part>> = Vec::new();
        let mut room = 0;
        for (series, Series { points, .. }) in self.series().iter().enumerate() {
            let mut from = 0;
            while from < points.len() {
                if room == 0 {
                    parts.push(Vec::new());
                    room = PART_POINTS;
                }
                let to = points.len().min(from + room);
                room -= to - from;
                if let Some(last) = parts.last_mut() {
                    last.push(Part { series, points: from..to });
                }
                from = to;
            }
        }
        parts
    }

    fn whole(&self, parts: &[Vec<Part>]) -> Vec<u8> {
        let rows = match &self.output {
            Output::Vector(rows) => rows.len(),
            _ => self.series().len(),
        };
        // A buffer that grows to a hundred megabytes would double its size, so long labels are counted in advance.
        let labels = if self.label_bytes > LIGHT_LABELS_BYTES_MAX { self.label_bytes } else { 0 };
        let mut out =
            Vec::with_capacity(1_024 + labels + rows * 128 + parts.len() * PART_POINTS * POINT_BYTES);
        self.write_head(&mut out);
        parts.iter().flatten().for_each(|part| self.write_part(&mut out, part));
        self.write_tail(&mut out);
        out.shrink_to_fit();
        out
    }

    fn stream(self, parts: Vec<Vec<Part>>) -> Body {
        let answer = Arc::new(self);
        let last = parts.len() - 1;
        let written = stream::iter(parts.into_iter().enumerate()).map(move |(number, parts)| {
            let answer = answer.clone();
            tokio::task::spawn_blocking(move || {
                let mut out = Vec::with_capacity(PART_POINTS * POINT_BYTES + parts.len() * 128);
                if number == 0 {
                    answer.write_head(&mut out);
                }
                parts.iter().for_each(|part| answer.write_part(&mut out, part));
                if number == last {
                    answer.write_tail(&mut out);
                }
                Bytes::from(out)
            })
        });
        Body::from_stream(written.buffered(PARTS_AT_ONCE))
    }

    fn write_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"status":"success","data":{"resultType":""#);
        let mut values = ValueWriter::default();
        match &self.output {
            Output::Scalar(point) => {
                out.extend_from_slice(br#"scalar","result":"#);
                write_point(out, point, &mut values);
            }
            Output::String { at, text } => {
                out.extend_from_slice(br#"string","result":["#);
                write_milliseconds(out, *at);
                out.push(b',');
                write_json(out, &**text);
                out.push(b']');
            }
            Output::Vector(elements) => {
                out.extend_from_slice(br#"vector","result":["#);
                for (number, (labels, point)) in elements.iter().enumerate() {
                    write_metric(out, number > 0, labels);
                    out.extend_from_slice(br#","value":"#);
                    write_point(out, point, &mut values);
                    out.push(b'}');
                }
                out.push(b']');
            }
            Output::Matrix(_) => out.extend_from_slice(br#"matrix","result":["#),
        }
    }

    fn write_part(&self, out: &mut Vec<u8>, part: &Part) {
        let series = &self.series()[part.series];
        if part.points.start == 0 {
            write_metric(out, part.series > 0, &series.labels);
            out.extend_from_slice(br#","values":["#);
        }
        let mut values = ValueWriter::default();
        for (number, point) in series.points[part.points.clone()].iter().enumerate() {
            if part.points.start + number > 0 {
                out.push(b',');
            }
            write_point(out, point, &mut values);
        }
        if part.points.end == series.points.len() {
            out.extend_from_slice(b"]}");
        }
    }

    fn write_tail(&self, out: &mut Vec<u8>) {
        if matches!(self.output, Output::Matrix(_)) {
            out.push(b']');
        }
        if let Some(stats) = &self.stats {
            out.extend_from_slice(br#","stats":"#);
            write_json(out, stats);
        }
        out.push(b'}');
        let warnings = self.warnings.iter().map(String::as_str);
        let warnings: Vec<&str> = warnings.chain(self.is_truncated.then_some(TRUNCATED)).collect();
        if !warnings.is_empty() {
            out.extend_from_slice(br#","warnings":"#);
            write_json(out, &warnings);
        }
        if !self.infos.is_empty() {
            out.extend_from_slice(br#","infos":"#);
            write_json(out, &self.infos);
        }
        out.push(b'}');
    }
}

/// Writes `{"metric":{...}`. With `more`, after a comma.
fn write_metric(out: &mut Vec<u8>, more: bool, labels: &Labels) {
    out.extend_from_slice(if more { br#",{"metric":"# } else { br#"{"metric":"# });
    write_json(out, &LabelMap(labels));
}

/// Writes `[seconds,"value"]`.
fn write_point(out: &mut Vec<u8>, point: &Point, values: &mut ValueWriter) {
    out.push(b'[');
    write_milliseconds(out, point.at);
    out.extend_from_slice(b",\"");
    values.write(out, point.value);
    out.extend_from_slice(b"\"]");
}

/// Serializes texts and numbers, which cannot fail.
fn write_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok(), "{written:?}");
}

pub struct LabelMap<'a>(pub &'a Labels);

impl Serialize for LabelMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn labels(text: &str) -> Arc<Labels> {
        Arc::new(Labels::new([("a", text)]).unwrap())
    }

    async fn body(answer: Answer) -> Value {
        let body = answer.into_response().into_body();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&bytes)))
    }

    /// Compares the response for series of these lengths, cut off at `limit`, with the output of `serde_json`.
    async fn check(lengths: &[usize], limit: Option<usize>) {
        let series = lengths.iter().enumerate().map(|(number, length)| {
            let point = |i: usize| Point { at: i as i64 * 1_500_000_000, value: i as f64 / 4.0 };
            Series { labels: labels(&format!("\"{number}\"")), points: (0..*length).map(point).collect() }
        });
        let series: Vec<Series> = series.collect();
        let expect = series.iter().take(limit.unwrap_or(usize::MAX)).map(|series| {
            let seconds = |at: i64| {
                if at % 1_000_000_000 == 0 { json!(at / 1_000_000_000) } else { json!(at as f64 / 1e9) }
            };
            let points =
                series.points.iter().map(|point| json!([seconds(point.at), point.value.to_string()]));
            json!({"metric": {"a": series.labels.get("a")}, "values": points.collect::<Vec<_>>()})
        });
        let expect: Vec<Value> = expect.collect();
        let got = body(Answer::new(Output::Matrix(series), limit).unwrap()).await;
        assert_eq!(got["data"], json!({"resultType": "matrix", "result": expect}), "{lengths:?}");
        let truncated = limit.is_some_and(|limit| limit < lengths.len());
        assert_eq!(got["warnings"].is_array(), truncated);
    }

    #[tokio::test]
    async fn the_parts_form_the_whole_response() {
        for lengths in
            [&[][..], &[1], &[3, 1, 2], &[PART_POINTS], &[PART_POINTS + 1, 1], &[100_000, 1, 5, 40_000]]
        {
            check(lengths, None).await;
            check(lengths, Some(1)).await;
        }
    }

    #[test]
    fn the_memory_of_series_above_the_limit_is_freed() {
        const LIMIT: usize = 2;
        let point = Point { at: 0, value: 1.0 };
        let names: Vec<Arc<Labels>> = (0..1_000).map(|n| labels(&n.to_string())).collect();
        let users = || names.iter().map(|labels| Arc::strong_count(labels) - 1).sum::<usize>();
        let rows = names.iter().map(|labels| (labels.clone(), point)).collect();
        let vector = Answer::new(Output::Vector(rows), Some(LIMIT)).unwrap();
        let Output::Vector(rows) = &vector.output else { panic!("not a vector") };
        assert_eq!((users(), rows.capacity()), (LIMIT, LIMIT));
        drop(vector);
        // Each of these series fills a part, so the response is streamed, and the series stay in memory until it is sent.
        let series =
            names.iter().map(|labels| Series { labels: labels.clone(), points: vec![point; PART_POINTS] });
        let matrix = Answer::new(Output::Matrix(series.collect()), Some(LIMIT)).unwrap();
        let Output::Matrix(series) = &matrix.output else { panic!("not a matrix") };
        assert_eq!((users(), series.capacity()), (LIMIT, LIMIT));
        let least = LIMIT * (PART_POINTS * size_of::<Point>() + size_of::<Series>());
        let label_bytes = matrix.label_bytes;
        let response = matrix.into_response();
        assert_eq!(
            response.extensions().get::<Keeps>().map(|keeps| keeps.0),
            Some(least + label_bytes + PARTS_BYTES)
        );
    }

    #[tokio::test]
    async fn scalars_strings_and_vectors_are_written() {
        let point = |value| Point { at: 4_000_000_000, value };
        let check = async |output: Output, expect: Value| {
            let got = body(Answer::new(output, None).unwrap()).await;
            assert_eq!(got, json!({"status": "success", "data": expect}));
        };
        check(Output::Scalar(point(f64::NAN)), json!({"resultType": "scalar", "result": [4, "NaN"]})).await;
        let text = Output::String { at: 1, text: "a \"b\"\n".into() };
        check(text, json!({"resultType": "string", "result": [0, "a \"b\"\n"]})).await;
        let vector = Output::Vector(vec![(labels("ü"), point(1.0)), (labels(""), point(-0.5))]);
        let expect = json!([{"metric": {"a": "ü"}, "value": [4, "1"]}, {"metric": {}, "value": [4, "-0.5"]}]);
        check(vector, json!({"resultType": "vector", "result": expect})).await;
        check(Output::Vector(Vec::new()), json!({"resultType": "vector", "result": []})).await;
    }
}
