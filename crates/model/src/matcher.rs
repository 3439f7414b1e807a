//! Which series does a matcher select?

use std::fmt;
use std::sync::Arc;

use crate::Labels;
use crate::pattern::{Candidates, Fault, Pattern, PatternBudget};

/// Comparison of a matcher; the four operators of PromQL.
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
    /// Whether the pattern is over the [`PatternBudget`] of its request. False if its syntax is wrong, or if this pattern alone
    /// is too costly.
    pub is_over_budget: bool,
}

impl MatcherError {
    fn new(label: &str, pattern: &str, fault: Fault) -> Self {
        let (cause, is_over_budget) = match fault {
            Fault::Syntax(cause) => (cause, false),
            Fault::Budget(cause) => (cause, true),
        };
        Self { label: label.into(), pattern: pattern.into(), cause, is_over_budget }
    }
}

/// A condition on one label. An absent label has the empty value. Patterns must match the whole value.
#[derive(Clone)]
pub struct Matcher {
    label: Box<str>,
    op: MatchOp,
    value: Box<str>,
    pattern: Option<Arc<Pattern>>,
}

impl Matcher {
    /// For matchers of stored deletions. No budget limits their patterns.
    pub fn new(label: &str, op: MatchOp, value: &str) -> Result<Self, MatcherError> {
        Self::new_within(label, op, value, &mut PatternBudget::unlimited())
    }

    /// For all other matchers. The patterns of one request share one budget.
    pub fn new_within(
        label: &str,
        op: MatchOp,
        value: &str,
        budget: &mut PatternBudget,
    ) -> Result<Self, MatcherError> {
        let pattern = match op {
            MatchOp::Equal | MatchOp::NotEqual => None,
            MatchOp::Regex | MatchOp::NotRegex => {
                Some(Pattern::new(value, budget).map_err(|fault| MatcherError::new(label, value, fault))?)
            }
        };
        Ok(Self { label: label.into(), op, value: value.into(), pattern })
    }

    /// For deletions that an earlier version stored. Their patterns have the syntax of the `regex` crate, where `\w` matches
    /// Unicode letters.
    pub fn new_as_before(label: &str, op: MatchOp, value: &str) -> Result<Self, MatcherError> {
        let pattern = match op {
            MatchOp::Equal | MatchOp::NotEqual => None,
            MatchOp::Regex | MatchOp::NotRegex => {
                Some(Pattern::as_before(value).map_err(|fault| MatcherError::new(label, value, fault))?)
            }
        };
        Ok(Self { label: label.into(), op, value: value.into(), pattern })
    }

    pub fn equal(label: &str, value: &str) -> Self {
        Self { label: label.into(), op: MatchOp::Equal, value: value.into(), pattern: None }
    }

    /// Approximate number of states of the compiled pattern. A state takes 60 to 250 bytes. 0 if nothing was compiled,
    /// as for a list of values.
    pub fn states(&self) -> u64 {
        self.pattern.as_ref().map_or(0, |pattern| pattern.cost)
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

    /// The values that the text or pattern can match. The comparison decides whether the matcher selects these values
    /// (`=`, `=~`) or excludes them (`!=`, `!~`).
    pub fn candidates(&self) -> Candidates {
        match &self.pattern {
            None => Candidates::Values(vec![self.value.to_string()]),
            Some(pattern) => pattern.candidates.clone(),
        }
    }

    pub fn matches_value(&self, value: &str) -> bool {
        let by_regex = || self.pattern.as_ref().is_some_and(|p| p.matches(value));
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
    fn patterns_are_anchored_and_an_absent_label_is_empty() {
        check(MatchOp::Equal, "a", "a", true);
        check(MatchOp::Equal, "", "", true);
        check(MatchOp::NotEqual, "a", "b", true);
        check(MatchOp::Regex, "a|b", "ab", false);
        check(MatchOp::Regex, "a.*", "a\nb", true);
        check(MatchOp::NotRegex, "a.*", "ba", true);
        check(MatchOp::Regex, ".+", "", false);
        let error = Matcher::new("l", MatchOp::Regex, "(").unwrap_err();
        assert_eq!(error.to_string(), "bad regular expression \"(\" for label \"l\": missing closing )");
    }

    #[test]
    fn only_compiled_patterns_have_states() {
        let states = |op, value: &str| Matcher::new("l", op, value).unwrap().states();
        assert_eq!(["a|b", ".*", ".+"].map(|value| states(MatchOp::Regex, value)), [0; 3]);
        assert_eq!(states(MatchOp::Equal, "a.*b"), 0);
        assert!(states(MatchOp::NotRegex, "a.*b") > 0 && states(MatchOp::Regex, "[^a]{500}") > 500);
        let before = |value| Matcher::new_as_before("l", MatchOp::Regex, value).unwrap().states();
        assert!([".*", "[^a]{500}", r"[a&&b]"].iter().all(|value| before(value) > 0));
    }

    #[test]
    fn patterns_have_candidates() {
        let check = |pattern: &str, expect: Candidates| {
            assert_eq!(Matcher::new("l", MatchOp::Regex, pattern).unwrap().candidates(), expect, "{pattern}");
        };
        let values = |list: &[&str]| Candidates::Values(list.iter().map(|v| (*v).to_owned()).collect());
        let prefix = |text: &str| Candidates::Prefix(text.to_owned());
        check(".*", Candidates::Everything);
        check(".+", Candidates::Something);
        check("", values(&[""]));
        check("a|bc|", values(&["a", "bc", ""]));
        check("host_(1|2)", values(&["host_1", "host_2"]));
        check("^a$", values(&["a"]));
        check("host_1.*", prefix("host_1"));
        check("ö(x|y.*)", prefix("ö"));
        check(".*x", prefix(""));
        check("(a|b).*", prefix(""));
        check("[a-z]{3}", prefix(""));
        assert!(Matcher::new("l", MatchOp::Regex, "a)|(b").is_err());
    }

    proptest::proptest! {
        #[test]
        fn every_match_is_a_candidate(pattern in r"(\(|\)|\||[ab.?*+^$]|\\b|\(\?i\)|ö){0,8}", value in "[abAö\n]{0,4}") {
            if let Ok(matcher) = Matcher::new("l", MatchOp::Regex, &pattern) {
                let matches = matcher.matches_value(&value);
                let text = crate::re2::translate(&pattern, true).unwrap().text;
                let compiled = regex::Regex::new(&format!("^(?s:{text})$")).unwrap();
                proptest::prop_assert_eq!(matches, compiled.is_match(&value), "{} {:?}", pattern, value);
                let candidate = match matcher.candidates() {
                    Candidates::Everything => { proptest::prop_assert!(matches); true }
                    Candidates::Something => { proptest::prop_assert_eq!(matches, !value.is_empty()); true }
                    Candidates::Prefix(prefix) => value.starts_with(&prefix),
                    Candidates::Values(values) => values.contains(&value),
                };
                proptest::prop_assert!(candidate || !matches, "{} {:?}", pattern, value);
            }
        }
    }
}
