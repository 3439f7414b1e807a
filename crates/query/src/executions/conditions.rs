//! Which calls does a search find by their names and attributes? Operation, service, time, duration and outcome of the call are
//! in `source.rs` and `search.rs`.

use tacho_chunk::{AttributeData, HTTP_STATUS, REQUEST_ID, RowRef, is_refused};
use tacho_model::{AttributeValue, Operation, OperationKind};

/// Agents record exceptions in this attribute: `class`, `class: message` or `class (code)`.
const EXCEPTION: &str = "exception";

/// Conditions that one call must meet together.
#[derive(Clone, Debug, Default, PartialEq, Hash)]
pub struct Conditions {
    /// A part of the name of the operation. ASCII letters match in both cases.
    pub text: Option<String>,
    /// At most 64, because a call meets a set of them that is a `u64`.
    pub attributes: Vec<AttributeTest>,
}

impl Conditions {
    pub const NONE: Self = Self { text: None, attributes: Vec::new() };

    pub fn is_empty(&self) -> bool {
        self.text.is_none() && self.attributes.is_empty()
    }

    pub(super) fn takes_operation(&self, operation: &Operation) -> bool {
        let is_http = || matches!(operation.kind, OperationKind::HttpServer | OperationKind::HttpClient);
        self.text.as_deref().is_none_or(|text| contains(&operation.name, text))
            && (self.statuses().next().is_none() || is_http())
    }

    pub(super) fn statuses(&self) -> impl Iterator<Item = Statuses> {
        self.attributes.iter().filter_map(|test| match test.wanted {
            Wanted::Status(statuses) => Some(statuses),
            Wanted::Value(..) | Wanted::Exception(_) => None,
        })
    }

    /// Whether there are conditions on other attributes than the status.
    pub(super) fn has_others(&self) -> bool {
        self.statuses().count() < self.attributes.len()
    }

    /// The test that a search makes first. Only calls that pass it are examined further, and only chunks with such a call are
    /// decoded. Exceptions and values of other attributes are usually rarer than statuses.
    pub(super) fn first_test(&self) -> Option<&AttributeTest> {
        self.attributes.iter().min_by_key(|test| match test.wanted {
            Wanted::Exception(_) => 0,
            Wanted::Value(..) => 1,
            Wanted::Status(_) => 2,
        })
    }

    /// The tests that attributes of the call with this number pass in this row: bit `n` for test `n`.
    pub(super) fn passed(&self, row: RowRef<'_>, call: u32) -> u64 {
        let mut passed = 0;
        for attribute in row.attributes().filter(|attribute| attribute.call == call) {
            let tests = self.attributes.iter().enumerate();
            let taken = tests.filter(|(_, test)| test.takes(attribute.key, attribute.value));
            passed |= taken.fold(0, |bits, (n, _)| bits | 1 << n);
        }
        passed
    }

    /// Whether these bits of [`Self::passed`] are all tests.
    pub(super) fn are_all(&self, passed: u64) -> bool {
        passed.count_ones() as usize == self.attributes.len()
    }
}

fn contains(name: &str, text: &str) -> bool {
    let mut windows = name.as_bytes().windows(text.len().max(1));
    text.is_empty() || windows.any(|part| part.eq_ignore_ascii_case(text.as_bytes()))
}

/// A condition on an attribute of a call.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct AttributeTest {
    key: String,
    wanted: Wanted,
}

#[derive(Clone, Debug, PartialEq, Hash)]
enum Wanted {
    /// The value as text. An integer is equal to its decimal text.
    Value(AttributeData, Option<i64>),
    Status(Statuses),
    /// The class of the exception, whole or without its package.
    Exception(String),
}

impl AttributeTest {
    /// The attribute `key` has this value as text.
    pub fn equal(key: &str, value: &str) -> Self {
        let number = value.parse::<i64>().ok().filter(|number| number.to_string() == value);
        let text = AttributeData::new(&AttributeValue::Text(value.into()));
        Self { key: key.to_owned(), wanted: Wanted::Value(text, number) }
    }

    pub(super) fn request(id: &str) -> Self {
        Self::equal(REQUEST_ID, id)
    }

    pub fn status(statuses: Statuses) -> Self {
        Self { key: HTTP_STATUS.to_owned(), wanted: Wanted::Status(statuses) }
    }

