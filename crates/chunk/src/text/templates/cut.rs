//! Which parts of a text, its *slots*, vary between texts? Numbers and ids ([`numbers`]). If a text gets no template with this
//! cut, almost all words count as varying ([`words`]).

use std::ops::Range;

/// Limit on the slots of one text. A text with more slots is not a log line.
const SLOTS_MAX: usize = 256;
/// Minimum length of an id made of digits and letters a-f. A shorter word may be a number with its unit.
const HEX_BYTES_MIN: usize = 7;
/// Limit on the runs of digits and letters in a word that is split, such as `22T03`, `532ms` or `thread7`. A word with
/// more runs is a single slot.
const RUNS_MAX: usize = 4;
const UUID_BYTES: usize = 36;
/// Bytes of the shortest time, `03:17:29`.
const TIME_BYTES_MIN: usize = 8;

/// Finds the slots of a text, in order. Returns false if there are too many.
pub(super) type Cut = fn(&[u8], &mut Vec<Range<usize>>) -> bool;

/// Slots are numbers (also those within a word), ids, and words with many changes between digits and letters. All other text
/// is fixed.
pub(super) fn numbers(text: &[u8], slots: &mut Vec<Range<usize>>) -> bool {
    slots.clear();
    let mut at = 0;
    while let Some(skip) = text.get(at..).and_then(|rest| rest.iter().position(u8::is_ascii_alphanumeric)) {
        at += skip;
        let rest = text.get(at..).unwrap_or_default();
        let length = if is_uuid(rest) { UUID_BYTES } else { word_bytes(rest) };
        word(rest.get(..length).unwrap_or_default(), at, slots);
        at += length;
        if slots.len() > SLOTS_MAX {
            return false;
        }
    }
    true
}

/// Slots are the numbers of dates and times, and all other words between spaces, without surrounding punctuation. Of these words,
/// only the first one without a digit is fixed, because it usually names the subject of the text. This cut suits texts with many
/// different names and few common words.
pub(super) fn words(text: &[u8], slots: &mut Vec<Range<usize>>) -> bool {
    slots.clear();
    let (mut at, mut fixed) = (0, false);
    for token in text.split_inclusive(u8::is_ascii_whitespace) {
        let start = token.iter().position(is_core).unwrap_or(token.len());
        let end = token.iter().rposition(is_core).map_or(start, |last| last + 1);
        let word = token.get(start..end).unwrap_or_default();
        let start = at + start;
        at += token.len();
        if is_time(word) {
            digits(word, start, slots);
        } else if !fixed && !word.is_empty() && !word.iter().any(u8::is_ascii_digit) {
            fixed = true;
        } else if !word.is_empty() {
            slots.push(start..start + word.len());
        }
        if slots.len() > SLOTS_MAX {
            return false;
        }
    }
    true
}

/// Whether a word may start and end with this byte. Surrounding brackets, quotes and similar characters are fixed.
fn is_core(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"/_-$".contains(byte)
}

/// Whether a word looks like a date or a time, such as `2026-11-22` or `03:17:29,005`. Each number of such a word gets a slot.
fn is_time(word: &[u8]) -> bool {
    word.len() >= TIME_BYTES_MIN && word.iter().all(|byte| byte.is_ascii_digit() || b":-.,".contains(byte))
}

/// Adds a slot for each run of digits in a word that starts at `at`.
fn digits(word: &[u8], mut at: usize, slots: &mut Vec<Range<usize>>) {
    for run in word.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
        if run.first().is_some_and(u8::is_ascii_digit) {
            slots.push(at..at + run.len());
        }
        at += run.len();
    }
}

fn word_bytes(text: &[u8]) -> usize {
    text.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(text.len())
}

/// Adds the slots of a word that starts at `at`.
fn word(word: &[u8], at: usize, slots: &mut Vec<Range<usize>>) {
    if !word.iter().any(u8::is_ascii_digit) {
        return;
    }
    let hex = |digits: &[u8]| digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let prefixed = word.strip_prefix(b"0x").filter(|digits| !digits.is_empty() && hex(digits));
    if let Some(prefixed) = prefixed {
        return slots.push(at + 2..at + 2 + prefixed.len());
    }
    let runs = || word.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    let id = word.len() >= HEX_BYTES_MIN && hex(word) && runs().nth(1).is_some();
    if id || word.len() == UUID_BYTES || runs().nth(RUNS_MAX).is_some() {
        return slots.push(at..at + word.len());
    }
    digits(word, at, slots);
}

/// Whether the text starts with a UUID in lower case with hyphens, and not with a longer word.
fn is_uuid(text: &[u8]) -> bool {
    let fits = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    text.get(..UUID_BYTES).is_some_and(|head| head.iter().enumerate().all(fits))
        && !text.get(UUID_BYTES).is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a text and compares its slots.
    fn check(cut: Cut, text: &str, expect: &[&str]) {
        let mut found = vec![];
        assert!(cut(text.as_bytes(), &mut found));
        let found: Vec<&str> = found.into_iter().map(|slot| &text[slot]).collect();
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn numbers_and_ids_are_slots() {
        let check = |text, expect: &[&str]| check(numbers, text, expect);
        check("", &[]);
        check("nothing to see", &[]);
        check("2026-11-22T03:17:29.005Z", &["2026", "11", "22", "03", "17", "29", "005"]);
        check("took 532ms on thread7 of v3beta2", &["532", "7", "3", "2"]);
        check("commit a1b2c3d, short a1b, at 0x7f00", &["a1b2c3d", "1", "7f00"]);
        check("id 0123abcd-4567-89ef-0123-456789abcdef.", &["0123abcd-4567-89ef-0123-456789abcdef"]);
        check("0123abcd-4567-89ef-0123-456789abcdefg", &["0123abcd", "4567", "89", "0123", "456789"]);
        check("key Xy7Qa9Zk3pP9", &["Xy7Qa9Zk3pP9"]);
        check("größe 12 µs", &["12"]);
    }

    #[test]
    fn all_words_are_slots_except_the_first_one_without_a_digit() {
        let check = |text, expect: &[&str]| check(words, text, expect);
        check("", &[]);
        check("  ", &[]);
        check("PASS: gdb.base/all.exp: print 5", &["gdb.base/all.exp", "print", "5"]);
        check(
            "2026-11-21 20:46:01 status installed libc6:amd64 2.36-9",
            &["2026", "11", "21", "20", "46", "01", "installed", "libc6:amd64", "2.36-9"],
        );
        check("(7) \"größe\"\tof [x]", &["7", "of", "x"]);
    }

    #[test]
    fn a_text_with_too_many_slots_is_not_split() {
        let many = "1 ".repeat(SLOTS_MAX);
        for cut in [numbers, words] {
            assert!(cut(many.as_bytes(), &mut vec![]));
            assert!(!cut(format!("{many}1").as_bytes(), &mut vec![]));
        }
    }
}
