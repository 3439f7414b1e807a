//! Assigns the series of samples of a generation to groups. Every series has a home group before its chunks are written.
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
use crate::index::Index;
use crate::memtable::OpenSeries;

/// The members of a group with samples in a generation.
#[derive(Debug)]
pub struct Share {
    pub group: SeriesId,
    /// Member number in the group and series number in the index, ordered by member.
    pub members: Vec<(u16, u32)>,
}

/// A group without a series row.
pub struct NewGroup {
    pub id: SeriesId,
    pub members: Vec<u32>,
    pub row: Row,
}

/// Series with samples in the generation and without a home group.
pub fn newcomers(index: &Index, generation: &Generation) -> Vec<u32> {
    let numbers = generation.samples.iter().map(|(number, _)| number);
    numbers.filter(|number| index.home(*number).is_none()).collect()
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

/// For each group, its members with samples in the generation.
pub fn shares(index: &Index, generation: &Generation) -> Vec<Share> {
    let numbers = generation.samples.iter().map(|(number, _)| number);
    let mut places: Vec<(u32, u16, u32)> = numbers
        .filter_map(|number| index.home(number).map(|(group, member)| (group, member, number)))
        .collect();
    places.sort_unstable();
    let share = |places: &[(u32, u16, u32)]| Share {
        group: places.first().map_or(SeriesId(0), |(group, ..)| index.group(*group).id),
        members: places.iter().map(|(_, member, number)| (*member, *number)).collect(),
    };
    places.chunk_by(|a, b| a.0 == b.0).map(share).collect()
}
