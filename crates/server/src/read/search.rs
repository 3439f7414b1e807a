//! Searches entries by the labels of their series, by text, and by members of JSON objects.

use std::collections::HashMap;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use serde_json::Value;
use tacho_api::json::shown;
use tacho_model::{Body, Entry, Kind, Labels, TimeRange, Timestamp};
use tacho_store::{Damages, Error, ErrorKind, Result, Store};

use super::reader::{Reader, Records, Selected, Slice};

/// Memory limit of a compiled pattern, bytes: protects the server from hostile patterns.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Limit on the returned bodies, bytes: ten thousand entries may have a MiB each.
const FOUND_BYTES_MAX: usize = 64 << 20;

/// The conditions of a search; an entry must match all of them.
#[derive(Default)]
pub struct Wanted {
    /// Texts that it contains.
    pub contains: Vec<String>,
    pub pattern: Option<Regex>,
    /// Members of a JSON object and their values, as text.
    pub fields: Vec<(String, String)>,
}

/// Which of the matching entries are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Newest,
    Oldest,
}

/// The result of a search.
pub struct Found {
    /// In the requested order.
    pub entries: Vec<(Arc<Labels>, Entry)>,
    /// Number of matching entries, including those that are not returned.
    pub matched: u64,
    /// Number of entries examined.
    pub seen: u64,
    /// Matches by time, in parts of equal length; empty if none were requested.
    pub counts: Vec<u64>,
    /// Records that could not be read.
    pub damages: Damages,
}

/// A pattern that is found anywhere in a text.
///
/// # Errors
/// For an invalid pattern.
pub fn pattern(text: &str) -> std::result::Result<Regex, String> {
    RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build().map_err(|e| e.to_string())
}

impl Wanted {
    /// Bytes are searched as text if they are UTF-8.
    pub fn accepts(&self, body: &Body) -> bool {
        let text = String::from_utf8_lossy(body.as_bytes());
        self.contains.iter().all(|part| text.contains(part))
            && self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(&text))
            && (self.fields.is_empty() || self.has_fields(&text))
    }

    fn has_fields(&self, text: &str) -> bool {
        let Ok(Value::Object(members)) = serde_json::from_str(text) else { return false };
        self.fields
            .iter()
            .all(|(name, wanted)| members.get(name).is_some_and(|value| shown(value) == *wanted))
    }
}

/// Searches the series; keeps at most `limit` entries in memory.
///
/// # Errors
/// `Limit` when they are too long together.
pub async fn search(
    store: Arc<Store>,
    series: Vec<Selected>,
    range: TimeRange,
    wanted: Wanted,
    (order, limit, parts): (Order, usize, usize),
) -> Result<Found> {
    let mut reader = Reader::new(store, series, Some(Kind::Entry), range).over_damage(true);
    let wanted = Arc::new(wanted);
    let mut search = Search { found: Found::new(parts), bytes: 0 };
    while let Some(slice) = reader.next().await? {
        let wanted = wanted.clone();
        // A pattern may take long on a MiB of text.
        let mut under_way = search;
        let look = move || under_way.look(slice, range, &wanted, (order, limit, parts)).map(|()| under_way);
        let ended = |e| Error::new(ErrorKind::Closed, "search did not end").caused_by(e);
        search = tokio::task::spawn_blocking(look).await.map_err(ended)??;
    }
    keep(&mut search.found.entries, order, limit)?;
    Ok(Found { damages: reader.damages(), ..search.found })
}

/// A running search.
struct Search {
    found: Found,
    /// Total bytes of the kept bodies.
    bytes: usize,
}

impl Search {
    fn look(
        &mut self,
        slice: Slice,
        range: TimeRange,
        wanted: &Wanted,
        (order, limit, parts): (Order, usize, usize),
    ) -> Result<()> {
        let Records::Entries(entries) = slice.records else { return Ok(()) };
        let found = &mut self.found;
        found.seen += entries.len() as u64;
        for entry in entries {
            if !wanted.accepts(&entry.body) {
                continue;
            }
            found.matched += 1;
            if let Some(count) = part(entry.at, range, parts).and_then(|at| found.counts.get_mut(at)) {
                *count += 1;
            }
            self.bytes += entry.body.as_bytes().len();
            found.entries.push((Arc::clone(&slice.labels), entry));
            if found.entries.len() > 2 * limit || self.bytes > 2 * FOUND_BYTES_MAX {
                self.bytes = keep(&mut found.entries, order, limit)?;
            }
        }
        Ok(())
    }
}

