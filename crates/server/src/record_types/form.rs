//! What is one form of a record type, and how many are kept?

use std::sync::Arc;

use tacho_ingest::wire::RecordType;
use tacho_model::Timestamp;

/// Limit on the forms, over all services. New ones above it are only counted; their records are kept.
pub(super) const FORMS_MAX: usize = 1_000;
/// Limit on the bytes of the names and units of all forms. Typical forms take some hundred bytes.
pub(super) const FORM_BYTES_MAX: usize = 4 << 20;

/// One form of one type in one service. A type that changed with the version of a program has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    pub record_type: Arc<RecordType>,
    pub service: Arc<str>,
    /// Times of the first and the last definition.
    pub since: Timestamp,
    pub seen: Timestamp,
}

/// A form without its times.
pub(super) type Key = (Arc<str>, Arc<RecordType>);

/// Size of a form in the limit.
pub(super) fn bytes_of((service, record_type): &Key) -> usize {
    let fields: usize = record_type.fields.iter().map(|field| field.name.len() + field.unit.len()).sum();
    service.len() + record_type.name.len() + fields
}
