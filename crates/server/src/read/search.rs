//! Searches entries by the labels of their series, by text, and by members of JSON objects.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use tacho_api::json::{json_text_bytes, shown};
use tacho_model::{Body, Entry, Kind, Labels, TimeRange, Timestamp};
use tacho_query::Cancel;
use tacho_store::{Damages, Error, ErrorKind, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::pattern::Pattern;
use super::reader::{Reader, Records, Selected, Slice};
use crate::access::View;

/// Limit on the returned bodies, bytes as JSON. Otherwise an answer could have ten thousand entries of 1 MiB each.
const FOUND_BYTES_MAX: usize = 64 << 20;
/// A search that keeps more bytes of bodies (as JSON) waits for the permit for heavy requests before it continues.
const LIGHT_BYTES_MAX: usize = 16 << 20;

/// The conditions of a search. An entry must match all of them.
#[derive(Default)]
pub struct Wanted {
    pub contains: Vec<String>,
    pub pattern: Option<Pattern>,
    /// Members that the entry, a JSON object, must have, with their values as text.
    pub fields: Vec<(String, String)>,
}

/// Whether the newest or the oldest matching entries are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Newest,
    Oldest,
}

pub struct Found {
    /// In the requested order.
    pub entries: Vec<(Arc<Labels>, Entry)>,
    /// Number of matching entries, including those that are not returned.
    pub matched: u64,
    /// Number of entries examined.
    pub seen: u64,
    /// Number of matching entries in each part of the range. The parts have equal length. Empty if no parts were requested.
    pub counts: Vec<u64>,
    pub damages: Damages,
    /// Permits of the search. The caller keeps them until the answer is written.
    pub permits: Vec<OwnedSemaphorePermit>,
}

/// Permits of a search, and its cancellation.
pub struct Bounds {
    pub permits: Vec<OwnedSemaphorePermit>,
    /// Has the permit for heavy requests. A search that needs much memory replaces its other permits with this one.
    pub heavy: Arc<Semaphore>,
    pub cancel: Cancel,
}

impl Wanted {
    /// A body of bytes is searched as UTF-8.
    ///
    /// # Errors
    /// `Limit` when the pattern is too costly for the text.
    pub fn accepts(&self, body: &Body) -> Result<bool> {
        let text = String::from_utf8_lossy(body.as_bytes());
        Ok(self.contains.iter().all(|part| text.contains(part))
            && (self.fields.is_empty() || self.has_fields(&text))
            && self.pattern.as_ref().map_or(Ok(true), |pattern| pattern.is_match(&text))?)
    }

    fn has_fields(&self, text: &str) -> bool {
        let Ok(Value::Object(members)) = serde_json::from_str(text) else { return false };
        self.fields
            .iter()
            .all(|(name, wanted)| members.get(name).is_some_and(|value| shown(value) == *wanted))
    }
}

/// Searches the series. Returns at most `limit` entries. Unreadable records are no error: [`Found::damages`] lists them.
///
/// # Errors
/// `Limit` when the found entries are too long together, or the pattern is too costly. `Closed` when the search is cancelled.
/// Other errors of the store.
pub async fn search(
    store: View,
    series: Vec<Selected>,
    range: TimeRange,
    wanted: Wanted,
    (order, limit, parts): (Order, usize, usize),
    Bounds { permits, heavy, cancel }: Bounds,
) -> Result<Found> {
    let mut reader = Reader::new(store, series, Some(Kind::Entry), range).over_damage(true);
    let wanted = Arc::new(wanted);
    let mut is_heavy = false;
    let mut search = Search { found: Found { permits, ..Found::new(parts) }, bytes: 0, cancel };
    while let Some(slice) = reader.next().await? {
        if search.bytes > LIGHT_BYTES_MAX && !is_heavy {
            // The permits are released, so that other searches can run while this search waits.
            search.found.permits.clear();
            search.found.permits.extend(heavy.clone().acquire_owned().await);
            is_heavy = true;
        }
        let wanted = wanted.clone();
        // A pattern may take long on 1 MiB of text. The permits are held until the work ends, even if the client disconnects.
        let mut under_way = search;
        let look = move || under_way.look(slice, range, &wanted, (order, limit, parts)).map(|()| under_way);
        let ended = |e| Error::new(ErrorKind::Closed, "search did not end").caused_by(e);
        search = tokio::task::spawn_blocking(look).await.map_err(ended)??;
    }
    keep(&mut search.found.entries, order, limit)?;
    Ok(Found { damages: reader.damages(), ..search.found })
}

