//! Searches a text for a pattern in bounded time.
//!
//! In the worst case, the `regex` crate needs a time proportional to the number of states of the pattern times the length of the
//! text: minutes for 1 MiB. If this product is small, the crate searches the text. Otherwise a lazy DFA searches the text, in
//! time proportional to the text's length. A DFA that needs too many states stops, and the search is refused.
//!
//! Step before: `search.rs` reads the entries.

use regex::{Regex, RegexBuilder};
use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::pool::Pool;
use tacho_query::Place;
use tacho_store::{Error, ErrorKind, Result};

/// Memory limit of a compiled pattern, because patterns may be hostile.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// The `regex` crate searches if the number of states of the pattern times the bytes of the text is at most this number. Such a
/// search takes at most half a second.
const STEPS_MAX: usize = 50_000_000;
/// The DFA stops when its memory for states has been full this many times and it needs more than one new state per
/// [`BYTES_PER_STATE_MIN`] bytes of text.
const CLEARS_MIN: usize = 8;
const BYTES_PER_STATE_MIN: usize = 16;

type NewCache = Box<dyn Fn() -> Cache + Send + Sync>;

/// A pattern that may match anywhere in a text.
pub struct Pattern {
    regex: Regex,
    dfa: DFA,
    caches: Pool<Cache, NewCache>,
    states: usize,
}

impl Pattern {
    /// # Errors
    /// `Invalid` when the pattern has a syntax error, `Limit` when it takes too much memory.
    pub fn new(text: &str) -> Result<Self> {
        let regex = RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build();
        let regex = regex.map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => too_large(),
            other => Error::invalid(fault(text).unwrap_or_else(|| other.to_string())),
        })?;
        let nfa = thompson::Config::new()
            .nfa_size_limit(Some(PATTERN_BYTES_MAX))
            .which_captures(WhichCaptures::None);
        let lazy = DFA::config()
            .skip_cache_capacity_check(true)
            .unicode_word_boundary(true)
            .minimum_cache_clear_count(Some(CLEARS_MIN))
            .minimum_bytes_per_state(Some(BYTES_PER_STATE_MIN));
        let dfa = DFA::builder().configure(lazy).thompson(nfa).build(text).map_err(|_| too_large())?;
        let states = dfa.get_nfa().states().len();
        let new: NewCache = Box::new({
            let dfa = dfa.clone();
            move || dfa.create_cache()
        });
        Ok(Self { regex, dfa, caches: Pool::new(new), states })
    }

    /// # Errors
    /// `Limit` when the search would take too long.
    pub fn is_match(&self, text: &str) -> Result<bool> {
        let is_cheap = self.states.saturating_mul(text.len()) <= STEPS_MAX;
        if is_cheap {
            return Ok(self.regex.is_match(text));
        }
        let found = self.dfa.try_search_fwd(&mut self.caches.get(), &Input::new(text).earliest(true));
        found.map(|found| found.is_some()).map_err(|_| {
            let message = format!(
                "the pattern needs too long for an entry of {} bytes: give a simpler one, or search with \"contains\"",
                text.len()
            );
            Error::new(ErrorKind::Limit, message)
        })
    }
}

fn too_large() -> Error {
    let message = format!(
        "the compiled pattern takes more than {PATTERN_BYTES_MAX} bytes: give a simpler one, or search with \"contains\""
    );
    Error::new(ErrorKind::Limit, message)
}

/// Describes a syntax error in one line, with its place. The message of the `regex` crate has several lines.
fn fault(text: &str) -> Option<String> {
    let (kind, span) = match regex_syntax::parse(text).err()? {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), *error.span()),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), *error.span()),
        _ => return None,
    };
    let place = Place { line: span.start.line, column: span.start.column };
    Some(format!("{kind} (at {place})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_searched_in_bounded_time_or_refused() {
        // Letters in an order that looks random, so that a DFA needs many states for the last two patterns.
        let text: String = (0..1u64 << 20)
            .map(|n| if tacho_model::mix64(n).is_multiple_of(2) { 'a' } else { 'b' })
            .collect();
        for (pattern, expect) in [
            ("abba", Some(true)),
            ("(ab|ba){3}[yz]", Some(false)),
            (r"\w+[yz]", Some(false)),
            (r"b+a\b", Some(text.ends_with("ba"))),
            ("a[ab]{800}[yz]", None),
            (".{500}a.{500}[^ab]", None),
        ] {
            let found = Pattern::new(pattern).unwrap().is_match(&text);
            assert_eq!(found.as_ref().ok(), expect.as_ref(), "{pattern}");
            if let Err(error) = found {
                assert!(
                    error.kind() == ErrorKind::Limit && error.to_string().contains("1048576 bytes"),
                    "{error}"
                );
            }
        }
        let pattern = Pattern::new("a[ab]{800}[yz]").unwrap();
        assert!(!pattern.is_match(&text[..10_000]).unwrap());
    }

    #[test]
    fn syntax_errors_of_patterns_are_described() {
        let fault = |text: &str| {
            let error = Pattern::new(text).err().unwrap();
            (error.kind(), error.to_string())
        };
        for (text, expect) in [
            ("(", "unclosed group (at column 1)"),
            ("a[é-b]", "invalid character class range, the start must be <= the end (at column 3)"),
            ("a\n*\nb{2,1}", "(at line 3, column 2)"),
            (r"\p{x}", "Unicode property not found (at column 1)"),
        ] {
            let (kind, said) = fault(text);
            assert_eq!(kind, ErrorKind::Invalid, "{text:?}");
            assert!(said.ends_with(expect) && said.lines().count() == 1, "{text:?}: {said}");
        }
        let (kind, said) = fault("(a{1000}){1000}");
        assert!(kind == ErrorKind::Limit && said.contains("takes more than 1048576 bytes"), "{said}");
    }
}
