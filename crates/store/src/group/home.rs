//! Assigns the series of samples of a generation to groups. Every series has a home group before its chunks are written.
//!
//! ```text
//!   newcomers -> form.rs -> series rows -> index -> shares (members per group) -> seal/samples.rs
//! ```
//! The series rows determine the groups. A flush that is repeated after a crash finds the groups that were written and
//! forms the other groups again. All chunks are written after these rows.

use std::collections::HashMap;
use std::sync::Arc;

use tacho_model::{Kind, Labels, SeriesId};

use super::form::{Newcomer, Print, form};
use super::row::{group_id, series_row};
use crate::driver::Row;
use crate::generation::Generation;
use crate::guarded::Guarded;
use crate::index::{Index, labels_of_all};
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

/// Series of samples without a home group.
pub fn newcomers(index: &Guarded<Index>, generation: &Generation) -> Vec<(u32, Arc<Labels>)> {
    let numbers: Vec<u32> = generation.samples.iter().map(|(number, _)| number).collect();
    let is_homeless = |index: &Index, number| index.home(number).is_none();
    labels_of_all(index, &numbers, is_homeless, &|| true).unwrap_or_default()
}

/// Forms groups of the series from the times in `samples`. `assume` may change the summary of the times. Takes long for many
/// series.
pub fn groups(
    samples: &OpenSeries,
    series: &[(u32, Arc<Labels>)],
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
    let mut newcomers: Vec<(u32, &Labels, Print)> = Vec::with_capacity(series.len());
    for (number, labels) in series {
        newcomers.push((*number, labels, print(*number)));
    }
    let labels: HashMap<u32, &Labels> =
        newcomers.iter().map(|(number, labels, _)| (*number, *labels)).collect();
    let newcomers =
        newcomers.iter().map(|(number, labels, times)| Newcomer { number: *number, labels, times: *times });
    let group = |members: Vec<u32>| {
        let labels: Vec<&Labels> = members.iter().filter_map(|number| labels.get(number).copied()).collect();
        let ids: Vec<SeriesId> = labels.iter().map(|labels| labels.id()).collect();
        let id = group_id(&ids);
        NewGroup { id, members, row: series_row(Kind::Sample, id, &labels) }
    };
    form(newcomers.collect()).into_iter().map(group).collect()
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
