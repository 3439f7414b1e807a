//! Where does a line of a line protocol file end, and which lines of a block are broken?
//!
//! [`crate::line_protocol`] decodes a block. This module finds the ends of the lines: a line feed in a string does not end
//! a line. If a line of the block is refused, each line is decoded again by itself, so that each broken line is reported.

use std::fmt::Write;
use std::ops::Range;

use tacho_model::{Body, Entry, Labels, NAME, Sample, Timestamp, Value};

use crate::line_protocol::{Precision, decode};
use crate::rows::{At, Block, Broken, Rows};

/// Limit on the bytes of a line with its strings. If no end of a line is found within the limit, a quote in the line is taken as
/// unclosed, and the line ends at its first line feed. So an unclosed quote usually breaks only one line. But if the file ends
/// within the limit, everything from the line with the unclosed quote to the end of the file is reported as one broken line. The
/// records of the valid lines in this part are kept.
const LINE_BYTES_MAX: usize = 4 << 20;

#[derive(Clone, Debug)]
pub struct LineProtocol {
    precision: Precision,
    /// The time of lines without a time.
    now: Timestamp,
}

impl LineProtocol {
    pub const fn new(precision: Precision, now: Timestamp) -> Self {
        Self { precision, now }
    }
}

impl Rows for LineProtocol {
    fn whole(&self, bytes: &[u8]) -> usize {
        if !bytes.contains(&b'"') {
            return crate::rows::whole_lines(bytes);
        }
        let mut at = 0;
        while let Some(length) = bytes.get(at..).and_then(line_length) {
            at += length;
        }
        at
    }

    fn decode(&mut self, block: &[u8], before: u64) -> Block {
        let decoded = decode(block, self.precision, self.now);
        let mut out = Block { batch: decoded.batch, ..Block::default() };
        for (nth, bytes) in (1..).zip(lines(block)) {
            out.rows = nth;
            if decoded.rejects.is_empty() {
                continue;
            }
            let line = block.get(bytes.clone()).unwrap_or_default();
            let refused = decode(line, self.precision, self.now).rejects;
            out.broken.extend(refused.named.into_iter().next().map(|refused| Broken {
                row: before + nth,
                at: At::Byte(refused.column),
                reason: refused.reason,
                bytes,
            }));
        }
        out
    }
}

/// Appends one line per sample and calls `written` with the sample. Omits samples that the protocol cannot express:
/// infinities, NaN, and samples with labels that cannot be tags.
pub fn write_samples(
    out: &mut String,
    labels: &Labels,
    samples: &[Sample],
    mut written: impl FnMut(&Sample),
) {
    let Some(head) = head(labels) else { return };
    for sample in samples {
        let field = match sample.value {
            Value::F64(value) if value.is_finite() => format!("{value}"),
            Value::I64(value) => format!("{value}i"),
            Value::U64(value) => format!("{value}u"),
            Value::F64(_) => continue,
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{head} value={field} {}", sample.at);
        written(sample);
    }
}

/// Appends one line per text entry and calls `written` with the entry. Omits bytes, and entries with labels that cannot
/// be tags.
pub fn write_entries(out: &mut String, labels: &Labels, entries: &[Entry], mut written: impl FnMut(&Entry)) {
    let Some(head) = head(labels) else { return };
    for entry in entries {
        if let Body::Text(text) = &entry.body {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(out, "{head} value=\"{text}\" {}", entry.at);
            written(entry);
        }
    }
}

/// Measurement and tags of a line. `None` if the decoder would not read `labels` from them.
fn head(labels: &Labels) -> Option<String> {
    let escape = |text: &str| text.replace(',', "\\,").replace('=', "\\=").replace(' ', "\\ ");
    let mut out = labels.name().replace(',', "\\,").replace(' ', "\\ ");
    for (name, value) in labels.iter().filter(|(name, _)| *name != NAME) {
        let _ = write!(out, ",{}={}", escape(name), escape(value));
    }
    let back = decode(format!("{out} value=1 1\n").as_bytes(), Precision::Nanoseconds, 0).batch;
    let same = matches!(&*back.samples, [series] if *series.labels == *labels && series.samples.len() == 1);
    same.then_some(out)
}

fn lines(block: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = block.get(at..).filter(|rest| !rest.is_empty())?;
        let range = at..at + line_length(rest).unwrap_or(rest.len());
        at = range.end;
        Some(range)
    })
}

