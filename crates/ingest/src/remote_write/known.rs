//! Takes the samples of series that the store finds by the encoded bytes of their labels. No labels are made for these known
//! series.
//!
//! A series that is not plain (`read_plain`) gets labels, although the store may know it. All series after it get labels too,
//! because the store takes the samples of known series before all other samples of the message (`crate::known`).

use tacho_model::{FindSeries, KnownSamples, Sample, Spelling, Value, varint};

use super::{Content, HISTOGRAM, LABEL, NS_PER_MS, SAMPLE, next_field, read_sample};
use crate::budget::{Budget, Full};
use crate::known::{Known, SAMPLE_BYTES};
use crate::reader::Reader;

/// The first byte of an encoded label: field 1, bytes.
const LABEL_KEY: u8 = 1 << 3 | 2;

/// Samples of known series of one message, and the spellings of its other series.
#[derive(Default)]
pub(super) struct KnownMessages<'f> {
    /// `None` if the store is not asked for series.
    known: Option<Known<'f>>,
    /// The spelling of each series of the batch.
    spellings: Vec<Spelling>,
    /// The samples of the current series.
    plain: Vec<Sample>,
}

impl<'f> KnownMessages<'f> {
    pub(super) fn new(finder: &'f mut dyn FindSeries) -> Self {
        Self { known: Some(Known::new(finder)), ..Self::default() }
    }

    /// Takes the samples of an encoded series and returns `None`, if the series is known. Otherwise returns its spelling, or
    /// [`Spelling::NONE`] if the series is not plain or the store is not asked.
    pub(super) fn take(&mut self, message: &[u8], budget: &mut Budget) -> Result<Option<Spelling>, Full> {
        let Some(known) = &mut self.known else { return Ok(Some(Spelling::NONE)) };
        known.read(message.len());
        self.plain.clear();
        let labels =
            split(message).and_then(|(labels, rest)| read_plain(rest, &mut self.plain).map(|()| labels));
        let Some(labels) = labels else {
            known.end();
            return Ok(Some(Spelling::NONE));
        };
        let spelling = known.keys().labels(labels);
        let Some(series) = known.find(spelling, 0) else { return Ok(Some(spelling)) };
        budget.take_beyond(SAMPLE_BYTES * self.plain.len(), message.len())?;
        self.plain.iter().for_each(|sample| known.push(series, *sample));
        Ok(None)
    }

    /// Notes the spelling of a series that was added to the batch.
    pub(super) fn add(&mut self, spelling: Spelling) {
        if self.known.is_some() {
            self.spellings.push(spelling);
        }
    }

    pub(super) fn into_parts(self) -> (KnownSamples, Vec<Spelling>) {
        (self.known.map(Known::into_samples).unwrap_or_default(), self.spellings)
    }
}

/// Splits an encoded series into the labels at its front and all other bytes. `None` if no label is at the front, or a label is
/// malformed. The other bytes may contain further labels.
fn split(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = message;
    while let [LABEL_KEY, label @ ..] = rest {
        rest = label;
        let bytes = usize::try_from(varint::read(&mut rest).ok()?).ok()?;
        rest = rest.get(bytes..)?;
    }
    let labels = message.get(..message.len() - rest.len())?;
    (!labels.is_empty()).then_some((labels, rest))
}

/// Reads the samples. `None` if the series is not plain: it has a label after other fields, a histogram, a time that is out
/// of range, or an error.
fn read_plain(rest: &[u8], samples: &mut Vec<Sample>) -> Option<()> {
    let mut reader = Reader::new(rest);
    while let Some(field) = next_field(&mut reader).ok()? {
        match (field.number, field.content) {
            (SAMPLE, Content::Bytes(sample)) => {
                let (ms, value) = read_sample(sample).ok()?;
                samples.push(Sample { at: ms.checked_mul(NS_PER_MS)?, value: Value::F64(value) });
            }
            (LABEL | HISTOGRAM, _) => return None,
            _ => {}
        }
    }
    Some(())
}
