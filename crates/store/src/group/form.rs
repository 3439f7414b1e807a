//! Forms groups of series that are flushed for the first time.
//!
//! A series is assigned once, by its labels and times only. The series row that is then written keeps the assignment.

use std::collections::HashMap;

use tacho_chunk::limits::GROUP_MEMBERS_MAX;

use super::order::Ranks;

/// A group with regular times ends where the labels other than the name change, for example at the next host. It
/// ends there only if it has at least this many members, with [`GROUP_SAMPLES_MIN`] samples of each. Regular times take no space,
/// so a larger group would save little, and a read rarely needs the series of both hosts. Irregular times are shared by as many
/// members as possible.
const GROUP_MEMBERS_MIN: usize = 8;
/// With fewer samples of each series, the row of a small group costs more than the samples in it. With one sample, a row of one
/// series takes about 100 bytes, and a row of 64 series takes about 6 bytes per series. Series with so few samples therefore
/// share groups with all series that have the same times, regardless of their labels.
const GROUP_SAMPLES_MIN: usize = 16;

/// Summary of the times of a series. Two series with different times may have equal summaries. Such a collision only
/// costs space, because chunks are formed after a comparison of the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Print {
    count: usize,
    regular: bool,
    hash: u64,
}

impl Print {
    /// Summarises times in any order. Sorts them and removes repetitions, because series written by several senders differ in the
    /// order of arrival.
    pub fn of(at: &mut Vec<i64>) -> Self {
        if !at.is_sorted_by(|a, b| a < b) {
            at.sort_unstable();
            at.dedup();
        }
        // Multiply and rotate 64 bits per step, as FxHash in rustc does. A collision gives no advantage to a hostile
        // sender.
        let mix = |hash: u64, at: &i64| {
            (hash.rotate_left(5) ^ at.cast_unsigned()).wrapping_mul(0x517c_c1b7_2722_0a95)
        };
        let step = at.get(1).zip(at.first()).map(|(second, first)| second.wrapping_sub(*first));
        let mut steps = at.iter().zip(at.get(1..).unwrap_or_default());
        let regular = steps.all(|(before, after)| Some(after.wrapping_sub(*before)) == step);
        Self { count: at.len(), regular, hash: at.iter().fold(0, mix) }
    }

