//! Selecting series by their labels.

use std::fmt;

use regex::Regex;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;
use regex_syntax::hir::literal::Extractor;

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

/// Values that the text or pattern of a matcher can match: no other one does. Which of them do is still to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidates {
    /// All, the empty one included, and all of them match: `.*`.
    Everything,
    /// All but the empty one, and all of them match: `.+`.
    Something,
    /// Those that begin so.
    Prefix(String),
    /// These few.
    Values(Vec<String>),
}

/// One condition on one label. A label that is not there has the empty value. Patterns match the whole value.
#[derive(Clone)]
pub struct Matcher {
    label: Box<str>,
    op: MatchOp,
    value: Box<str>,
    pattern: Option<Pattern>,
}

#[derive(Clone)]
struct Pattern {
    /// `None` where the candidates are exactly what matches: compiling would take longer than all that follows.
    regex: Option<Regex>,
    candidates: Candidates,
}

/// Memory a compiled pattern may take, bytes: a hostile query must not take the server with it.
const REGEX_BYTES_MAX: usize = 1 << 20;

impl Matcher {
    pub fn new(label: &str, op: MatchOp, value: &str) -> Result<Self, MatcherError> {
        let pattern = match op {
            MatchOp::Equal | MatchOp::NotEqual => None,
            MatchOp::Regex | MatchOp::NotRegex => Some(Pattern::new(value).map_err(|e| MatcherError {
                label: label.into(),
                pattern: value.into(),
                cause: last_words(&e.to_string()),
            })?),
        };
        Ok(Self { label: label.into(), op, value: value.into(), pattern })
    }

    pub fn equal(label: &str, value: &str) -> Self {
        Self { label: label.into(), op: MatchOp::Equal, value: value.into(), pattern: None }
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

    /// What can be matched by what this matcher names, whether it wants that (`=`, `=~`) or not (`!=`, `!~`).
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

/// An error of syntax is told with the pattern and a pointer into it, on several lines: the last one says what is wrong.
fn last_words(error: &str) -> String {
    let last = error.lines().last().unwrap_or(error);
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

impl Pattern {
    fn new(value: &str) -> Result<Self, regex::Error> {
        // By itself: `a)|(b` must not end a group that anchors it.
        let mut parser = ParserBuilder::new().dot_matches_new_line(true).build();
        let tree = parser.parse(value).map_err(|e| regex::Error::Syntax(e.to_string()))?;
        let candidates = candidates(value, &tree);
        let exact = match candidates {
            Candidates::Everything | Candidates::Something => true,
            Candidates::Values(_) => tree.properties().look_set().is_empty(),
            Candidates::Prefix(_) => false,
        };
        let compile =
            || regex::RegexBuilder::new(&format!("^(?s:{value})$")).size_limit(REGEX_BYTES_MAX).build();
        let regex = if exact { None } else { Some(compile()?) };
        Ok(Self { regex, candidates })
    }

    fn matches(&self, value: &str) -> bool {
        match (&self.regex, &self.candidates) {
            (Some(regex), _) => regex.is_match(value),
            (None, Candidates::Everything) => true,
            (None, Candidates::Something) => !value.is_empty(),
            (None, Candidates::Values(values)) => values.iter().any(|known| known == value),
            (None, Candidates::Prefix(prefix)) => value.starts_with(prefix),
        }
    }
}

/// Literals that every match begins with, or is, as regex-syntax finds them; it ignores `^`, `$` and `\b`, which only
/// leave out more.
fn candidates(pattern: &str, tree: &Hir) -> Candidates {
    match pattern {
        ".*" => return Candidates::Everything,
        ".+" => return Candidates::Something,
        _ => {}
    }
    let anything = Candidates::Prefix(String::new());
    let begins = Extractor::new().extract(tree);
    if begins.is_exact() {
        let texts = begins.literals().unwrap_or_default().iter();
        let texts: Option<Vec<String>> =
            texts.map(|l| std::str::from_utf8(l.as_bytes()).ok().map(str::to_owned)).collect();
        return texts.map_or(anything, Candidates::Values);
    }
    let prefix = begins.longest_common_prefix().unwrap_or_default();
    // A literal that was cut to its limit may end within a character.
    let text = prefix.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    Candidates::Prefix(text.to_owned())
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
        assert_eq!(error.to_string(), "bad regular expression \"(\" for label \"l\": unclosed group");
    }

    #[test]
    fn patterns_say_what_they_can_match() {
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
        fn what_matches_is_a_candidate(pattern in r"(\(|\)|\||[ab.?*+^$]|\\b|\(\?i\)|ö){0,8}", value in "[abAö\n]{0,4}") {
            if let Ok(matcher) = Matcher::new("l", MatchOp::Regex, &pattern) {
                let matches = matcher.matches_value(&value);
                let compiled = Regex::new(&format!("^(?s:{pattern})$")).unwrap();
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
