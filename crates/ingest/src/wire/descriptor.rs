//! DICT, kind 4: how is a declared record type defined?
//!
//! Step before: `dict.rs`, which reads the definition. Step after: `declared.rs`, which decodes records with the
//! definition. The server lists the record type with its units.

use tacho_model::limits::LABEL_NAME_BYTES_MAX;
use tacho_model::varint::{put_bytes, put_varint};

use super::{RECORD_FIELDS_MAX, RECORD_UNIT_BYTES_MAX};
use crate::reader::{Flaw, Reader};

/// A declared record is stored as an entry whose text is a JSON object. If the record was written during a call, the object ends
/// with these two members, which identify the call.
pub(super) const TRACE_MEMBER: &str = "trace_id";
pub(super) const SPAN_MEMBER: &str = "span_id";

/// How the value of a field is encoded. The discriminants are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FieldType {
    Bool = 1,
    I64 = 2,
    F64 = 3,
    Text = 4,
    TextId = 5,
    Uuid = 6,
    U64 = 7,
    F32 = 8,
    Time = 9,
}

impl FieldType {
    pub const ALL: [Self; 9] = [
        Self::Bool,
        Self::I64,
        Self::F64,
        Self::Text,
        Self::TextId,
        Self::Uuid,
        Self::U64,
        Self::F32,
        Self::Time,
    ];

    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// The name of the type for readers of the record. Both encodings of a text have the same name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::Text | Self::TextId => "text",
            Self::Uuid => "uuid",
            Self::Time => "time",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordField {
    pub field_type: FieldType,
    pub name: Box<str>,
    /// Empty if the field has no unit.
    pub unit: Box<str>,
}

/// A declared record type: its name and its fields. Records have their values in the order of the fields.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordType {
    pub name: Box<str>,
    pub fields: Vec<RecordField>,
}

/// Why a record type is refused. Every record of a refused type is refused with this reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordTypeError {
    #[error("record type without a name")]
    NameEmpty,
    #[error(
        "the name of the record type has {bytes} bytes, at most {LABEL_NAME_BYTES_MAX} are allowed (begins {begins:?})"
    )]
    NameTooLong { bytes: usize, begins: String },
    #[error("record type {name:?} has {count} fields, at most {RECORD_FIELDS_MAX} are allowed")]
    TooManyFields { name: String, count: usize },
    /// `field` counts from 1.
    #[error("record type {name:?}: the name of field {field} is empty")]
    FieldEmpty { name: String, field: usize },
    /// `field` counts from 1.
    #[error(
        "record type {name:?}: the name of field {field} has {bytes} bytes, at most {LABEL_NAME_BYTES_MAX} are allowed"
    )]
    FieldTooLong { name: String, field: usize, bytes: usize },
    #[error("record type {name:?}: field {field:?} is given twice")]
    FieldTwice { name: String, field: String },
    #[error("record type {name:?}: a field may not be named {field:?}")]
    FieldReserved { name: String, field: String },
    #[error("record type {name:?}: type {value} of field {field:?} is unknown")]
    FieldType { name: String, field: String, value: u8 },
    #[error(
        "record type {name:?}: the unit of field {field:?} has {bytes} bytes, at most {RECORD_UNIT_BYTES_MAX} are allowed"
    )]
    UnitTooLong { name: String, field: String, bytes: usize },
}

/// A definition that was read but is not checked yet.
pub(super) struct Described<'a> {
    pub name: &'a str,
    /// Type, name and unit of each field.
    pub fields: Vec<(u8, &'a str, &'a str)>,
}

impl<'a> Described<'a> {
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, Flaw> {
        let name = reader.string()?;
        let count = reader.length()?;
        let mut fields = Vec::with_capacity(count.min(RECORD_FIELDS_MAX));
        for _ in 0..count {
            fields.push((reader.u8()?, reader.string()?, reader.string()?));
        }
        Ok(Self { name, fields })
    }

    pub fn strings(&self) -> impl Iterator<Item = &'a str> {
        let names = self.fields.iter().flat_map(|(_, name, unit)| [*name, *unit]);
        std::iter::once(self.name).chain(names)
    }

    pub fn check(&self) -> Result<RecordType, RecordTypeError> {
        if self.name.is_empty() {
            return Err(RecordTypeError::NameEmpty);
        }
        let bytes = self.name.len();
        if bytes > LABEL_NAME_BYTES_MAX {
            let begins = self.name.chars().take(32).collect();
            return Err(RecordTypeError::NameTooLong { bytes, begins });
        }
        let name = || self.name.to_owned();
        let count = self.fields.len();
        if count > RECORD_FIELDS_MAX {
            return Err(RecordTypeError::TooManyFields { name: name(), count });
        }
        let mut fields: Vec<RecordField> = Vec::with_capacity(count);
        for position in 0..count {
            fields.push(self.field(position, &fields)?);
        }
        Ok(RecordType { name: self.name.into(), fields })
    }

    fn field(&self, position: usize, before: &[RecordField]) -> Result<RecordField, RecordTypeError> {
        let (value, text, unit) = self.fields.get(position).copied().unwrap_or_default();
        let (name, field) = (self.name.to_owned(), text.to_owned());
        if text.is_empty() {
            return Err(RecordTypeError::FieldEmpty { name, field: position + 1 });
        }
        if text.len() > LABEL_NAME_BYTES_MAX {
            return Err(RecordTypeError::FieldTooLong { name, field: position + 1, bytes: text.len() });
        }
        if text == TRACE_MEMBER || text == SPAN_MEMBER {
            return Err(RecordTypeError::FieldReserved { name, field });
        }
        if before.iter().any(|other| *other.name == *text) {
            return Err(RecordTypeError::FieldTwice { name, field });
        }
        if unit.len() > RECORD_UNIT_BYTES_MAX {
            return Err(RecordTypeError::UnitTooLong { name, field, bytes: unit.len() });
        }
        let Some(field_type) = FieldType::from_byte(value) else {
            return Err(RecordTypeError::FieldType { name, field, value });
        };
        Ok(RecordField { field_type, name: text.into(), unit: unit.into() })
    }
}

/// The inverse of [`Described::read`].
pub(super) fn put(out: &mut Vec<u8>, record_type: &RecordType) {
    put_bytes(out, record_type.name.as_bytes());
    put_varint(out, record_type.fields.len() as u64);
    for field in &record_type.fields {
        out.push(field.field_type as u8);
        put_bytes(out, field.name.as_bytes());
        put_bytes(out, field.unit.as_bytes());
    }
}