    /// An exception of this class, for example `java.lang.IllegalStateException` or `IllegalStateException`. `None` if the text
    /// has more than a class.
    pub fn exception(class: &str) -> Option<Self> {
        let wanted = || Wanted::Exception(class.to_owned());
        (class_of(class) == class).then(|| Self { key: EXCEPTION.to_owned(), wanted: wanted() })
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether the value of an attribute with this key passes the test.
    pub fn accepts(&self, value: &AttributeData) -> bool {
        match (&self.wanted, value) {
            (Wanted::Value(_, number), AttributeData::Integer(value)) => *number == Some(*value),
            (Wanted::Value(text, _), value) => text == value,
            (Wanted::Status(statuses), AttributeData::Integer(status)) => statuses.contain(*status),
            (Wanted::Exception(class), AttributeData::Text(text)) => is_of_class(text, class),
            (Wanted::Status(_) | Wanted::Exception(_), _) => false,
        }
    }

    pub(super) fn takes(&self, key: &str, value: &AttributeData) -> bool {
        *key == *self.key && self.accepts(value)
    }

    /// The wanted value as text, if the test is about one value.
    pub(super) fn value(&self) -> Option<AttributeData> {
        match &self.wanted {
            Wanted::Value(text, _) => Some(text.clone()),
            Wanted::Status(_) | Wanted::Exception(_) => None,
        }
    }
}

fn class_of(exception: &str) -> &str {
    let word = exception.split(' ').next().unwrap_or_default();
    word.strip_suffix(':').unwrap_or(word)
}

fn is_of_class(exception: &str, class: &str) -> bool {
    class_of(exception)
        .strip_suffix(class)
        .is_some_and(|package| package.is_empty() || package.ends_with(['.', ':', '\\']))
}

/// Statuses of HTTP: one, or a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Statuses {
    first: i64,
    last: i64,
}

impl Statuses {
    /// `503`, or `5xx` for all from 500 to 599. A number has three digits.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(class) = text.strip_suffix("xx") {
            let class =
                class.parse::<i64>().ok().filter(|class| (1..=5).contains(class) && text.len() == 3)?;
            return Some(Self { first: class * 100, last: class * 100 + 99 });
        }
        let is_number = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        let status = text.parse().ok().filter(|status| is_number && *status >= 100)?;
        Some(Self { first: status, last: status })
    }

    pub(super) const fn contain(self, status: i64) -> bool {
        self.first <= status && status <= self.last
    }

    /// Whether all of them are counted as refused.
    pub(super) const fn are_refused(self) -> bool {
        is_refused(self.first) && is_refused(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_a_number_or_a_class() {
        for (text, expected) in [
            ("503", Some((503, 503))),
            ("5xx", Some((500, 599))),
            ("1xx", Some((100, 199))),
            ("999", Some((999, 999))),
            ("99", None),
            ("1000", None),
            ("0503", None),
            ("099", None),
            ("6xx", None),
            ("0xx", None),
            ("+5xx", None),
            ("05xx", None),
            ("xx", None),
            ("5XX", None),
            ("+503", None),
            ("-1", None),
            ("", None),
            ("5.0", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(Statuses::parse(text).map(|s| (s.first, s.last)), expected, "{text}");
        }
    }

    #[test]
    fn values_are_compared_as_text() {
        let id = "0123abcd-4567-89ef-0123-456789abcdef";
        let text = |text: &str| AttributeData::new(&AttributeValue::Text(text.into()));
        for (wanted, value, expected) in [
            ("7", AttributeData::Integer(7), true),
            ("-7", AttributeData::Integer(-7), true),
            ("07", AttributeData::Integer(7), false),
            ("+7", AttributeData::Integer(7), false),
            ("7", text("7"), true),
            ("07", text("07"), true),
            ("07", text("7"), false),
            (id, text(id), true),
            (&id.to_uppercase(), text(id), false),
            ("", text(""), true),
            ("a", text("ab"), false),
        ] {
            assert_eq!(AttributeTest::equal("k", wanted).accepts(&value), expected, "{wanted} {value}");
        }
        assert!(!AttributeTest::equal("k", "7").takes("other", &AttributeData::Integer(7)));
    }

    #[test]
    fn an_exception_has_a_class_with_or_without_its_package() {
        for (exception, class, expected) in [
            ("java.sql.SQLTimeoutException: no connection", "java.sql.SQLTimeoutException", true),
            ("java.sql.SQLTimeoutException: no connection", "SQLTimeoutException", true),
            ("java.sql.SQLTimeoutException: no connection", "TimeoutException", false),
            ("java.sql.SQLTimeoutException (08001)", "SQLTimeoutException", true),
            ("std::out_of_range: at 7", "std::out_of_range", true),
            ("std::out_of_range: at 7", "out_of_range", true),
            ("Shop\\Refused: full", "Refused", true),
            ("KeyError", "KeyError", true),
            ("KeyError", "", false),
            ("KeyError", "keyerror", false),
            ("", "KeyError", false),
        ] {
            let value = AttributeData::Text(exception.into());
            let test = AttributeTest::exception(class).unwrap();
            assert_eq!(test.accepts(&value), expected, "{exception} {class}");
        }
        for more in ["SQLTimeoutException: no connection", "SQLTimeoutException (08001)", "no connection"] {
            assert_eq!(AttributeTest::exception(more), None, "{more}");
        }
    }

    #[test]
    fn a_text_is_a_part_of_a_name_in_any_case() {
        for (name, text, expected) in [
            ("SELECT * FROM ad", "from AD", true),
            ("SELECT * FROM ad", "SELECT * FROM ad", true),
            ("SELECT * FROM ad", "SELECT * FROM ads", false),
            ("größe", "GRö", true),
            ("größe", "GRÖ", false),
            ("", "a", false),
            ("a", "", true),
        ] {
            assert_eq!(contains(name, text), expected, "{name} {text}");
        }
    }
}
