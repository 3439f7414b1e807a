//! How is a pattern compiled, what does compiling cost, and how often is a pattern compiled?
//!
//! Compiling takes up to about ten milliseconds. Therefore each request has a [`PatternBudget`], and recently compiled
//! patterns are cached.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use regex::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;
use regex_syntax::hir::literal::Extractor;

use crate::re2::{Translated, translate};

/// Limits on the memory in bytes of a compiled pattern and of the automata that it builds while it is used. They prevent a
/// hostile query from exhausting the server's memory.
const REGEX_BYTES_MAX: usize = 1 << 20;
const AUTOMATON_BYTES_MAX: usize = 1 << 18;

/// Limits on the cache of compiled patterns: their number and their total cost (approximate number of states, `re2.rs`).
const KEPT_MAX: usize = 64;
const KEPT_COST_MAX: u64 = 50_000;

/// The values that the text or pattern of a matcher can match. With `Prefix` and `Values`, each candidate must still be
/// tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidates {
    /// All values, including the empty one. Every value matches: `.*`.
    Everything,
    /// All values except the empty one. Every such value matches: `.+`.
    Something,
    /// Values with this prefix.
    Prefix(String),
    Values(Vec<String>),
}

/// The number of patterns and the total cost that the patterns of one request may still have.
#[derive(Clone, Debug)]
pub struct PatternBudget {
    patterns: usize,
    pub(crate) cost: u64,
}

impl PatternBudget {
    /// Limit on the number of patterns of one request. Each pattern also takes time for every value of its label.
    pub const PATTERNS_MAX: usize = 64;
    /// Limit on the approximate number of states of the automata that are built for one request. Building one state takes a
    /// microsecond. An automaton from the cache does not count.
    pub const COST_MAX: u64 = 200_000;

    /// For stored deletions.
    pub const fn unlimited() -> Self {
        Self { patterns: usize::MAX, cost: u64::MAX }
    }

    /// Takes one pattern and the cost of a [`Rewrite`] from the budget. The rewrite is compiled later, and only if there are
    /// series to rewrite. An invalid pattern has cost 0 here, and its error is reported when it is compiled.
    ///
    /// # Errors
    /// If the number or the cost of the patterns exceeds its limit; the error names the limit.
    pub fn take_rewrite(&mut self, pattern: &str) -> Result<(), String> {
        let cost = Rewrite::translated(pattern).map_or(0, |translated| translated.cost);
        let taken = self.take_one().and_then(|()| self.take_cost(cost));
        taken.map_err(|(Fault::Syntax(cause) | Fault::Budget(cause))| cause)
    }

    fn take_one(&mut self) -> Result<(), Fault> {
        self.patterns = self.patterns.checked_sub(1).ok_or_else(|| {
            Fault::Budget(format!("the request has more than {} patterns", Self::PATTERNS_MAX))
        })?;
        Ok(())
    }

    fn take_cost(&mut self, cost: u64) -> Result<(), Fault> {
        self.cost = self.cost.checked_sub(cost).ok_or_else(|| {
            Fault::Budget(format!("the patterns of the request need more than {} states", Self::COST_MAX))
        })?;
        Ok(())
    }
}

impl Default for PatternBudget {
    fn default() -> Self {
        Self { patterns: Self::PATTERNS_MAX, cost: Self::COST_MAX }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Syntax(String),
    Budget(String),
}

/// A pattern that matches whole values, as in matchers of Prometheus.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// `None` if the candidates are known to be exactly the matches. No automaton is needed then, and compiling one would take
    /// longer than all later work.
    regex: Option<Regex>,
    pub(crate) candidates: Candidates,
    /// Approximate number of states of the automaton; above 0 if there is one.
    pub(crate) cost: u64,
}

impl Pattern {
    pub(crate) fn new(value: &str, budget: &mut PatternBudget) -> Result<Arc<Self>, Fault> {
        budget.take_one()?;
        if let Some(known) = kept(value) {
            return Ok(known);
        }
        // The pattern is parsed before the anchoring group is added, because `a)|(b` must not close this group.
        let Translated { text, cost, .. } = translate(value, true).map_err(Fault::Syntax)?;
        let mut parser = ParserBuilder::new().dot_matches_new_line(true).build();
        let tree = parser.parse(&text).map_err(|e| Fault::Syntax(last_words(&e.to_string())))?;
        let candidates = candidates(value, &tree);
        let exact = match candidates {
            Candidates::Everything | Candidates::Something => true,
            Candidates::Values(_) => tree.properties().look_set().is_empty(),
            Candidates::Prefix(_) => false,
        };
        if exact {
            return Ok(Arc::new(Self { regex: None, candidates, cost: 0 }));
        }
        budget.take_cost(cost)?;
        let regex = Some(compile(&format!("^(?s:{text})$")).map_err(Fault::Syntax)?);
        let pattern = Arc::new(Self { regex, candidates, cost });
        keep(value, &pattern);
        Ok(pattern)
    }

