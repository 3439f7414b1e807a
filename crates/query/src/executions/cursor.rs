//! At which trace does the next page of a search begin? After the last trace of the page before, in the order of the search.
//!
//! This file and `search.rs` use each other: a search has the cursor of the page before, and a cursor has a digest of the
//! conditions of its search.

use std::cmp::Reverse;
use std::fmt;
use std::hash::Hash;

use tacho_model::TraceId;
use xxhash_rust::xxh3::Xxh3Default;

use super::search::Search;
use super::source::Filter;
use super::top::{Key, Order};

/// The place of a trace in the order of a search. Clients get it as a text, which they send back without reading it:
///
/// ```text
/// ORDER-RANK-TRACE-SEARCH    name of the order, 16, 32 and 16 hexadecimal digits
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    order: Order,
    key: Key,
    /// Digest of the conditions of the search.
    search: u64,
}

impl Cursor {
    pub(super) fn new(search: &Search, key: Key) -> Self {
        Self { order: search.order, key, search: digest(search) }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let [order, rank, trace, search] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
        let digits = |text: &str, count| {
            let is_number = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
            (is_number && text.len() == count).then(|| u128::from_str_radix(text, 16).ok()).flatten()
        };
        let order = Order::ALL.into_iter().find(|one| one.name() == order)?;
        let (rank, trace) = (u64::try_from(digits(rank, 16)?).ok()?, TraceId(digits(trace, 32)?));
        let search = u64::try_from(digits(search, 16)?).ok()?;
        parts.next().is_none().then_some(Self { order, key: (rank, Reverse(trace)), search })
    }

    /// Whether the search has the same order and conditions as that of the earlier page. The range and the limit may differ.
    pub fn is_of(self, search: &Search) -> bool {
        self.order == search.order && self.search == digest(search)
    }

    pub(super) const fn key(self) -> Key {
        self.key
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, Reverse(trace)) = self.key;
        write!(f, "{}-{rank:016x}-{:032x}-{:016x}", self.order.name(), trace.0, self.search)
    }
}

fn digest(search: &Search) -> u64 {
    let Search { filter, duration_ns_min, duration_ns_max, outcome, request_id, conditions, .. } = search;
    let (Filter { service, operation, .. }, mut hasher) = (filter, Xxh3Default::new());
    (service, operation, duration_ns_min, duration_ns_max, outcome, request_id, conditions).hash(&mut hasher);
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_a_text_and_other_texts_are_refused() {
        for order in Order::ALL {
            let cursor = Cursor { order, key: (0xfe, Reverse(TraceId(0x1d))), search: 0x5e };
            let text = cursor.to_string();
            let digits = "00000000000000fe-0000000000000000000000000000001d-000000000000005e";
            assert_eq!(text, format!("{}-{digits}", order.name()));
            assert_eq!(Cursor::parse(&text), Some(cursor));
            for cut in 0..text.len() {
                assert_eq!(Cursor::parse(&text[..cut]), None, "{cut}");
            }
            for wrong in
                [format!("{text}-"), format!("{text}0"), text.to_uppercase(), text.replace("fe", "+e")]
            {
                assert_eq!(Cursor::parse(&wrong), None, "{wrong}");
            }
        }
        assert_eq!(
            Cursor::parse("best-00000000000000fe-0000000000000000000000000000001d-000000000000005e"),
            None
        );
        assert_eq!(Cursor::parse("ö"), None);
    }
}