impl Found {
    fn new(parts: usize) -> Self {
        let (counts, damages) = (vec![0; parts], Damages::default());
        Self { entries: Vec::new(), matched: 0, seen: 0, counts, damages }
    }
}

/// The index of the part of the range, of `parts` equal ones, that contains a time.
fn part(at: Timestamp, range: TimeRange, parts: usize) -> Option<usize> {
    let length = i128::from(range.end) - i128::from(range.start) + 1;
    let into = i128::from(at) - i128::from(range.start);
    usize::try_from(into * parts as i128 / length.max(1)).ok()
}

/// Entries of one series with the same time stay in their order. Returns the total length of the bodies, bytes.
fn keep(entries: &mut Vec<(Arc<Labels>, Entry)>, order: Order, limit: usize) -> Result<usize> {
    match order {
        Order::Oldest => entries.sort_by_key(|(_, entry)| entry.at),
        Order::Newest => entries.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.at)),
    }
    entries.truncate(limit);
    let bytes = entries.iter().map(|(_, entry)| entry.body.as_bytes().len()).sum();
    if bytes <= FOUND_BYTES_MAX {
        return Ok(bytes);
    }
    let message = format!(
        "{} entries of {bytes} bytes are over {FOUND_BYTES_MAX}, request fewer at a time",
        entries.len()
    );
    Err(Error::new(ErrorKind::Limit, message))
}

/// The labels of some entries, each once, and for each entry the position of its labels.
pub fn series_of(entries: &[(Arc<Labels>, Entry)]) -> (Vec<Arc<Labels>>, Vec<usize>) {
    let mut places = HashMap::new();
    let mut list = Vec::new();
    let numbers = entries.iter().map(|(labels, _)| {
        *places.entry(Arc::clone(labels)).or_insert_with(|| {
            list.push(Arc::clone(labels));
            list.len() - 1
        })
    });
    let numbers = numbers.collect();
    (list, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_must_match_all_conditions() {
        let check = |wanted: Wanted, body: &str, expect: bool| {
            assert_eq!(wanted.accepts(&Body::Text(body.into())), expect, "{body}");
        };
        let contains = |parts: &[&str]| Wanted {
            contains: parts.iter().map(|part| (*part).to_owned()).collect(),
            ..Wanted::default()
        };
        check(contains(&[]), "anything", true);
        check(contains(&["out", "mem"]), "out of memory", true);
        check(contains(&["out", "disk"]), "out of memory", false);
        let matching = |text: &str| Wanted { pattern: Some(pattern(text).unwrap()), ..Wanted::default() };
        check(matching(r"pid=\d+$"), "exit pid=17", true);
        check(matching(r"pid=\d+$"), "exit pid=17 ", false);
        let fields = |pairs: &[(&str, &str)]| Wanted {
            fields: pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            ..Wanted::default()
        };
        let row = r#"{"pid":7,"command":"java","fd":null}"#;
        check(fields(&[("pid", "7"), ("command", "java")]), row, true);
        check(fields(&[("pid", "8")]), row, false);
        check(fields(&[("user", "")]), row, false);
        check(fields(&[("pid", "7")]), "pid 7", false);
        assert!(pattern("(").unwrap_err().contains("unclosed group"));
        assert!(pattern("(a{1000}){1000}").is_err(), "too large");
    }

    #[test]
    fn results_are_limited_by_number_and_bytes() {
        let labels = Arc::new(Labels::empty());
        let entries = |bytes: usize| -> Vec<(Arc<Labels>, Entry)> {
            let body = Body::Text("x".repeat(bytes).into());
            (0..4).map(|at| (labels.clone(), Entry { at, body: body.clone() })).collect()
        };
        let mut few = entries(10);
        assert_eq!(keep(&mut few, Order::Newest, 2).unwrap(), 20);
        assert_eq!(few.iter().map(|(_, entry)| entry.at).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(keep(&mut entries(FOUND_BYTES_MAX / 4), Order::Oldest, 4).unwrap(), FOUND_BYTES_MAX);
        let error = keep(&mut entries(FOUND_BYTES_MAX / 4 + 1), Order::Oldest, 4).unwrap_err();
        assert!(error.to_string().contains("4 entries of 67108868 bytes"), "{error}");
    }

    #[test]
    fn parts_cover_the_range() {
        let range = TimeRange::new(10, 19);
        let places: Vec<Option<usize>> = [10, 14, 15, 19].iter().map(|at| part(*at, range, 2)).collect();
        assert_eq!(places, [Some(0), Some(0), Some(1), Some(1)]);
        assert_eq!(part(0, TimeRange::ALL, 4), Some(2));
        assert_eq!(part(5, TimeRange::new(0, 9), 0), Some(0));
    }
}