    /// Compiles with the syntax of the `regex` crate. Deletions that earlier versions stored on disk have this syntax.
    pub(crate) fn as_before(value: &str) -> Result<Arc<Self>, Fault> {
        let regex = compile(&format!("^(?s:{value})$")).map_err(Fault::Syntax)?;
        let candidates = Candidates::Prefix(String::new());
        // The cost is computed with the current syntax, if the pattern is valid in it.
        let cost = translate(value, true).map_or(1, |today| today.cost);
        Ok(Arc::new(Self { regex: Some(regex), candidates, cost }))
    }

    pub(crate) fn matches(&self, value: &str) -> bool {
        match (&self.regex, &self.candidates) {
            (Some(regex), _) => regex.is_match(value),
            (None, Candidates::Everything) => true,
            (None, Candidates::Something) => !value.is_empty(),
            (None, Candidates::Values(values)) => values.iter().any(|known| known == value),
            (None, Candidates::Prefix(prefix)) => value.starts_with(prefix),
        }
    }
}

fn compile(text: &str) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(text);
    builder.size_limit(REGEX_BYTES_MAX).dfa_size_limit(AUTOMATON_BYTES_MAX);
    builder.build().map_err(|e| last_words(&e.to_string()))
}

/// The `regex` crate reports a syntax error on several lines: the pattern, a pointer into it, and the message on the
/// last line.
fn last_words(error: &str) -> String {
    let last = error.lines().last().unwrap_or(error);
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// Finds the texts of all matches, or else a prefix that all matches have. The `Extractor` of regex-syntax ignores `^`, `$` and
/// `\b`, because these only exclude more values.
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
    // The prefix may end within a character: the extractor truncates long literals, and characters may have a common first byte.
    let text = prefix.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    Candidates::Prefix(text.to_owned())
}

/// Recently compiled patterns; the most recently used pattern is at the end.
static KEPT: Mutex<VecDeque<(Box<str>, Arc<Pattern>)>> = Mutex::new(VecDeque::new());

fn kept(value: &str) -> Option<Arc<Pattern>> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let found = kept.iter().position(|(text, _)| **text == *value)?;
    let entry = kept.remove(found)?;
    let pattern = entry.1.clone();
    kept.push_back(entry);
    Some(pattern)
}

fn keep(value: &str, pattern: &Arc<Pattern>) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push_back((value.into(), pattern.clone()));
    let mut cost: u64 = kept.iter().map(|(_, pattern)| pattern.cost).sum();
    while kept.len() > KEPT_MAX || cost > KEPT_COST_MAX {
        let Some((_, oldest)) = kept.pop_front() else { return };
        cost -= oldest.cost;
    }
}

/// The pattern of `label_replace`. [`Rewrite::apply`] takes the replacement. Both have the syntax of Go.
#[derive(Debug)]
pub struct Rewrite {
    regex: Regex,
    names: Vec<(String, usize)>,
}

impl Rewrite {
    /// Compiles a pattern that must match the whole text.
    ///
    /// # Errors
    /// If the pattern is invalid or too costly.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let Translated { text, names, .. } = Self::translated(pattern)?;
        Ok(Self { regex: compile(&text)?, names })
    }

    fn translated(pattern: &str) -> Result<Translated, String> {
        translate(&format!("^(?s:{pattern})$"), false)
    }

    /// Returns `template` with `$1`, `${1}`, `$name` and `${name}` replaced by the groups; `None` if the pattern does
    /// not match. If the result exceeds `bytes_max`, the error is the number of bytes written so far. The limit is needed
    /// because a template may have thousands of references to a long text.
    pub fn apply(&self, value: &str, template: &str, bytes_max: usize) -> Option<Result<String, usize>> {
        let found = self.regex.captures(value)?;
        let group = |name: &str| {
            let text = match name.parse::<usize>() {
                Ok(number) if name == "0" || !name.starts_with('0') => found.get(number),
                // Several groups may have the same name; the first group that matched is used.
                _ => self.names.iter().filter(|(known, _)| known == name).find_map(|(_, n)| found.get(*n)),
            };
            text.map_or("", |text| text.as_str())
        };
        let (mut out, mut rest) = (String::new(), template);
        while let Some((before, behind)) = rest.split_once('$') {
            if out.len() > bytes_max {
                return Some(Err(out.len()));
            }
            out.push_str(before);
            rest = behind;
            if let Some(behind) = rest.strip_prefix('$') {
                out.push('$');
                rest = behind;
            } else if let Some((name, behind)) = reference(rest) {
                out.push_str(group(name));
                rest = behind;
            } else {
                out.push('$');
            }
        }
        out.push_str(rest);
        Some(if out.len() > bytes_max { Err(out.len()) } else { Ok(out) })
    }
}

