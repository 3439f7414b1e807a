//! Reads the beginning of a journal file: two copies of its header (one in versions 1 and 2), each of which may be damaged.

use std::path::Path;

use super::format::{
    HEADER_BYTES, HEADERS_BYTES_MAX, Header, MAGIC, VERSION, VERSION_SINGLE, VERSION_WHOLE_LABELS,
    decode_one, find, version_bytes,
};
use super::search::{Search, Sound};
use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Front {
    /// The process died while it created the file. The file never had a record.
    Unborn,
    Sound {
        header: Header,
        version: u16,
        /// Position of the first record.
        bytes: usize,
    },
    /// One header copy is damaged, and `header` is the intact copy. If all copies are damaged, `header` is `None` and the
    /// file has records.
    Damaged { header: Option<Header>, version: u16, bytes: usize, why: String },
}

impl Front {
    pub const fn header(&self) -> Option<&Header> {
        match self {
            Self::Sound { header, .. } | Self::Damaged { header: Some(header), .. } => Some(header),
            Self::Unborn | Self::Damaged { header: None, .. } => None,
        }
    }

    /// Decodes the beginning of the journal file at `path`.
    ///
    /// # Errors
    /// `Version` for a newer version; `Corrupt` if no part shows that the file is a journal.
    pub fn decode(bytes: &[u8], path: &Path) -> Result<Self> {
        let why = match decode_one(bytes, path)? {
            Ok((header, version, one)) if version <= VERSION_SINGLE => {
                return Ok(Self::Sound { header, version, bytes: one });
            }
            Ok((header, version, one)) => match decode_one(bytes.get(one..).unwrap_or_default(), path)? {
                Ok((_, _, two)) => return Ok(Self::Sound { header, version, bytes: one + two }),
                Err(_) if bytes.len() <= 2 * one => return Ok(Self::Unborn),
                Err(why) => return Ok(Self::Damaged { header: Some(header), version, bytes: 2 * one, why }),
            },
            Err(why) => why,
        };
        if bytes.len() < HEADER_BYTES || bytes.iter().all(|byte| *byte == 0) {
            return Ok(Self::Unborn);
        }
        let second = find(bytes, &MAGIC, 1).filter(|at| *at <= HEADERS_BYTES_MAX / 2);
        if let Some(at) = second
            && let Ok((header, version, two)) = decode_one(bytes.get(at..).unwrap_or_default(), path)?
        {
            return Ok(Self::Damaged { header: Some(header), version, bytes: at + two, why });
        }
        let Some(Sound { at, .. }) = Search::new(bytes).next(0) else {
            // The file has a part of a header and no record. No record was lost, because none is acknowledged before the header
            // is on disk.
            if second.is_some() || bytes.starts_with(&MAGIC) {
                return Ok(Self::Unborn);
            }
            return Err(Error::corrupt(format!(
                "{why}, and no record can be read: move the file away to continue without it"
            ))
            .with("path", path.display()));
        };
        // Only version 1 (`VERSION_WHOLE_LABELS`) is treated differently, because the decoder of the current version 3 also
        // reads the batches of version 2. It reads their origins as one frame each.
        let version =
            if version_bytes(bytes) == VERSION_WHOLE_LABELS { VERSION_WHOLE_LABELS } else { VERSION };
        Ok(Self::Damaged { header: None, version, bytes: at, why })
    }
}
