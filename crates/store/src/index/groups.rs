//! The groups of series, and the member number of each series in its groups. The chunks of one group are in one partition
//! (`docs/format/keys.md`).

use std::collections::HashMap;

use tacho_model::SeriesId;

use super::numbers::{Numbers, SeriesNumber, as_number};

/// Number of a group in the index. Rises from 0; valid only in this process.
pub type GroupNumber = u32;

/// A group of series that share their times. The position of a series is its member number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// Key of the group's partition.
    pub id: SeriesId,
    pub members: &'a [SeriesNumber],
}

pub type Place = (GroupNumber, u16);

#[derive(Debug, Default)]
pub struct Groups {
    groups: Vec<Entry>,
    /// Members of all groups, concatenated.
    members: Vec<SeriesNumber>,
    numbers: Numbers,
    /// The home group of each series, by series number: the group into whose chunks flushes write its samples. [`NO_HOME`] if the
    /// series has no group.
    homes: Vec<(GroupNumber, u16)>,
    /// Further groups of a series. Few series have any.
    others: HashMap<SeriesNumber, Vec<Place>>,
}

#[derive(Debug)]
struct Entry {
    id: [u8; 16],
    /// End of the group's members in `members`.
    end: u32,
}

const NO_HOME: GroupNumber = GroupNumber::MAX;

#[expect(clippy::indexing_slicing, reason = "every number is a position, and entries are not removed")]
fn id_at(groups: &[Entry], number: GroupNumber) -> SeriesId {
    SeriesId(u128::from_be_bytes(groups[number as usize].id))
}

impl Groups {
    /// Adds a group and returns its number. A known group is not changed.
    pub fn add(&mut self, id: SeriesId, members: &[SeriesNumber]) -> GroupNumber {
        if let Some(known) = self.number(id) {
            return known;
        }
        let number = as_number(self.groups.len());
        self.members.extend_from_slice(members);
        self.groups.push(Entry { id: id.to_bytes(), end: as_number(self.members.len()) });
        let Self { groups, numbers, .. } = self;
        numbers.insert(id, number, |n| id_at(groups, n));
        for (series, member) in members.iter().zip(0..) {
            self.settle(*series, (number, member));
        }
        number
    }

    fn settle(&mut self, series: SeriesNumber, place: Place) {
        let at = series as usize;
        if at >= self.homes.len() {
            self.homes.resize(at + 1, (NO_HOME, 0));
        }
        match self.homes.get_mut(at) {
            Some(home) if home.0 == NO_HOME => *home = place,
            _ => self.others.entry(series).or_default().push(place),
        }
    }

    /// Removes the places of a group's members. The group number is not reused. If the group was the home of a member,
    /// one of the member's other groups becomes its home.
    pub fn remove(&mut self, number: GroupNumber) {
        let Group { id, members } = self.get(number);
        let members = members.to_vec();
        let Self { groups, numbers, .. } = self;
        if numbers.find(id, |n| id_at(groups, n)) != Some(number) {
            return;
        }
        numbers.remove(id, |n| id_at(groups, n));
        for series in members {
            let others = self.others.entry(series).or_default();
            others.retain(|(group, _)| *group != number);
            let Some(home) = self.homes.get_mut(series as usize) else { continue };
            if home.0 == number {
                *home = if others.is_empty() { (NO_HOME, 0) } else { others.remove(0) };
            }
            if others.is_empty() {
                self.others.remove(&series);
            }
        }
    }

    /// Numbers of all groups that were not removed.
    pub fn numbers(&self) -> impl Iterator<Item = GroupNumber> {
        (0..as_number(self.groups.len())).filter(|n| self.number(self.get(*n).id) == Some(*n))
    }

    #[expect(clippy::indexing_slicing, reason = "every number is a position, and entries are not removed")]
    pub fn get(&self, number: GroupNumber) -> Group<'_> {
        let at = number as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.groups[before].end as usize);
        let Entry { id, end } = &self.groups[at];
        Group { id: SeriesId(u128::from_be_bytes(*id)), members: &self.members[start..*end as usize] }
    }

    pub fn number(&self, id: SeriesId) -> Option<GroupNumber> {
        self.numbers.find(id, |n| id_at(&self.groups, n))
    }

    pub fn home(&self, series: SeriesNumber) -> Option<Place> {
        self.homes.get(series as usize).copied().filter(|(group, _)| *group != NO_HOME)
    }

    /// All places of a series, the home first.
    pub fn of(&self, series: SeriesNumber) -> impl Iterator<Item = Place> {
        let others = self.others.get(&series).into_iter().flatten().copied();
        self.home(series).into_iter().chain(others)
    }
}
