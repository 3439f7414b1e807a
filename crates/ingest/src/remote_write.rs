//! Which samples does a snappy-compressed `WriteRequest` of Prometheus remote write 1.0 hold?
//!
//! The relevant fields (`prometheus.WriteRequest`, remote write specification 1.0):
//!
//! ```text
//!   WriteRequest  1 timeseries*              3 metadata*: ignored
//!   TimeSeries    1 labels*   2 samples*     3 exemplars*: ignored   4 histograms*: the series is refused
//!   Label         1 name      2 value
//!   Sample        1 value: double            2 timestamp: int64, ms since the Unix epoch
//! ```
//!
//! The message is parsed by hand, series by series. Labels stay slices of the message until the series is built. At most
//! [`LABELS_MAX`] are kept, so a hostile message with many empty labels takes little memory. If the store knows the series by
//! the bytes of its labels ([`FindSeries`]), no labels are made.
//! Step before: `server/src/http/`. Step after: the store takes the batch.

mod known;

use std::sync::Arc;

use tacho_model::limits::LABELS_MAX;
use tacho_model::{
    Batch, FindSeries, KnownSamples, LabelError, Labels, Sample, SampleSeries, Spelling, Value,
};

use crate::budget::{Budget, Full};
use crate::reader::{Flaw, Reader};
use crate::{Error, Rejects};
use known::KnownMessages;

/// Limit on the growth of a snappy block. A copy of 64 bytes takes 3 bytes; the quotient is rounded up.
const SNAPPY_GROWTH_MAX: usize = 22;
const NS_PER_MS: i64 = 1_000_000;
/// Memory of a series in bytes, in addition to its labels and samples. The lists of series and spellings exist twice while they
/// grow.
const SERIES_BYTES: usize = 3 * (size_of::<SampleSeries>() + size_of::<Spelling>()) + 96;

/// Field numbers.
const TIME_SERIES: u64 = 1;
const LABEL: u64 = 1;
const SAMPLE: u64 = 2;
const HISTOGRAM: u64 = 4;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    pub batch: Batch,
    /// Samples of series that the store knows. If a series also has samples in `batch`, the samples in `known` arrived first.
    pub known: KnownSamples,
    /// The spelling of each series of the batch. Empty if the store was not asked for the series.
    pub spellings: Vec<Spelling>,
    pub rejects: Rejects<Refused>,
}

/// One series that was refused with all its samples, or of which the samples with a time out of range were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("series {position}: {reason}")]
pub struct Refused {
    /// Position in the request, counted from 0.
    pub position: usize,
    pub reason: String,
}

/// Decompressed size of the message in bytes, as stated by the body. An error if the size is above `bytes_max`, or more
/// than the body can contain.
pub fn message_bytes(body: &[u8], bytes_max: usize) -> Result<usize, Error> {
    let bytes = snap::raw::decompress_len(body).map_err(damaged)?;
    if bytes > bytes_max {
        return Err(Error::MessageTooLong { bytes, max: bytes_max });
    }
    if bytes > body.len().saturating_mul(SNAPPY_GROWTH_MAX) {
        return Err(Error::Snappy(format!("{} bytes cannot decompress to the stated {bytes}", body.len())));
    }
    Ok(bytes)
}

/// Decompresses and decodes a request body. `bytes_max` limits the decompressed size.
pub fn decode(body: &[u8], bytes_max: usize) -> Result<Decoded, Error> {
    decode_message(&decompress(body, bytes_max)?, KnownMessages::default())
}

/// Like [`decode`]. Asks `finder` for the series.
pub fn decode_known(body: &[u8], bytes_max: usize, finder: &mut dyn FindSeries) -> Result<Decoded, Error> {
    decode_message(&decompress(body, bytes_max)?, KnownMessages::new(finder))
}

fn decompress(body: &[u8], bytes_max: usize) -> Result<Vec<u8>, Error> {
    message_bytes(body, bytes_max)?;
    snap::raw::Decoder::new().decompress_vec(body).map_err(damaged)
}