/// Length of the first line with its line feed; `None` if the end of the line is missing. A quote opens a string only
/// directly after the `=` of a field. In names and tags a quote is an ordinary character.
fn line_length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
    let line = end.and_then(|end| bytes.get(..end)).unwrap_or(bytes);
    if !line.contains(&b'"') || line.trim_ascii_start().starts_with(b"#") {
        return end;
    }
    let (mut in_fields, mut in_text, mut escaped, mut before) = (false, false, false, b'\n');
    for (at, byte) in bytes.iter().copied().enumerate().take(LINE_BYTES_MAX) {
        match byte {
            b'\n' if !in_text => return Some(at + 1),
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' if in_text => in_text = false,
            b'"' if in_fields && before == b'=' => in_text = true,
            b' ' if before != b'\n' && before != b' ' => in_fields = true,
            _ => {}
        }
        before = byte;
    }
    if bytes.len() >= LINE_BYTES_MAX { end } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_hold_line_feeds_and_tags_hold_quotes() {
        for (bytes, expect) in [
            ("a v=1\nb v=2", 6),
            ("a v=\"x\ny\" 1\nb", 12),
            ("a v=\"x\ny", 0),
            ("a,t=\"x v=1\nb", 11),
            ("a v=\"x\\\"\ny\"\n", 12),
            ("# \"\nb v=", 4),
            ("a v=\"\" 1\n", 9),
        ] {
            assert_eq!(
                LineProtocol::new(Precision::default(), 0).whole(bytes.as_bytes()),
                expect,
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn every_broken_line_is_reported() {
        let mut text = String::from("a v=1 1\n");
        (0..40).for_each(|_| text.push_str("a v=x 2\n"));
        text.push_str("a v=\"x\ny\" 3\nb v\n");
        let block = LineProtocol::new(Precision::default(), 0).decode(text.as_bytes(), 10);
        assert_eq!((block.rows, block.batch.counts(), block.broken.len()), (43, [1, 1, 0], 41));
        let last = block.broken.last().unwrap();
        assert_eq!(last.to_string(), "line 53, byte 3: field \"v\" has no value");
        assert_eq!(&text[last.bytes.clone()], "b v\n");
    }

    proptest! {
        #[test]
        fn records_reported_as_written_read_back(
            labels in prop::collection::btree_map(".{1,8}", ".{1,8}", 0..4),
            name in ".{1,8}",
            samples in prop::collection::vec((any::<i64>(), any::<f64>()), 1..10),
            texts in prop::collection::vec(".{0,20}", 1..5),
        ) {
            let pairs = labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let labels = Labels::new(pairs.filter(|(n, _)| *n != NAME).chain([(NAME, name.as_str())])).unwrap();
            let samples: Vec<Sample> =
                samples.into_iter().map(|(at, value)| Sample { at, value: Value::F64(value) }).collect();
            let texts: Vec<Entry> =
                texts.into_iter().map(|text| Entry { at: 5, body: Body::Text(text.into()) }).collect();
            let mut out = String::new();
            let (mut kept, mut kept_texts) = (Vec::new(), Vec::new());
            write_samples(&mut out, &labels, &samples, |sample| kept.push(*sample));
            write_entries(&mut out, &labels, &texts, |entry| kept_texts.push(entry.clone()));
            let block = LineProtocol::new(Precision::default(), 0).decode(out.as_bytes(), 0);
            prop_assert_eq!(block.broken, vec![]);
            let read: usize = block.batch.counts().iter().sum();
            prop_assert_eq!(read, kept.len() + kept_texts.len());
            prop_assert!(kept.iter().all(|sample| sample.value.as_f64().is_finite()));
            prop_assert!(block.batch.samples.iter().all(|series| *series.labels == labels));
            prop_assert!(block.batch.entries.iter().all(|series| series.entries == texts));
        }
    }
}
