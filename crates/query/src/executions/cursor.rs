//! At which trace does the next page of a search begin? After the last trace of the page before, in the order of the search.

use std::cmp::Reverse;
use std::fmt;

use tacho_model::TraceId;

use super::top::{Key, Order};

/// The place of a trace in the order of a search. Clients get it as a text, which they send back without reading it:
///
/// ```text
/// ORDER-RANK-TRACE    name of the order, 16 and 32 hexadecimal digits
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    order: Order,
    key: Key,
}

impl Cursor {
    pub(super) const fn new(order: Order, key: Key) -> Self {
        Self { order, key }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let [order, rank, trace] = [parts.next()?, parts.next()?, parts.next()?];
        let digits = |text: &str, count| {
            let is_number = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
            (is_number && text.len() == count).then(|| u128::from_str_radix(text, 16).ok()).flatten()
        };
        let order = Order::ALL.into_iter().find(|one| one.name() == order)?;
        let (rank, trace) = (u64::try_from(digits(rank, 16)?).ok()?, TraceId(digits(trace, 32)?));
        parts.next().is_none().then_some(Self { order, key: (rank, Reverse(trace)) })
    }

    pub const fn order(self) -> Order {
        self.order
    }

    pub(super) const fn key(self) -> Key {
        self.key
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, Reverse(trace)) = self.key;
        write!(f, "{}-{rank:016x}-{:032x}", self.order.name(), trace.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_a_text_and_other_texts_are_refused() {
        for order in Order::ALL {
            let cursor = Cursor::new(order, (0xfe, Reverse(TraceId(0x1d))));
            let text = cursor.to_string();
            let digits = "00000000000000fe-0000000000000000000000000000001d";
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
        assert_eq!(Cursor::parse("best-00000000000000fe-0000000000000000000000000000001d"), None);
        assert_eq!(Cursor::parse("ö"), None);
    }
}
