//! Assigns the series of samples of a generation to groups. The home group of a series is the group into whose chunks flushes
//! write its samples. The first flush of the series assigns it, before it writes chunks.
//!
//! ```text
//!   newcomers -> order.rs -> form.rs -> series rows -> index -> shares (members per group) -> seal/samples.rs
//! ```
//! The series rows determine the groups. A flush that is repeated after a crash finds the groups that were written and
//! forms the other groups again. All chunks are written after these rows.

use std::ops::Deref;
use std::sync::Arc;

use tacho_model::{Kind, Labels, SeriesId};

use super::form::{Newcomer, Print, form};
use super::order::Order;
use super::row::{group_id, series_row};
use crate::driver::Row;
use crate::generation::Generation;
use crate::index::{Index, SERIES_AT_ONCE};
use crate::memtable::OpenSeries;

/// The members of one group that have samples in a generation.
#[derive(Debug)]
pub struct Share {
    pub group: SeriesId,
    /// Member number in the group and series number in the index, ordered by member.
    pub members: Vec<(u16, u32)>,
}

pub struct NewGroup {
    pub id: SeriesId,
    pub members: Vec<u32>,
    pub row: Row,
}

/// Calls `look` with the index and a series number, for each series with samples in the generation. `index` takes the lock of
/// the index. The lock is released between some series, because a writer that waits for the lock may hold the lock of
/// the generations.
fn of_each<G: Deref<Target = Index>, T>(
    generation: &Generation,
    index: impl Fn() -> G,
    look: impl Fn(&Index, u32) -> Option<T>,
) -> Vec<T> {
    let mut numbers = generation.samples.iter().map(|(number, _)| number).peekable();
    let mut found = Vec::new();
    while numbers.peek().is_some() {
        let index = index();
        found.extend(numbers.by_ref().take(SERIES_AT_ONCE).filter_map(|number| look(&index, number)));
    }
    found
}

/// Series with samples in the generation and without a home group. `index` takes the lock of the index.
pub fn newcomers<G: Deref<Target = Index>>(generation: &Generation, index: impl Fn() -> G) -> Vec<u32> {
    of_each(generation, index, |index, number| index.home(number).is_none().then_some(number))
}

/// Forms groups of the series from the times in `samples`. `index` takes the lock of the index. `assume` may change the summary
/// of the times. For many series, this function takes long.
pub fn groups<G: Deref<Target = Index>>(
    samples: &OpenSeries,
    series: &[u32],
    index: impl Fn() -> G,
    assume: impl Fn(Print) -> Print,
) -> Vec<NewGroup> {
    let mut at = Vec::new();
    let mut print = |number: u32| {
        at.clear();
        if let Some(open) = samples.get(number) {
            open.times(&mut at);
        }
        assume(Print::of(&mut at))
    };
    let order = Order::of(series, &index);
    let mut newcomers = Vec::with_capacity(series.len());
    for (number, ranks) in series.iter().zip(order.iter()) {
        newcomers.push(Newcomer { number: *number, ranks, times: print(*number) });
    }
    let formed = form(newcomers);
    drop(order);
    let group = |members: Vec<u32>| {
        let labels: Vec<Arc<Labels>> = {
            let index = index();
            members.iter().map(|number| index.labels_of(*number)).collect()
        };
        let labels: Vec<&Labels> = labels.iter().map(|labels| &**labels).collect();
        let ids: Vec<SeriesId> = labels.iter().map(|labels| labels.id()).collect();
        let id = group_id(&ids);
        NewGroup { id, members, row: series_row(Kind::Sample, id, &labels) }
    };
    formed.into_iter().map(group).collect()
}

/// For each group, its members with samples in the generation. `index` takes the lock of the index.
pub fn shares<G: Deref<Target = Index>>(generation: &Generation, index: impl Fn() -> G) -> Vec<Share> {
    let mut places = of_each(generation, &index, |index, number| {
        index.home(number).map(|(group, member)| (group, member, number))
    });
    places.sort_unstable();
    let groups: Vec<&[(u32, u16, u32)]> = places.chunk_by(|a, b| a.0 == b.0).collect();
    let mut shares = Vec::with_capacity(groups.len());
    for some in groups.chunks(SERIES_AT_ONCE) {
        let index = index();
        shares.extend(some.iter().map(|places| Share {
            group: places.first().map_or(SeriesId(0), |(group, ..)| index.group(*group).id),
            members: places.iter().map(|(_, member, number)| (*member, *number)).collect(),
        }));
    }
    shares
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tacho_model::{Sample, Value};

    use super::*;
    use crate::generation::JournalFile;

    /// Takes the lock of the index, and counts that.
    fn locked<'a>(locks: &'a Cell<usize>, index: &'a Index) -> impl Fn() -> &'a Index {
        move || {
            locks.set(locks.get() + 1);
            index
        }
    }

    #[test]
    fn the_lock_of_the_index_is_released_between_some_series() {
        let journal = JournalFile { path: "j".into(), length: 0, cut: false, damaged: None };
        let (mut generation, mut index) = (Generation::new(1, journal), Index::default());
        let count = 2 * u32::try_from(SERIES_AT_ONCE).unwrap() + 1;
        let numbers: Vec<u32> = (0..count)
            .map(|n| {
                let labels = Labels::new([("n", n.to_string())]).unwrap();
                let number = index.add(Kind::Sample, labels.id(), &Arc::new(labels));
                generation.samples.push(number, &[Sample { at: 0, value: Value::I64(1) }]);
                number
            })
            .collect();
        let locks = &Cell::new(0);
        assert_eq!(newcomers(&generation, locked(locks, &index)), numbers);
        assert_eq!(locks.replace(0), 3);
        let (homeless, grouped) = numbers.split_last().unwrap();
        let all: Vec<u32> = grouped.iter().rev().copied().collect();
        index.add_group(SeriesId(7), &all[..1_000]);
        for (id, number) in (8..).zip(&all[1_000..]) {
            index.add_group(SeriesId(id), &[*number]);
        }
        let found = shares(&generation, locked(locks, &index));
        assert_eq!(locks.replace(0), 5, "three for the series, two for the groups");
        let groups: Vec<u128> = found.iter().map(|share| share.group.0).collect();
        assert_eq!(groups, (7..).take(1 + all.len() - 1_000).collect::<Vec<_>>());
        let members: Vec<u32> = found.iter().flat_map(|share| &share.members).map(|(_, n)| *n).collect();
        assert_eq!(members, all);
        assert_eq!(newcomers(&generation, locked(locks, &index)), [*homeless]);
    }
}
