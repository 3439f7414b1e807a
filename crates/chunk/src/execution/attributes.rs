//! How are attributes stored? Many segments have attributes with the same calls, keys and forms. A [`Layout`] stores these once,
//! without the values. A UUID is stored as 16 bytes instead of 36 characters.

use std::fmt;
use std::sync::Arc;

use tacho_model::AttributeValue;

/// The attributes of a segment without their values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Layout(pub(super) Vec<Slot>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slot {
    /// Number of the call in its segment, counted over all parts.
    pub(super) call: u32,
    pub(super) key: u32,
    pub(super) form: Form,
}

/// The discriminants are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Form {
    Text = 0,
    Integer = 1,
    Id = 2,
}

impl Form {
    pub(super) const ALL: [Self; 3] = [Self::Text, Self::Integer, Self::Id];
}

/// Limit on keys with their own columns. Further keys share the columns of the last key, so that hostile keys cannot cause many
/// columns.
const KEY_COLUMNS_MAX: u32 = 1_024;

impl Slot {
    /// Index of the columns that store the value.
    pub(super) fn column(&self) -> usize {
        self.key.min(KEY_COLUMNS_MAX - 1) as usize
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttributeData {
    Text(Arc<str>),
    Integer(i64),
    /// A text that is a UUID in lower case with hyphens: the first and the last eight bytes of the UUID.
    Id([u64; 2]),
}

impl AttributeData {
    pub(super) const fn form(&self) -> Form {
        match self {
            Self::Text(_) => Form::Text,
            Self::Integer(_) => Form::Integer,
            Self::Id(_) => Form::Id,
        }
    }

    /// A text that is a UUID becomes [`Self::Id`].
    pub fn new(value: &AttributeValue) -> Self {
        match value {
            AttributeValue::Integer(number) => Self::Integer(*number),
            AttributeValue::Text(text) => {
                parse_id(text).map_or_else(|| Self::Text(Arc::clone(text)), Self::Id)
            }
        }
    }

    pub fn to_value(&self) -> AttributeValue {
        match self {
            Self::Text(text) => AttributeValue::Text(Arc::clone(text)),
            Self::Integer(number) => AttributeValue::Integer(*number),
            Self::Id(_) => AttributeValue::Text(self.to_string().into()),
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        if let Self::Text(text) = self { text.len() + 16 } else { 0 }
    }
}

impl fmt::Display for AttributeData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(number) => number.fmt(f),
            Self::Id([high, low]) => {
                let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xffff);
                write!(f, "{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttributeRef<'a> {
    /// Number of the call in its segment; see [`RowRef::call_number`](super::RowRef::call_number).
    pub call: u32,
    pub key: &'a Arc<str>,
    pub value: &'a AttributeData,
}

/// The two halves of a UUID (RFC 9562) in lower case with hyphens; `None` for any other text.
pub(crate) fn parse_id(text: &str) -> Option<[u64; 2]> {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    if text.len() != 36 {
        return None;
    }
    let mut id = 0u128;
    for (at, byte) in text.bytes().enumerate() {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'-' if HYPHENS.contains(&at) => continue,
            _ => return None,
        };
        if HYPHENS.contains(&at) {
            return None;
        }
        id = id << 4 | u128::from(digit);
    }
    let (high, low) = (id >> 64, id & u128::from(u64::MAX));
    Some([u64::try_from(high).ok()?, u64::try_from(low).ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a text gets this form, and is displayed and restored unchanged.
    fn check(text: &str, form: Form) {
        let data = AttributeData::new(&AttributeValue::Text(text.into()));
        assert_eq!((data.form(), data.to_string().as_str()), (form, text));
        assert_eq!(data.to_value(), AttributeValue::Text(text.into()));
    }

    #[test]
    fn only_a_lower_case_uuid_is_an_id() {
        check("0123abcd-4567-89ef-0123-456789abcdef", Form::Id);
        check("ffffffff-ffff-ffff-ffff-ffffffffffff", Form::Id);
        check("00000000-0000-0000-0000-000000000000", Form::Id);
        check("0123ABCD-4567-89ef-0123-456789abcdef", Form::Text);
        check("0123abcd04567-89ef-0123-456789abcdef", Form::Text);
        check("0123abcd-4567-89ef-0123-45678-abcdef", Form::Text);
        check("0123abcd-4567-89ef-0123-456789abcde", Form::Text);
        check("größer--4567-89ef-0123-456789abcdef", Form::Text);
        check("", Form::Text);
    }
}
