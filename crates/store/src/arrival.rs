//! Is this batch fit to be kept, whose is it, and what does it weigh?
//!
//! Path of one record: `ingest` made the [`Batch`]; here it is checked in the caller's task; `commit.rs` writes it
//! to the journal and adds it to the open chunks.

use tacho_model::limits::{ATTRIBUTE_BYTES_MAX, ENTRY_BYTES_MAX, OPERATION_BYTES_MAX};
use tacho_model::{
    AttributeValue, Batch, EntrySeries, ExecutionSeries, Labels, SampleSeries, SegmentError, SeriesId,
};

use crate::{Error, Result};

/// Which sender's which batch this is: a number that was taken once is not taken again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Drawn at random by the sender for the life of its process.
    pub session: u128,
    /// Rises from 1; gaps are allowed.
    pub seq: u64,
}

/// What became of a batch. Either way it is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    Stored,
    /// Its origin was taken before: nothing was added.
    Repeated,
}

/// A batch that passed all checks, with the ids of its series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrival {
    pub origin: Option<Origin>,
    pub samples: Vec<(SeriesId, SampleSeries)>,
    pub entries: Vec<(SeriesId, EntrySeries)>,
    pub executions: Vec<(SeriesId, ExecutionSeries)>,
}

impl Arrival {
    /// Checks what later steps rely on; series without records are left out.
    pub fn check(batch: Batch, origin: Option<Origin>) -> Result<Self> {
        batch.entries.iter().try_for_each(check_entries)?;
        batch.executions.iter().try_for_each(check_executions)?;
        Ok(Self {
            origin,
            samples: with_ids(batch.samples, |s| &s.labels, |s| s.samples.is_empty()),
            entries: with_ids(batch.entries, |s| &s.labels, |s| s.entries.is_empty()),
            executions: with_ids(batch.executions, |s| &s.labels, |s| s.segments.is_empty()),
        })
    }

    /// Memory of the records while they wait, bytes; also about what they will take when open.
    pub fn bytes(&self) -> usize {
        let samples: usize = self.samples.iter().map(|(_, s)| 64 + 16 * s.samples.len()).sum();
        let entries: usize =
            self.entries.iter().flat_map(|(_, s)| &s.entries).map(|e| 64 + e.body.as_bytes().len()).sum();
        let segments = self.executions.iter().flat_map(|(_, s)| &s.segments);
        let executions: usize =
            segments.map(|s| 200 + 16 * (s.events.len() + s.carried.len()) + 64 * s.attributes.len()).sum();
        samples + entries + executions
    }

    /// Records by kind: samples, entries, completed calls.
    pub fn counts(&self) -> [u64; 3] {
        [
            self.samples.iter().map(|(_, s)| s.samples.len() as u64).sum(),
            self.entries.iter().map(|(_, s)| s.entries.len() as u64).sum(),
            self.executions.iter().flat_map(|(_, s)| &s.segments).map(|s| s.calls_completed() as u64).sum(),
        ]
    }
}

fn with_ids<S>(
    series: Vec<S>,
    labels: impl Fn(&S) -> &Labels,
    is_empty: impl Fn(&S) -> bool,
) -> Vec<(SeriesId, S)> {
    series.into_iter().filter(|s| !is_empty(s)).map(|s| (labels(&s).id(), s)).collect()
}

fn check_entries(series: &EntrySeries) -> Result<()> {
    match series.entries.iter().map(|e| e.body.as_bytes().len()).find(|bytes| *bytes > ENTRY_BYTES_MAX) {
        None => Ok(()),
        Some(bytes) => Err(Error::invalid(format!("entry of {bytes} bytes is over {ENTRY_BYTES_MAX}"))
            .with("series", &series.labels)),
    }
}

fn check_executions(series: &ExecutionSeries) -> Result<()> {
    let place = |error: Error| error.with("series", &series.labels);
    if let Some(long) = series.operations.iter().find(|o| o.name.len() > OPERATION_BYTES_MAX) {
        let bytes = long.name.len();
        let message = format!("operation name of {bytes} bytes is over {OPERATION_BYTES_MAX}");
        return Err(place(Error::invalid(message)));
    }
    for segment in &series.segments {
        let refused = |error: SegmentError| {
            place(Error::invalid("segment is refused").with("trace", segment.trace)).caused_by(error)
        };
        segment.check(series.operations.len()).map_err(refused)?;
        let long = segment.attributes.iter().find_map(|a| match &a.value {
            AttributeValue::Text(text) if text.len() > ATTRIBUTE_BYTES_MAX => Some((a, text.len())),
            _ => None,
        });
        if let Some((attribute, bytes)) = long {
            let message = format!("attribute value of {bytes} bytes is over {ATTRIBUTE_BYTES_MAX}");
            return Err(place(Error::invalid(message)).with("attribute", &attribute.key));
        }
    }
    Ok(())
}