    /// The summary as if the series had at least [`GROUP_SAMPLES_MIN`] samples, with regular or with irregular times.
    pub fn with_many(self, regular: bool) -> Self {
        Self { count: self.count.max(GROUP_SAMPLES_MIN), regular, ..self }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Newcomer<'a> {
    pub number: u32,
    pub ranks: Ranks<'a>,
    pub times: Print,
}

/// Returns the members of each new group. Groups and members are in the order of [`Ranks::key`].
pub fn form(mut newcomers: Vec<Newcomer<'_>>) -> Vec<Vec<u32>> {
    newcomers.sort_unstable_by(|a, b| a.ranks.key().cmp(&b.ranks.key()));
    let mut groups: Vec<Vec<u32>> = Vec::new();
    // For each summary of times, the group that is still growing and the labels of its last member.
    let mut growing: HashMap<Print, (usize, Ranks<'_>)> = HashMap::new();
    for newcomer in newcomers {
        let place = match growing.get(&newcomer.times) {
            Some((place, last))
                if groups.get(*place).is_some_and(|group| !ends(group.len(), last, &newcomer)) =>
            {
                *place
            }
            _ => {
                groups.push(Vec::new());
                groups.len() - 1
            }
        };
        if let Some(group) = groups.get_mut(place) {
            group.push(newcomer.number);
        }
        growing.insert(newcomer.times, (place, newcomer.ranks));
    }
    groups
}

/// Whether a group of this many members ends before the series `next`, which has the same times.
fn ends(members: usize, last: &Ranks<'_>, next: &Newcomer<'_>) -> bool {
    let apart = || last.rest != next.ranks.rest;
    let Print { count, regular, .. } = next.times;
    let is_large_enough = members >= GROUP_MEMBERS_MIN && regular && count >= GROUP_SAMPLES_MIN;
    members >= GROUP_MEMBERS_MAX || (is_large_enough && apart())
}

#[cfg(test)]
mod tests {
    use tacho_model::{Kind, Labels, NAME};

    use super::super::order::Order;
    use super::*;
    use crate::index::Index;

    fn order_of(all: &[Labels]) -> Order {
        let mut index = Index::default();
        let numbers: Vec<u32> =
            all.iter().map(|labels| index.add(Kind::Sample, labels.id(), labels)).collect();
        Order::of(&numbers, || &index)
    }

    /// Each series is written as `name host times`, each expected group as a list of positions.
    fn check(series: &[(&str, &str, &[i64])], expect: &[&[u32]]) {
        let labels: Vec<Labels> = series
            .iter()
            .map(|(name, host, _)| Labels::new([(NAME, *name), ("host", *host)]).unwrap())
            .collect();
        let order = order_of(&labels);
        let newcomers = order.iter().zip(series).zip(0..).map(|((ranks, (_, _, at)), number)| Newcomer {
            number,
            ranks,
            times: Print::of(&mut at.to_vec()),
        });
        assert_eq!(form(newcomers.collect()), expect);
    }

    #[test]
    fn series_with_equal_times_share_a_group_from_the_first_sample_on() {
        let (few, many): (Vec<i64>, Vec<i64>) = ((0..15).collect(), (0..16).collect());
        for at in [&few[..1], &few, &many] {
            check(&[("b", "1", at), ("a", "2", at), ("a", "1", at)], &[&[2, 0, 1]]);
        }
        check(&[("a", "1", &[7]), ("a", "2", &[8]), ("a", "3", &[7])], &[&[0, 2], &[1]]);
        check(&[("a", "1", &many), ("b", "1", &few), ("c", "1", &many)], &[&[0, 2], &[1]]);
        check(&[], &[]);
    }

    #[test]
    fn summaries_ignore_the_order_of_arrival_and_repetitions() {
        assert_eq!(Print::of(&mut vec![3, 1, 2, 2]), Print::of(&mut vec![1, 2, 3]));
        assert_ne!(Print::of(&mut vec![1, 2, 4]), Print::of(&mut vec![1, 2, 3]));
    }

    #[test]
    fn a_group_ends_at_the_next_host_after_8_members_and_always_after_64() {
        let names: Vec<String> = (0..70).map(|n| format!("m{n:02}")).collect();
        let sizes = |at: &[i64], hosts: &[usize]| {
            let series = hosts
                .iter()
                .enumerate()
                .flat_map(|(host, count)| names[..*count].iter().map(move |n| (host, n)));
            let labels: Vec<Labels> = series
                .map(|(host, name)| {
                    Labels::new([(NAME, name.as_str()), ("host", &host.to_string())]).unwrap()
                })
                .collect();
            let times = Print::of(&mut at.to_vec());
            let newcomer = |(number, ranks)| Newcomer { number, ranks, times };
            let order = order_of(&labels);
            form((0..).zip(order.iter()).map(newcomer).collect()).iter().map(Vec::len).collect::<Vec<_>>()
        };
        let regular: Vec<i64> = (0..20).collect();
        for (hosts, expect) in [
            (&[8, 3][..], &[8, 3][..]),
            (&[7, 3, 2], &[10, 2]),
            (&[64], &[64]),
            (&[65, 1], &[64, 2]),
            (&[70], &[64, 6]),
        ] {
            assert_eq!(sizes(&regular, hosts), expect, "{hosts:?}");
        }
        let jitter: Vec<i64> = (0..20).map(|n| n * 10 + n % 3).collect();
        assert_eq!(
            sizes(&jitter, &[8, 3, 50, 9]),
            [64, 6],
            "irregular times must be shared by as many members as possible"
        );
        assert_eq!(
            sizes(&regular[..15], &[8, 3, 50, 9]),
            [64, 6],
            "regular times of few samples must be shared in the same way"
        );
    }

    #[test]
    fn groups_do_not_depend_on_the_order_of_arrival() {
        let at: Vec<i64> = (0..20).collect();
        let labels: Vec<Labels> =
            (0..30).map(|n| Labels::new([(NAME, "m"), ("host", &format!("{n:02}"))]).unwrap()).collect();
        let order = order_of(&labels);
        let ranks: Vec<Ranks<'_>> = order.iter().collect();
        let newcomer = |number: u32| Newcomer {
            number,
            ranks: ranks[number as usize],
            times: Print::of(&mut at.clone()),
        };
        let one_way = form((0..30).map(newcomer).collect());
        assert_eq!(one_way, form((0..30).rev().map(newcomer).collect()));
        assert_eq!(one_way.iter().map(Vec::len).collect::<Vec<_>>(), [8, 8, 8, 6]);
    }
}
