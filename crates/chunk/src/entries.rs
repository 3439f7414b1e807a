//! How are entries encoded? As columns of times, of forms (text or bytes) and of bodies, in the order of the entries.

use tacho_model::{Body, Entry, Kind, TimeRange, Timestamp};

use crate::builder::Builder;
use crate::columns::Columns;
use crate::limits::CHUNK_RECORDS_MAX;
use crate::{Encoding, Error, Header, Role, verify};

const TEXT: u64 = 0;
const BYTES: u64 = 1;

/// Encodes entries in order.
///
/// # Panics
/// If `entries` is empty or has more than [`CHUNK_RECORDS_MAX`].
pub fn encode_entries(entries: &[Entry], encoding: &Encoding) -> Vec<u8> {
    assert!(entries.len() <= CHUNK_RECORDS_MAX, "{} entries in one chunk", entries.len());
    let at: Vec<i64> = entries.iter().map(|entry| entry.at).collect();
    let forms: Vec<u64> = entries.iter().map(|entry| form(&entry.body)).collect();
    let bodies: Vec<&[u8]> = entries.iter().map(|entry| entry.body.as_bytes()).collect();

    let mut builder = Builder::new(encoding);
    builder.i64(Role::At, &at);
    builder.u64(Role::Form, &forms);
    builder.strings(Role::Body, &bodies);
    let bytes = builder.finish(Kind::Entry, entries.len(), range(&at), None);
    verify::entries(&bytes, entries);
    bytes
}

/// The range from the smallest to the largest time.
fn range(at: &[Timestamp]) -> TimeRange {
    let Some((first, rest)) = at.split_first() else { panic!("a chunk must have at least one record") };
    let wider = |range: TimeRange, at: &Timestamp| TimeRange::new(range.start.min(*at), range.end.max(*at));
    rest.iter().fold(TimeRange::new(*first, *first), wider)
}

const fn form(body: &Body) -> u64 {
    match body {
        Body::Text(_) => TEXT,
        Body::Bytes(_) => BYTES,
    }
}

/// Decodes the output of [`encode_entries`].
pub(crate) fn decode(header: &Header, mut columns: Columns<'_>) -> Result<Vec<Entry>, Error> {
    let at = columns.i64(Role::At, header.count)?;
    let forms = columns.u64(Role::Form, header.count)?;
    let bodies = columns.texts(Role::Body, header.count)?;
    columns.end()?;
    let entry = |((at, form), body): ((i64, u64), &[u8])| {
        let body = match form {
            TEXT => Body::Text(std::str::from_utf8(body).map_err(|_| Error::Utf8 { what: "text" })?.into()),
            BYTES => Body::Bytes(body.into()),
            other => return Err(Error::value("form of an entry", other)),
        };
        Ok(Entry { at, body })
    };
    at.into_iter().zip(forms).zip(bodies.iter()).map(entry).collect()
}
