//! Which name did the user probably mean by an unknown name?
//!
//! This file and `functions.rs` use each other: this file searches the table of `functions.rs`, and `functions.rs` adds the names
//! found to the error for an unknown function. Commands of `tacho` search other names.

use super::aggregations::aggregations;
use super::functions::functions;

/// Limit on the number of suggestions.
const TOLD_MAX: usize = 3;
/// Minimum length of a word, in bytes, for a search of names that contain the word.
const PART_MIN: usize = 3;

/// Names of functions and aggregations similar to `word`, as a phrase: `a, b or c`. `None` if there are none.
pub fn similar(word: &str) -> Option<String> {
    let functions = functions().iter().map(|f| f.name);
    one_of(&similar_among(word, functions.chain(aggregations().iter().map(|(name, _)| *name))))
}

/// The names as a phrase: `a, b or c`. `None` if there are none.
pub fn one_of<S: AsRef<str>>(names: &[S]) -> Option<String> {
    let (last, some) = names.split_last()?;
    let some: Vec<&str> = some.iter().map(AsRef::as_ref).collect();
    let last = last.as_ref();
    Some(if some.is_empty() { last.to_owned() } else { format!("{} or {last}", some.join(", ")) })
}

/// At most three names similar to `word`, the most similar first: names with a small edit distance. If there are none, names
/// that contain `word`, in alphabetical order. Upper and lower case are equal.
pub fn similar_among<'a>(word: &str, names: impl Iterator<Item = &'a str> + Clone) -> Vec<&'a str> {
    let word = word.to_lowercase();
    let changes_max = (word.chars().count() / 3).clamp(1, 3);
    let near = names.clone().map(|name| (changes(&word, &name.to_lowercase()), name));
    let mut near: Vec<(usize, &str)> = near.filter(|(changes, _)| *changes <= changes_max).collect();
    if near.is_empty() && word.len() >= PART_MIN {
        near = names.filter(|name| name.to_lowercase().contains(&word)).map(|name| (0, name)).collect();
    }
    near.sort_unstable();
    near.dedup();
    near.truncate(TOLD_MAX);
    near.into_iter().map(|(_, name)| name).collect()
}

/// Number of letters to insert, delete, replace or swap with a neighbour to turn `a` into `b` (optimal string
/// alignment).
fn changes(a: &str, b: &str) -> usize {
    let [a, b]: [Vec<char>; 2] = [a, b].map(|word| word.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, other) in b.iter().enumerate() {
            let replaced = above[j] + usize::from(letter != other);
            let mut least = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == b[j - 1] && a[i - 1] == *other {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_and_lower_case_do_not_affect_similarity() {
        let names = ["GET /orders", "GET /items/{id}", "Board.post", "Board.post"];
        for (word, expect) in [
            ("get /order", &["GET /orders"][..]),
            ("/ITEMS", &["GET /items/{id}"]),
            ("board.put", &["Board.post"]),
            ("get", &["GET /items/{id}", "GET /orders"]),
            ("nothing", &[]),
        ] {
            assert_eq!(similar_among(word, names.into_iter()), expect, "{word}");
        }
    }

    #[test]
    fn a_swap_of_neighbours_is_one_change() {
        for (a, b, expect) in [
            ("httpx", "http", 1),
            ("htpt", "http", 1),
            ("ab", "ba", 1),
            ("", "abc", 3),
            ("rate", "rate", 0),
            ("ca", "abc", 3),
        ] {
            assert_eq!((changes(a, b), changes(b, a)), (expect, expect), "{a} {b}");
        }
    }

    #[test]
    fn similar_names_are_suggested() {
        for (word, expect) in [
            ("rat", Some("rate")),
            ("avg_overtime", Some("avg_over_time")),
            ("outliers_mad", Some("keep_outliers_mad")),
            ("summ", Some("sum")),
            ("zzzzzzzz", None),
            ("", None),
        ] {
            let found = similar(word);
            match expect {
                Some(name) => {
                    assert!(found.as_deref().is_some_and(|f| f.contains(name)), "{word}: {found:?}")
                }
                None => assert_eq!(found, None, "{word}"),
            }
        }
        assert_eq!([changes("abc", "abc"), changes("", "ab"), changes("kitten", "sitting")], [0, 2, 3]);
    }
}