fn damaged(error: snap::Error) -> Error {
    Error::Snappy(error.to_string())
}

fn decode_message(message: &[u8], mut known: KnownMessages<'_>) -> Result<Decoded, Error> {
    let mut decoded = Decoded::default();
    let mut reader = Reader::new(message);
    let mut position = 0;
    let mut budget = Budget::of_body(message.len());
    while let Some(field) = next_field(&mut reader).map_err(malformed)? {
        let (TIME_SERIES, Content::Bytes(bytes)) = (field.number, field.content) else { continue };
        let mut refuse = |reason: SeriesError| {
            decoded.rejects.add(|| Refused { position, reason: reason.to_string() });
        };
        match read_one(bytes, &mut known, &mut budget) {
            Ok(None) => {}
            Ok(Some((spelling, read))) => {
                if let Some(ms) = read.timestamp_refused {
                    refuse(SeriesError::Timestamp(ms));
                }
                if !read.series.samples.is_empty() {
                    known.add(spelling);
                    decoded.batch.samples.push(read.series);
                }
            }
            Err(reason) => refuse(reason),
        }
        position += 1;
    }
    (decoded.known, decoded.spellings) = known.into_parts();
    Ok(decoded)
}

/// Reads a series within the budget of the message. `None` if it is known, and its samples were taken.
fn read_one(
    bytes: &[u8],
    known: &mut KnownMessages<'_>,
    budget: &mut Budget,
) -> Result<Option<(Spelling, ReadSeries)>, SeriesError> {
    let Some(spelling) = known.take(bytes, budget)? else { return Ok(None) };
    let read = read_series(bytes)?;
    let taken =
        SERIES_BYTES + read.series.labels.own_bytes() + size_of::<Sample>() * read.series.samples.capacity();
    budget.take_beyond(taken, bytes.len())?;
    Ok(Some((spelling, read)))
}

