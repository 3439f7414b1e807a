//! A form of a record type (its fields, as a service declares them), and the limits on forms.

use std::sync::Arc;

use tacho_ingest::wire::RecordType;
use tacho_model::Timestamp;

/// Limit on the forms of all services together. At the limit, a new form replaces an expired form, or a form of the service with
/// most forms. If neither is possible, the new form is counted as refused, but the records with this form are stored.
pub(super) const FORMS_MAX: usize = 1_000;
/// Limit on the total bytes of the names and units of all forms. A typical form takes a few hundred bytes.
pub(super) const FORM_BYTES_MAX: usize = 4 << 20;

/// The fields of a record type in one service. If versions of a program declare different fields for a type, the type has
/// several forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    pub record_type: Arc<RecordType>,
    pub service: Arc<str>,
    pub since: Timestamp,
    pub seen: Timestamp,
}

pub(super) type Key = (Arc<str>, Arc<RecordType>);

/// The bytes that count for [`FORM_BYTES_MAX`].
pub(super) fn bytes_of((service, record_type): &Key) -> usize {
    let fields: usize = record_type.fields.iter().map(|field| field.name.len() + field.unit.len()).sum();
    service.len() + record_type.name.len() + fields
}