/// The group name at the start of a text, with or without braces, and the rest of the text.
fn reference(text: &str) -> Option<(&str, &str)> {
    let (braced, inner) = text.strip_prefix('{').map_or((false, text), |inner| (true, inner));
    let is_name = |c: char| c == '_' || c.is_alphanumeric();
    let end = inner.find(|c| !is_name(c)).unwrap_or(inner.len());
    let (name, behind) = inner.split_at(end);
    if name.is_empty() {
        return None;
    }
    if braced { Some((name, behind.strip_prefix('}')?)) } else { Some((name, behind)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_a_request_are_limited_in_number_and_cost() {
        let mut budget = PatternBudget::default();
        for nth in 0..PatternBudget::PATTERNS_MAX {
            Pattern::new(&format!("budget-{nth}.*"), &mut budget).unwrap();
        }
        let error = Pattern::new("a", &mut budget).unwrap_err();
        let expect = "the request has more than 64 patterns";
        assert_eq!(error, Fault::Budget(expect.to_owned()));

        let mut budget = PatternBudget::default();
        let costly = |nth: u32| format!("costly-{nth}(a|[^b]{{500}}){{2}}");
        let refused = (0..60).find_map(|nth| Pattern::new(&costly(nth), &mut budget).err()).unwrap();
        assert_eq!(
            refused,
            Fault::Budget("the patterns of the request need more than 200000 states".to_owned())
        );
        assert!(matches!(Pattern::new(r"(\pL{300}){3}", &mut budget), Err(Fault::Syntax(_))));
    }

    #[test]
    fn the_cache_of_compiled_patterns_is_bounded() {
        let mut none_left = PatternBudget { patterns: 9, cost: 0 };
        assert!(Pattern::new("kept-1.*", &mut none_left).is_err());
        Pattern::new("kept-1.*", &mut PatternBudget::default()).unwrap();
        for nth in 0..2 * KEPT_MAX {
            Pattern::new(&format!("kept-other-{nth}.*"), &mut PatternBudget::unlimited()).unwrap();
            Pattern::new("kept-1.*", &mut none_left.clone())
                .expect("the recently used pattern must stay in the cache");
        }
        let kept = KEPT.lock().unwrap();
        assert!(kept.len() <= KEPT_MAX, "{}", kept.len());
    }

    fn texts(line: &str) -> String {
        serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    /// Go generated `testdata/re2/matches.txt`.
    #[test]
    fn patterns_match_as_in_go() {
        let table = include_str!("../../../testdata/re2/matches.txt");
        let (mut values, mut wrong, mut seen) = (Vec::new(), Vec::new(), 0);
        for line in table.lines().skip(1) {
            let (result, text) = line.split_once(' ').unwrap();
            if result == "value" {
                values.push(texts(text));
                continue;
            }
            let text = texts(text);
            let ours = match Pattern::new(&text, &mut PatternBudget::unlimited()) {
                Ok(pattern) => values.iter().map(|v| if pattern.matches(v) { '1' } else { '0' }).collect(),
                Err(_) => "error".to_owned(),
            };
            seen += 1;
            if ours != result {
                wrong.push(format!("{text:?}: got {ours}, expected {result}"));
            }
        }
        assert!(wrong.is_empty(), "{} of {seen} patterns differ from Go:\n{}", wrong.len(), wrong.join("\n"));
        assert!(seen > 1_500);
    }

    /// Go generated `testdata/re2/replacements.txt`.
    #[test]
    fn replacements_equal_those_of_go() {
        let table = include_str!("../../../testdata/re2/replacements.txt");
        for line in table.lines().skip(1) {
            let (pattern, value, template, expect): (String, String, String, Option<String>) =
                serde_json::from_str(line).unwrap();
            let rewritten = Rewrite::new(&pattern).unwrap().apply(&value, &template, 1 << 20);
            assert_eq!(rewritten, expect.map(Ok), "{line}");
        }
    }
}
