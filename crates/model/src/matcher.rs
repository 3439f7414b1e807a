//! Selecting series by their labels.

use std::fmt;

use regex::Regex;

use crate::Labels;

/// How a matcher compares; the four operators of PromQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchOp {
    Equal,
    NotEqual,
    Regex,
    NotRegex,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bad regular expression {pattern:?} for label {label:?}: {cause}")]
pub struct MatcherError {
    pub label: String,
    pub pattern: String,
    pub cause: String,
}

/// One condition on one label. A label that is not there has the empty value. Patterns match the whole value.
#[derive(Clone)]
pub struct Matcher {
    label: Box<str>,
    op: MatchOp,
    value: Box<str>,
    regex: Option<Regex>,
}

/// Memory a compiled pattern may take, bytes: a hostile query must not take the server with it.
const REGEX_BYTES_MAX: usize = 1 << 20;

impl Matcher {
    pub fn new(label: &str, op: MatchOp, value: &str) -> Result<Self, MatcherError> {
        let regex = match op {
            MatchOp::Equal | MatchOp::NotEqual => None,
            MatchOp::Regex | MatchOp::NotRegex => Some(
                regex::RegexBuilder::new(&format!("^(?s:{value})$"))
                    .size_limit(REGEX_BYTES_MAX)
                    .build()
                    .map_err(|e| MatcherError {
                        label: label.into(),
                        pattern: value.into(),
                        cause: e.to_string(),
                    })?,
            ),
        };
        Ok(Self { label: label.into(), op, value: value.into(), regex })
    }

    pub fn equal(label: &str, value: &str) -> Self {
        Self { label: label.into(), op: MatchOp::Equal, value: value.into(), regex: None }
    }

    pub fn label(&self) -> &str {
        &self.label
    }

    pub const fn op(&self) -> MatchOp {
        self.op
    }

    pub fn value(&self) -> &str {
        &self.value
    }

    pub fn matches_value(&self, value: &str) -> bool {
        let by_regex = || self.regex.as_ref().is_some_and(|r| r.is_match(value));
        match self.op {
            MatchOp::Equal => *self.value == *value,
            MatchOp::NotEqual => *self.value != *value,
            MatchOp::Regex => by_regex(),
            MatchOp::NotRegex => !by_regex(),
        }
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        self.matches_value(labels.get(&self.label).unwrap_or(""))
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = match self.op {
            MatchOp::Equal => "=",
            MatchOp::NotEqual => "!=",
            MatchOp::Regex => "=~",
            MatchOp::NotRegex => "!~",
        };
        write!(f, "{}{op}{:?}", self.label, self.value)
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        self.label == other.label && self.op == other.op && self.value == other.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(op: MatchOp, pattern: &str, value: &str, expect: bool) {
        let labels = Labels::new([("l", value)]).unwrap();
        assert_eq!(
            Matcher::new("l", op, pattern).unwrap().matches(&labels),
            expect,
            "{op:?} {pattern} {value}"
        );
    }

    #[test]
    fn patterns_are_anchored_and_absent_is_empty() {
        check(MatchOp::Equal, "a", "a", true);
        check(MatchOp::Equal, "", "", true);
        check(MatchOp::NotEqual, "a", "b", true);
        check(MatchOp::Regex, "a|b", "ab", false);
        check(MatchOp::Regex, "a.*", "a\nb", true);
        check(MatchOp::NotRegex, "a.*", "ba", true);
        check(MatchOp::Regex, ".+", "", false);
        let error = Matcher::new("l", MatchOp::Regex, "(").unwrap_err();
        assert!(error.to_string().starts_with("bad regular expression \"(\" for label \"l\""), "{error}");
    }
}
