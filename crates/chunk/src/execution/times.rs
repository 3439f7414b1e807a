//! Which times are similar? Times between the same two events, in any shape. Such a pair of events is called a context. Contexts
//! with times of similar size share a column. Entropy coding suits such a column, because its numbers are similar and numerous.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use tacho_model::EventKind;

use super::shape::Shape;

/// A column with at least this number of times justifies the table that an entropy coder stores for each column.
const GROUP_TIMES_MIN: usize = 1_024;
/// Approximate maximum number of columns of times in a chunk. The format permits more (`CHUNK_TIME_GROUPS_MAX`).
const GROUPS: usize = 64;
/// Marks the start of a row, before its first event.
const BEGIN: u64 = u64::MAX;

/// The context of each event of each shape.
pub(super) struct Contexts {
    by_shape: Vec<Vec<u32>>,
    pub(super) len: usize,
}

impl Contexts {
    /// Numbers contexts in the order of their first occurrence, so that the decoder derives the same numbers.
    pub(super) fn new(shapes: &[Arc<Shape>]) -> Self {
        let mut numbers: HashMap<(u64, u64), u32> = HashMap::new();
        let mut of_shape = |shape: &Arc<Shape>| {
            let mut before = BEGIN;
            let mut number = |event| {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                *numbers.entry((std::mem::replace(&mut before, event), event)).or_insert(next)
            };
            events(shape).map(&mut number).collect()
        };
        let by_shape = shapes.iter().map(&mut of_shape).collect();
        Self { by_shape, len: numbers.len() }
    }

    pub(super) fn of(&self, shape: usize) -> &[u32] {
        self.by_shape.get(shape).map_or(&[], Vec::as_slice)
    }
}

/// The events of a shape as numbers: operation, and whether it is entered, exited, or failed.
fn events(shape: &Shape) -> impl Iterator<Item = u64> {
    shape.events().iter().zip(shape.event_calls()).map(|(kind, call)| {
        let operation =
            usize::try_from(*call).ok().and_then(|call| shape.calls().get(call)).map(|c| c.operation);
        let sort = match kind {
            EventKind::Enter(_) => 0,
            EventKind::Exit => 1,
            EventKind::ExitFailed => 2,
        };
        u64::from(operation.unwrap_or_default()) * 3 + sort
    })
}

/// Number and average size of the times of a context.
#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    count: usize,
    /// Sum of the logarithms of (time + 1), in units of 2^-52; see [`logarithm`].
    logarithms: u128,
}

impl Size {
    pub(super) fn add(&mut self, time: u64) {
        self.count += 1;
        self.logarithms += u128::from(logarithm(time));
    }

    #[expect(clippy::cast_precision_loss, reason = "only compared")]
    fn mean(&self) -> f64 {
        self.logarithms as f64 / self.count.max(1) as f64
    }
}

/// The logarithm to base 2 of (time + 1), times 2^52; at most 0.09 * 2^52 too small. It is linear between powers of two
/// (J. N. Mitchell, Computer multiplication and division using binary logarithms, IRE Transactions on Electronic Computers,
/// 1962).
#[expect(clippy::cast_precision_loss, reason = "only compared")]
fn logarithm(time: u64) -> u64 {
    (time as f64 + 1.0).to_bits() - 1.0f64.to_bits()
}

/// Assigns each context to a group. Contexts are sorted by the mean logarithm of their times. A new group starts when the current
/// group has enough times, and at the first mean above 0. Returns the group of each context, and the number of groups.
pub(super) fn group(sizes: &[Size]) -> (Vec<u64>, usize) {
    let total: usize = sizes.iter().map(|size| size.count).sum();
    let enough = GROUP_TIMES_MIN.max(total.div_ceil(GROUPS));
    let mut order: Vec<(f64, usize, usize)> =
        sizes.iter().enumerate().map(|(context, size)| (size.mean(), context, size.count)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));

    let mut groups = vec![0; sizes.len()];
    let (mut group, mut held, mut zeros) = (0u64, 0usize, true);
    for (mean, context, count) in order {
        let still_zero = mean == 0.0;
        if held >= enough || (zeros && !still_zero && held > 0) {
            (group, held) = (group + 1, 0);
        }
        zeros = still_zero;
        held += count;
        if let Some(slot) = groups.get_mut(context) {
            *slot = group;
        }
    }
    let len = usize::try_from(group).unwrap_or(usize::MAX).saturating_add(1);
    (groups, len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::CHUNK_TIME_GROUPS_MAX;

    /// Checks the groups of contexts. Context `n` has `count` times, each of `times[n]` ns.
    fn check(count: usize, times: &[u64], expected: &[u64]) {
        let size = |time: &u64| {
            let mut size = Size::default();
            (0..count).for_each(|_| size.add(*time));
            size
        };
        let sizes: Vec<Size> = times.iter().map(size).collect();
        let (groups, len) = group(&sizes);
        assert_eq!(groups, expected);
        assert_eq!(Some(len as u64 - 1), groups.into_iter().max());
    }

    #[test]
    fn contexts_of_similar_size_share_a_group() {
        check(GROUP_TIMES_MIN, &[900, 5, 70_000], &[1, 0, 2]);
        check(GROUP_TIMES_MIN / 2, &[900, 5, 70_000, 6], &[1, 0, 1, 0]);
        check(1, &[900, 5, 70_000], &[0, 0, 0]);
    }

    #[test]
    fn times_of_zero_have_their_own_group() {
        check(3, &[0, 5, 0, 6], &[0, 1, 0, 1]);
    }

    #[test]
    fn groups_are_limited() {
        for contexts in [1, 64, 65, 66, 67, 1_000] {
            let sizes: Vec<Size> = (0..contexts)
                .map(|n| Size { count: GROUP_TIMES_MIN + n % 2, logarithms: n as u128 })
                .collect();
            assert!(group(&sizes).1 <= CHUNK_TIME_GROUPS_MAX);
        }
    }
}
