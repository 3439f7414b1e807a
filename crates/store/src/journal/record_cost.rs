//! Upper bounds of the bytes that the records of a batch take in one journal record (`encode.rs`).
//!
//! `parts.rs` divides a batch by these bounds before it is encoded. Most records take far fewer bytes.

use tacho_model::{AttributeValue, Entry, ExecutionSeries, Labels, Sample, Segment};

use super::format::RECORD_BYTES_MAX;

/// Limit on the sum of the bounds of one batch. The flags, the origin and the heads of the tables take the rest
/// of the record.
pub const BATCH_COST_MAX: usize = RECORD_BYTES_MAX - 1_024;

/// A varint of 32 bits.
const SHORT: usize = 5;
/// A varint of 64 bits.
const LONG: usize = 10;
/// A sample of a series whose values have one type: its time and its value.
const SAMPLE: usize = LONG + 8;
/// A sample of a series whose values have several types. Each sample may begin a block.
pub const SAMPLE_MAX: usize = 2 + 4 * LONG;
/// The definition of a series without its labels, and the heads of its block and its column.
pub const SERIES: usize = 64;

/// The bound of a series without its records.
pub fn of_series(labels: &Labels) -> usize {
    SERIES + labels.canonical_bytes()
}

/// The bound of a single sample of `samples`, which belong to one series.
pub fn of_sample(samples: &[Sample]) -> usize {
    let is_one_type =
        samples.windows(2).all(|pair| matches!(pair, [a, b] if a.value.value_type() == b.value.value_type()));
    if is_one_type { SAMPLE } else { SAMPLE_MAX }
}

pub fn of_entry(entry: &Entry) -> usize {
    LONG + 1 + LONG + entry.body.as_bytes().len()
}

/// The bound of a series with its segments.
pub fn of_executions(series: &ExecutionSeries) -> usize {
    let operations: usize = series.operations.iter().map(|operation| 1 + SHORT + operation.name.len()).sum();
    of_series(&series.labels) + operations + series.segments.iter().map(of_segment).sum::<usize>()
}

fn of_segment(segment: &Segment) -> usize {
    let attributes = segment.attributes.iter().map(|attribute| {
        let value = match &attribute.value {
            AttributeValue::Text(text) => text.len(),
            AttributeValue::Integer(_) => 0,
        };
        SHORT + of_text(&attribute.key) + 1 + LONG + value
    });
    // Flags, trace, base and parent; the numbers; the name of the thread.
    let head = 1 + 16 + 8 + 8 + 2 * SHORT + 4 * LONG + of_text(&segment.thread);
    let (carried, events) = (segment.carried.len(), segment.events.len());
    head + carried * (2 * LONG + SHORT) + events * 2 * LONG + attributes.sum::<usize>()
}

/// The bound of the reference to a text, and of the text.
fn of_text(text: &str) -> usize {
    LONG + SHORT + text.len()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tacho_model::{
        Attribute, Batch, Body, Carried, EntrySeries, Event, EventKind, Operation, OperationKind,
        SampleSeries, SpanId, TraceId, Value,
    };

    use super::*;
    use crate::arrival::Arrival;
    use crate::journal::Encoder;
    use crate::parts::Cost;

    fn labels(number: usize) -> Arc<Labels> {
        let number = format!("{number:04}");
        Arc::new(Labels::new([("__name__", &*number), ("a", &*number.repeat(100))]).unwrap())
    }

    /// Checks that the journal record takes more than a third of the bound of the batch, and at most the bound plus the bytes
    /// that [`BATCH_COST_MAX`] reserves for flags, origin and heads.
    fn check(batch: Batch) {
        let arrival = Arrival::new(Arc::new(batch), None);
        let (mut out, bound) = (Vec::new(), Cost::exact(&arrival).record);
        Encoder::default().encode(&arrival, u64::MAX, &mut out).unwrap();
        let rest = RECORD_BYTES_MAX - BATCH_COST_MAX;
        assert!(bound <= Cost::of(&arrival).record);
        assert!(out.len() <= bound + rest && out.len() > bound / 3, "{} bytes, bound {bound}", out.len());
    }

    /// Times with large differences.
    fn at(n: i64) -> i64 {
        if n % 2 == 0 { n } else { i64::MAX - n }
    }

    #[test]
    fn a_batch_takes_at_most_its_bound() {
        let far = |n: i64| Sample { at: at(n), value: Value::F64((n as f64).sqrt()) };
        let mixed = |n: i64| match n % 2 {
            0 => Sample { at: at(n), value: Value::I64(i64::MIN) },
            _ => Sample { at: at(n), value: Value::U64(u64::MAX) },
        };
        let series = |count: i64, sample: &dyn Fn(i64) -> Sample| {
            let of =
                |number| SampleSeries { labels: labels(number), samples: (0..count).map(sample).collect() };
            (0..200).map(of).collect()
        };
        for count in [1, 2, 100] {
            check(Batch { samples: series(count, &far), ..Batch::default() });
            check(Batch { samples: series(count, &mixed), ..Batch::default() });
        }
        let entry = |n: i64| Entry { at: at(n), body: Body::Text("t".repeat(20).into()) };
        let entries =
            (0..200).map(|n| EntrySeries { labels: labels(n), entries: (0..50).map(entry).collect() });
        check(Batch { entries: entries.collect(), ..Batch::default() });
    }

    #[test]
    fn calls_take_at_most_their_bound() {
        let operations = |_| Operation { kind: OperationKind::Method, name: "o".repeat(200).into() };
        let segment = |n: u64| Segment {
            trace: TraceId(n.into()),
            base: u64::MAX,
            part: u32::MAX,
            parent: Some(SpanId(n)),
            thread: format!("{n:0300}").into(),
            start: at(n as i64),
            carried: vec![Carried { operation: 0, call: u32::MAX, age: u64::MAX }; 3],
            first_call: u32::MAX,
            events: vec![Event { delta: u64::MAX, kind: EventKind::Enter(0) }; 3],
            attributes: vec![
                Attribute {
                    call: 0,
                    key: "k".repeat(300).into(),
                    value: AttributeValue::Text("v".repeat(99).into()),
                },
                Attribute { call: 0, key: "k".into(), value: AttributeValue::Integer(i64::MIN) },
            ],
        };
        let executions = (0..50).map(|number| ExecutionSeries {
            labels: labels(number),
            operations: (0..1).map(operations).collect(),
            segments: (1..20).map(segment).collect(),
        });
        check(Batch { executions: executions.collect(), ..Batch::default() });
    }
}
