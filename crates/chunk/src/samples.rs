//! How are the samples of one series read from a chunk? A chunk of samples of version 1, which is no longer written, has one
//! series with times in any order. Of a chunk of version 2, only the first member is read.

use tacho_model::{Sample, Timestamp, ValueType};

use crate::codec::Part;
use crate::group;
use crate::header::TimesForm;
use crate::values::ValueColumn;
use crate::{Error, Header};

/// The samples of one series. `at[i]` is the time of `values.get(i)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleColumns {
    pub at: Vec<Timestamp>,
    pub values: ValueColumn,
}

impl SampleColumns {
    pub fn iter(&self) -> impl Iterator<Item = Sample> {
        self.at.iter().zip(self.values.iter()).map(|(at, value)| Sample { at: *at, value })
    }
}

pub(crate) fn decode(header: &Header, body: &[u8]) -> Result<SampleColumns, Error> {
    let Some(info) = header.members.first() else { return Err(Error::value("members", 0u8)) };
    let at = match &header.times {
        Some(TimesForm::Stored(stored)) if stored.checksum.is_none() => {
            let words = group::column(1, stored, body, &Part::whole(header.count), ValueType::I64)?;
            words.into_iter().map(u64::cast_signed).collect()
        }
        _ => group::times(header, body)?.to_vec(),
    };
    Ok(SampleColumns { at, values: group::values(header, info, body, 0..header.count)? })
}