const fn malformed(flaw: Flaw) -> Error {
    Error::Malformed { message: "remote write request", flaw }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum SeriesError {
    #[error("malformed, {0}")]
    Malformed(#[from] Flaw),
    #[error(transparent)]
    Labels(#[from] LabelError),
    #[error("{0} labels, at most {LABELS_MAX} are allowed")]
    TooManyLabels(usize),
    #[error("no labels")]
    NoLabels,
    #[error(transparent)]
    Full(#[from] Full),
    #[error("timestamp {0} ms is outside the years 1677 to 2262")]
    Timestamp(i64),
    #[error("native histograms are not supported")]
    Histogram,
}

struct ReadSeries {
    series: SampleSeries,
    /// The last time that is out of range, in ms. Samples with such times are refused, and the others are kept.
    timestamp_refused: Option<i64>,
}

fn read_series(message: &[u8]) -> Result<ReadSeries, SeriesError> {
    // Counts the samples first, because a growing list would take three times the memory. Even a list of the right
    // length takes 24 bytes for a sample that has only two bytes in the message.
    let (mut pairs, mut samples) = {
        let [labels, samples] = counts(message)?;
        (Vec::with_capacity(labels.min(LABELS_MAX)), Vec::with_capacity(samples))
    };
    let mut reader = Reader::new(message);
    let mut pair_count = 0;
    let mut timestamp_refused = None;
    while let Some(field) = next_field(&mut reader)? {
        match (field.number, field.content) {
            (LABEL, Content::Bytes(label)) => {
                pair_count += 1;
                if pair_count <= LABELS_MAX {
                    pairs.push(read_label(label)?);
                }
            }
            (SAMPLE, Content::Bytes(sample)) => {
                let (ms, value) = read_sample(sample)?;
                match ms.checked_mul(NS_PER_MS) {
                    Some(at) => samples.push(Sample { at, value: Value::F64(value) }),
                    None => timestamp_refused = Some(ms),
                }
            }
            (HISTOGRAM, Content::Bytes(_)) => return Err(SeriesError::Histogram),
            _ => {}
        }
    }
    if pair_count > LABELS_MAX {
        return Err(SeriesError::TooManyLabels(pair_count));
    }
    let labels = Labels::new(pairs)?;
    if labels.is_empty() {
        return Err(SeriesError::NoLabels);
    }
    Ok(ReadSeries { series: SampleSeries { labels: Arc::new(labels), samples }, timestamp_refused })
}

/// Number of labels and samples of a series.
fn counts(message: &[u8]) -> Result<[usize; 2], Flaw> {
    let mut reader = Reader::new(message);
    let mut counts = [0; 2];
    while let Some(field) = next_field(&mut reader)? {
        match field.number {
            LABEL => counts[0] += 1,
            SAMPLE if matches!(field.content, Content::Bytes(_)) => counts[1] += 1,
            _ => {}
        }
    }
    Ok(counts)
}

fn read_label(message: &[u8]) -> Result<(&str, &str), Flaw> {
    let mut reader = Reader::new(message);
    let mut pair = ("", "");
    let flaw = reader.flaw("label that is not UTF-8");
    while let Some(field) = next_field(&mut reader)? {
        let Content::Bytes(bytes) = field.content else { continue };
        let text = std::str::from_utf8(bytes).map_err(|_| flaw);
        match field.number {
            1 => pair.0 = text?,
            2 => pair.1 = text?,
            _ => {}
        }
    }
    Ok(pair)
}

/// Time in ms and value. The bits of a NaN are kept, because Prometheus marks the end of a series with a special NaN.
fn read_sample(message: &[u8]) -> Result<(i64, f64), Flaw> {
    let mut reader = Reader::new(message);
    let mut sample = (0, 0.0);
    while let Some(field) = next_field(&mut reader)? {
        match (field.number, field.content) {
            (1, Content::Fixed64(bits)) => sample.1 = f64::from_bits(bits),
            (2, Content::Varint(ms)) => sample.0 = ms.cast_signed(),
            _ => {}
        }
    }
    Ok(sample)
}

struct Field<'a> {
    number: u64,
    content: Content<'a>,
}

enum Content<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

/// The next field of a protobuf message. Its key is `number << 3 | wire type` (Protocol Buffers encoding).
fn next_field<'a>(reader: &mut Reader<'a>) -> Result<Option<Field<'a>>, Flaw> {
    if reader.is_empty() {
        return Ok(None);
    }
    let flaw = reader.flaw("unknown wire type");
    let key = reader.varint()?;
    let content = match key & 7 {
        0 => Content::Varint(reader.varint()?),
        1 => Content::Fixed64(u64::from_le_bytes(reader.array()?)),
        2 => Content::Bytes(reader.bytes()?),
        5 => reader.array::<4>().map(|_| Content::Fixed32)?,
        _ => return Err(flaw),
    };
    Ok(Some(Field { number: key >> 3, content }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listed::List;
    use proptest::prelude::*;
    use prost::Message;

    /// The messages as defined for prost, an independent encoder.
    #[derive(Clone, PartialEq, Message)]
    struct WriteRequest {
        #[prost(message, repeated, tag = "1")]
        timeseries: Vec<TimeSeries>,
        #[prost(message, repeated, tag = "3")]
        metadata: Vec<Metadata>,
    }
    #[derive(Clone, PartialEq, Message)]
    struct Metadata {
        #[prost(int32, tag = "1")]
        metric_type: i32,
        #[prost(string, tag = "2")]
        metric_family_name: String,
    }
    #[derive(Clone, PartialEq, Message)]
    struct TimeSeries {
        #[prost(message, repeated, tag = "1")]
        labels: Vec<Label>,
        #[prost(message, repeated, tag = "2")]
        samples: Vec<PromSample>,
        #[prost(bytes = "vec", repeated, tag = "4")]
        histograms: Vec<Vec<u8>>,
    }
    #[derive(Clone, PartialEq, Message)]
    struct Label {
        #[prost(bytes = "vec", tag = "1")]
        name: Vec<u8>,
        #[prost(string, tag = "2")]
        value: String,
    }
    #[derive(Clone, PartialEq, Message)]
    struct PromSample {
        #[prost(double, tag = "1")]
        value: f64,
        #[prost(int64, tag = "2")]
        timestamp: i64,
    }

    fn series(labels: &[(&str, &str)], samples: &[(i64, f64)]) -> TimeSeries {
        let label = |(name, value): &(&str, &str)| Label { name: (*name).into(), value: (*value).into() };
        TimeSeries {
            labels: labels.iter().map(label).collect(),
            samples: samples
                .iter()
                .map(|(timestamp, value)| PromSample { value: *value, timestamp: *timestamp })
                .collect(),
            histograms: vec![],
        }
    }

    fn body(timeseries: Vec<TimeSeries>) -> Vec<u8> {
        let metadata = vec![Metadata { metric_type: 1, metric_family_name: "up".into() }];
        let message = WriteRequest { timeseries, metadata }.encode_to_vec();
        snap::raw::Encoder::new().compress_vec(&message).unwrap()
    }

    fn check(timeseries: Vec<TimeSeries>, kept: &[(&str, &[(i64, f64)])], refused: &[&str]) {
        let decoded = decode(&body(timeseries), 1 << 20).unwrap();
        let sample = |(at, value): &(i64, f64)| Sample { at: *at, value: Value::F64(*value) };
        let expect: Vec<(String, Vec<Sample>)> = kept
            .iter()
            .map(|(labels, list)| ((*labels).to_owned(), list.iter().map(sample).collect()))
            .collect();
        let got: Vec<(String, Vec<Sample>)> =
            decoded.batch.samples.iter().map(|s| (s.labels.to_string(), s.samples.clone())).collect();
        assert_eq!(got, expect);
        let got: Vec<String> = decoded.rejects.named.iter().map(Refused::to_string).collect();
        assert_eq!(got, refused);
    }

    #[test]
    fn series_that_the_store_knows_need_no_labels() {
        let up = || series(&[("__name__", "up"), ("job", "a")], &[(1, 1.5), (2, 2.5)]);
        let down = |samples: &[(i64, f64)]| series(&[("__name__", "down")], samples);
        let known = up();
        let labels = known.labels.iter().map(|label| {
            let label = label.encode_to_vec();
            [&[0x0a, u8::try_from(label.len()).unwrap()], &label[..]].concat()
        });
        let labels = labels.collect::<Vec<_>>().concat();
        let mut list = List::new(|keys| vec![keys.labels(&labels)]);
        let read = |timeseries: Vec<TimeSeries>, list: &mut List| {
            list.begin_body();
            let decoded = decode_known(&body(timeseries), 1 << 20, list).unwrap();
            let known = decoded.known.iter().map(|(series, samples)| (series.number, samples.len()));
            let known: Vec<(u32, usize)> = known.collect();
            let others: Vec<String> = decoded.batch.samples.iter().map(|s| s.labels.to_string()).collect();
            assert_eq!(others.len(), decoded.spellings.len());
            (known, others.join(" "))
        };
        let mut histogram = up();
        histogram.histograms.push(vec![8, 1]);
        let all = vec![up(), down(&[(1, 1.0)]), up(), down(&[])];
        assert_eq!(read(all, &mut list), (vec![(0, 4)], "down".to_owned()));
        // After a known series with a histogram, all series have labels.
        let all = vec![up(), histogram, up(), down(&[(1, 1.0)])];
        assert_eq!(read(all, &mut list), (vec![(0, 2)], "up{job=\"a\"} down".to_owned()));
        let late = series(&[("__name__", "up"), ("job", "a")], &[(i64::MAX, 1.0), (3, 1.0)]);
        assert_eq!(read(vec![late, up()], &mut list), (vec![], "up{job=\"a\"} up{job=\"a\"}".to_owned()));
        // A series that the store learns between two of its samples gets labels until the end of the body.
        let spelling = decode_known(&body(vec![down(&[(1, 1.0)])]), 1 << 20, &mut list).unwrap().spellings[0];
        list.late = Some((2, spelling));
        let all = || vec![up(), down(&[(1, 1.0)]), down(&[(1, 2.0)]), up()];
        assert_eq!(read(all(), &mut list), (vec![(0, 2)], "down down up{job=\"a\"}".to_owned()));
        assert_eq!(read(all(), &mut list), (vec![(0, 4), (1, 2)], String::new()));
    }

    /// The NaN that Prometheus writes when a series ends.
    const STALE: u64 = 0x7ff0_0000_0000_0002;

    #[test]
    fn valid_series_next_to_refused_series_are_kept() {
        let stale = f64::from_bits(STALE);
        let mut histogram = series(&[("__name__", "h")], &[]);
        histogram.histograms.push(vec![8, 1]);
        let mut not_utf8 = series(&[("__name__", "bad")], &[(1, 1.0)]);
        not_utf8.labels[0].name = vec![0xff];
        let many: Vec<(String, String)> = (0..=LABELS_MAX).map(|i| (format!("l{i}"), "v".into())).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        check(
            vec![
                series(&[("job", "ö"), ("__name__", "up")], &[(1, 1.5), (-2, stale)]),
                not_utf8,
                series(&[("a", "1"), ("a", "2")], &[(1, 1.0)]),
                histogram,
                series(&[], &[(1, 1.0)]),
                series(&many, &[(1, 1.0)]),
                series(&[("__name__", "late")], &[(i64::MAX, 1.0), (3, -0.5)]),
                series(&[("__name__", "empty")], &[]),
            ],
            &[(r#"up{job="ö"}"#, &[(1_000_000, 1.5), (-2_000_000, stale)]), ("late", &[(3_000_000, -0.5)])],
            &[
                "series 1: malformed, label that is not UTF-8 at byte 0",
                "series 2: label \"a\" is given twice",
                "series 3: native histograms are not supported",
                "series 4: no labels",
                "series 5: 65 labels, at most 64 are allowed",
                "series 6: timestamp 9223372036854775807 ms is outside the years 1677 to 2262",
            ],
        );
    }

    #[test]
    fn sizes_over_a_limit_and_damaged_bodies_are_refused() {
        let fail = |body: &[u8], max| decode(body, max).unwrap_err().to_string();
        let body = body(vec![series(&[("a", &"x".repeat(5_000))], &[])]);
        assert_eq!(fail(&body, 5_000), "message of 5020 bytes when decompressed, at most 5000 are allowed");
        assert!(decode(&body, 5_020).is_ok());
        // The header states 1 GiB in five bytes.
        let claim = [0x80, 0x80, 0x80, 0x80, 0x04, 0x00];
        assert_eq!(
            fail(&claim, usize::MAX),
            "snappy block is damaged: 6 bytes cannot decompress to the stated 1073741824"
        );
        assert!(fail(b"not snappy", 1 << 20).starts_with("snappy block is damaged"));
        let garbage = snap::raw::Encoder::new().compress_vec(&[0x0b]).unwrap();
        assert_eq!(fail(&garbage, 10), "malformed remote write request: unknown wire type at byte 0");
    }

    proptest! {
        #[test]
        fn values_and_times_round_trip(
            list in proptest::collection::vec((-9_000_000_000_000i64..9_000_000_000_000, any::<u64>()), 1..50),
        ) {
            let samples: Vec<(i64, f64)> = list.iter().map(|(at, bits)| (*at, f64::from_bits(*bits))).collect();
            let decoded = decode(&body(vec![series(&[("__name__", "x")], &samples)]), 1 << 20).unwrap();
            let expect: Vec<Sample> =
                samples.iter().map(|(ms, v)| Sample { at: ms * NS_PER_MS, value: Value::F64(*v) }).collect();
            prop_assert_eq!(&decoded.batch.samples[0].samples, &expect);
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes, 1 << 16);
            let _ = decode_message(&bytes, KnownMessages::default());
        }
    }
}
