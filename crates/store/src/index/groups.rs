//! The groups of series, and the member number of each series in its groups. The chunks of one group are in one partition
//! (`docs/format/keys.md`).

use std::collections::HashMap;
use std::num::NonZero;

use tacho_model::SeriesId;

use super::PAGE;
use super::numbers::{Numbers, SeriesNumber};
use crate::pages::Pages;

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
    groups: Pages<Entry, PAGE>,
    /// The number of the next group.
    next: GroupNumber,
    numbers: Numbers,
    /// The home group of each series, by series number: the group into whose chunks flushes write its samples.
    homes: Pages<Home, PAGE>,
    /// Further groups of a series. Few series have any.
    others: HashMap<SeriesNumber, Vec<Place>>,
}

#[derive(Debug)]
struct Entry {
    id: [u8; 16],
    members: Box<[SeriesNumber]>,
}

/// A [`Place`] with room for `None` in its eight bytes.
#[derive(Clone, Copy, Debug)]
struct Home {
    /// The number of the group, plus 1.
    group: NonZero<u32>,
    member: u16,
}

impl Home {
    fn new((group, member): Place) -> Option<Self> {
        Some(Self { group: NonZero::new(group.wrapping_add(1))?, member })
    }

    const fn place(self) -> Place {
        (self.group.get() - 1, self.member)
    }
}

fn id_at(groups: &Pages<Entry, PAGE>, number: GroupNumber) -> SeriesId {
    SeriesId(groups.get(number).map_or(0, |group| u128::from_be_bytes(group.id)))
}

impl Groups {
    /// Adds a group and returns its number. A known group is not changed.
    pub fn add(&mut self, id: SeriesId, members: &[SeriesNumber]) -> GroupNumber {
        if let Some(known) = self.number(id) {
            return known;
        }
        let number = self.next;
        self.next = number.saturating_add(1);
        self.groups.insert(number, Entry { id: id.to_bytes(), members: members.into() });
        let Self { groups, numbers, .. } = self;
        numbers.insert(id, number, |n| id_at(groups, n));
        for (series, member) in members.iter().zip(0..) {
            self.settle(*series, (number, member));
        }
        number
    }

    fn settle(&mut self, series: SeriesNumber, place: Place) {
        match (self.homes.get(series), Home::new(place)) {
            (None, Some(home)) => self.homes.insert(series, home),
            _ => self.others.entry(series).or_default().push(place),
        }
    }

    /// Removes a group. Its number is not reused. If the group was the home of a member, one of the member's other groups becomes
    /// its home.
    pub fn remove(&mut self, number: GroupNumber) {
        let Some(entry) = self.groups.get(number) else { return };
        let id = SeriesId(u128::from_be_bytes(entry.id));
        let Self { groups, numbers, .. } = self;
        numbers.remove(id, |n| id_at(groups, n));
        let Some(Entry { members, .. }) = self.groups.remove(number) else { return };
        for series in members {
            let mut others = self.others.remove(&series).unwrap_or_default();
            others.retain(|(group, _)| *group != number);
            if self.home(series).is_some_and(|(group, _)| group == number) {
                self.homes.remove(series);
                if !others.is_empty() {
                    self.settle(series, others.remove(0));
                }
            }
            if !others.is_empty() {
                self.others.insert(series, others);
            }
        }
    }

    /// Numbers of all groups that were not removed.
    pub fn numbers(&self) -> impl Iterator<Item = GroupNumber> {
        (0..self.next).filter(|number| self.groups.get(*number).is_some())
    }

    /// A group. A removed group has no members.
    pub fn get(&self, number: GroupNumber) -> Group<'_> {
        let members = self.groups.get(number).map_or(&[][..], |group| &group.members);
        Group { id: id_at(&self.groups, number), members }
    }

    pub fn number(&self, id: SeriesId) -> Option<GroupNumber> {
        self.numbers.find(id, |n| id_at(&self.groups, n))
    }

    pub fn home(&self, series: SeriesNumber) -> Option<Place> {
        self.homes.get(series).map(|home| home.place())
    }

    /// All places of a series, the home first.
    pub fn of(&self, series: SeriesNumber) -> impl Iterator<Item = Place> {
        let others = self.others.get(&series).into_iter().flatten().copied();
        self.home(series).into_iter().chain(others)
    }
}
