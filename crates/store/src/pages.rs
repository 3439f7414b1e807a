//! Tables by number of a series or group. Their memory follows the rows that they have, not the highest number.
//!
//! Numbers are not reused, because decoders and queries keep them without a lock. So a table in one vector would take space
//! for every series since the start of the process. Series that begin together usually also end together, because they belong to
//! one program. So most pages are empty, and take no memory, after their series have ended.

/// A table with `ROWS` rows per page. A page without rows takes 24 bytes.
#[derive(Debug)]
pub struct Pages<T, const ROWS: usize> {
    pages: Vec<Page<T>>,
    /// Number of pages with rows.
    used: usize,
}

#[derive(Debug)]
struct Page<T> {
    /// `ROWS` places, or none if the page has no rows.
    rows: Box<[Option<T>]>,
    used: usize,
}

// The derived implementations would demand that `T` has a default.
impl<T, const ROWS: usize> Default for Pages<T, ROWS> {
    fn default() -> Self {
        Self { pages: Vec::new(), used: 0 }
    }
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self { rows: Box::default(), used: 0 }
    }
}

impl<T, const ROWS: usize> Pages<T, ROWS> {
    const fn place(number: u32) -> (usize, usize) {
        (number as usize / ROWS, number as usize % ROWS)
    }

    pub fn get(&self, number: u32) -> Option<&T> {
        let (page, row) = Self::place(number);
        self.pages.get(page)?.rows.get(row)?.as_ref()
    }

    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let (page, row) = Self::place(number);
        self.pages.get_mut(page)?.rows.get_mut(row)?.as_mut()
    }

    /// Adds or replaces a row.
    pub fn insert(&mut self, number: u32, row: T) {
        let (page, at) = Self::place(number);
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, Page::default);
        }
        let Some(page) = self.pages.get_mut(page) else { return };
        if page.rows.is_empty() {
            page.rows = std::iter::repeat_with(|| None).take(ROWS).collect();
            self.used += 1;
        }
        if let Some(place) = page.rows.get_mut(at)
            && place.replace(row).is_none()
        {
            page.used += 1;
        }
    }

    pub fn remove(&mut self, number: u32) -> Option<T> {
        let (page, row) = Self::place(number);
        let page = self.pages.get_mut(page)?;
        let removed = page.rows.get_mut(row)?.take()?;
        page.used -= 1;
        if page.used == 0 {
            page.rows = Box::default();
            self.used -= 1;
        }
        Some(removed)
    }

    /// Memory of the table without that to which its rows refer, bytes.
    pub const fn bytes(&self) -> usize {
        self.pages.capacity() * size_of::<Page<T>>() + self.used * ROWS * size_of::<Option<T>>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    type Table = Pages<usize, 64>;

    proptest! {
        #[test]
        fn rows_are_those_of_a_map_and_pages_without_rows_are_free(
            steps in prop::collection::vec((0u32..400, any::<bool>()), 0..600),
        ) {
            let (mut pages, mut map) = (Table::default(), BTreeMap::new());
            for (step, (number, adds)) in steps.into_iter().enumerate() {
                if adds {
                    pages.insert(number, step);
                    map.insert(number, step);
                } else {
                    prop_assert_eq!(pages.remove(number), map.remove(&number));
                }
                prop_assert_eq!(pages.get(number), map.get(&number));
                prop_assert_eq!(pages.get_mut(number), map.get_mut(&number));
            }
            for number in 0..500 {
                prop_assert_eq!(pages.get(number), map.get(&number));
            }
            let used: BTreeSet<usize> = map.keys().map(|number| Table::place(*number).0).collect();
            let rows: usize = pages.pages.iter().map(|page| page.rows.len()).sum();
            prop_assert_eq!((pages.used, rows), (used.len(), used.len() * 64));
        }
    }
}