struct Search {
    found: Found,
    /// Total bytes of the kept bodies as JSON.
    bytes: usize,
    cancel: Cancel,
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
            if self.cancel.is_cancelled() {
                return Err(Error::new(ErrorKind::Closed, "search cancelled: the caller no longer waits"));
            }
            if !wanted.accepts(&entry.body)? {
                continue;
            }
            found.matched += 1;
            if let Some(count) = part(entry.at, range, parts).and_then(|at| found.counts.get_mut(at)) {
                *count += 1;
            }
            self.bytes += json_bytes(&entry.body);
            found.entries.push((Arc::clone(&slice.labels), entry));
            if found.entries.len() > 2 * limit || self.bytes > 2 * FOUND_BYTES_MAX {
                self.bytes = keep(&mut found.entries, order, limit)?;
            }
        }
        Ok(())
    }
}

fn json_bytes(body: &Body) -> usize {
    match body {
        Body::Text(text) => json_text_bytes(text),
        Body::Bytes(bytes) => 2 * bytes.len(),
    }
}

impl Found {
    fn new(parts: usize) -> Self {
        let (counts, damages) = (vec![0; parts], Damages::default());
        Self { entries: Vec::new(), matched: 0, seen: 0, counts, damages, permits: Vec::new() }
    }
}

/// The index of the part that contains a time, if the range has `parts` equal parts.
fn part(at: Timestamp, range: TimeRange, parts: usize) -> Option<usize> {
    let length = i128::from(range.end) - i128::from(range.start) + 1;
    let into = i128::from(at) - i128::from(range.start);
    usize::try_from(into * parts as i128 / length.max(1)).ok()
}

/// Sorts the entries and keeps the first `limit`. Returns the total size of their bodies, bytes as JSON.
fn keep(entries: &mut Vec<(Arc<Labels>, Entry)>, order: Order, limit: usize) -> Result<usize> {
    match order {
        Order::Oldest => entries.sort_by_key(|(_, entry)| entry.at),
        Order::Newest => entries.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.at)),
    }
    entries.truncate(limit);
    let bytes = entries.iter().map(|(_, entry)| json_bytes(&entry.body)).sum();
    if bytes <= FOUND_BYTES_MAX {
        return Ok(bytes);
    }
    let message = format!(
        "{} entries have {bytes} bytes as JSON together, at most {FOUND_BYTES_MAX} are allowed: request fewer at a time",
        entries.len()
    );
    Err(Error::new(ErrorKind::Limit, message))
}

/// The distinct labels of these entries, and for each entry the position of its labels.
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
            assert_eq!(wanted.accepts(&Body::Text(body.into())).unwrap(), expect, "{body}");
        };
        let contains = |parts: &[&str]| Wanted {
            contains: parts.iter().map(|part| (*part).to_owned()).collect(),
            ..Wanted::default()
        };
        check(contains(&[]), "anything", true);
        check(contains(&["out", "mem"]), "out of memory", true);
        check(contains(&["out", "disk"]), "out of memory", false);
        let matching =
            |text: &str| Wanted { pattern: Some(Pattern::new(text).unwrap()), ..Wanted::default() };
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
        assert!(error.to_string().contains("4 entries have 67108868 bytes"), "{error}");
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
