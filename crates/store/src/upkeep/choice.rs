//! Chooses which adjacent rows of a partition to merge.
//!
//! Rows are sorted by size into levels. A row of level 0 has full size; a row of level `n` has at least
//! `full size / fan_in^n`. Adjacent rows of similar level are merged when there are `fan_in` of them, or as soon
//! as they fill a chunk. A record is therefore rewritten once per level. With 180 samples per flush, 8,192 per chunk
//! and a `fan_in` of 8, a record is rewritten twice.
//!
//! A merge may start only at a clean boundary: no earlier row of the same members reaches over it. Otherwise an old value
//! could replace a newer one. A merge may end anywhere; records after its end stay in a row of their own generation. If
//! the end would be inside a row with moved times (times that a rule changed, `merge/lossy.rs`), the merge ends a little
//! earlier. Then no sample on one side of the end can be a resent copy of a sample on the other side (`group/resent.rs`).

use std::ops::Range;

use tacho_model::Timestamp;

use super::facts::{Facts, Next, State};
use super::joints::Joints;
use crate::group::row::GROUP_MEMBERS_MAX;

/// Minimum number of values of a row that is rewritten alone. With fewer values, the prefix of a merged row is larger
/// than the saving.
const LONE_VALUES_MIN: usize = 256;

/// Whether the next row can be in the same chunk.
fn share_chunk(row: &Facts, next: &Facts, aim: &Aim) -> bool {
    let near = next.end.abs_diff(row.key.start) <= aim.span_max || next.key.start <= row.end;
    row.bucket == next.bucket && near
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Only merges that the levels justify.
    Tiered,
    /// Also merges several adjacent rows that are too few for `Tiered`, unless the largest row has more than four times the
    /// records of all others together.
    Finish,
    /// Every merge that results in fewer or smaller rows.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    pub mode: Mode,
    pub records: usize,
    /// Longest time that a chunk may cover, ns. A chunk that covers most of this time counts as full, regardless of its
    /// records.
    pub span_max: u64,
    /// Number of adjacent rows of one level at which they are merged.
    pub fan_in: usize,
    /// Limit on the values that one merge decodes. Bounds its memory.
    pub values_max: usize,
    /// Whether the order of overlapping rows matters; false for executions.
    pub ordered: bool,
}

/// A merge of the records of these rows up to and including `until`. Later records stay unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    pub rows: Range<usize>,
    pub until: Timestamp,
}

/// Chooses merges of `rows`, which are sorted by start. The merges are in order of time and have no rows in common.
/// Boundaries before `floor` are not trusted, because unknown earlier rows may reach over them. `next` is the first row
/// after `rows`.
pub fn choose(rows: &[Facts], floor: Timestamp, next: Option<Next>, aim: &Aim) -> Vec<Merge> {
    let joints = Joints::new(rows, floor, next, aim.ordered);
    let levels: Vec<u32> = (0..rows.len()).map(|at| level(rows, at, aim)).collect();
    let mut chosen: Vec<Merge> = Vec::new();
    for run in runs(rows, &joints, &levels, aim) {
        let Some(wanted) = wanted(rows, run, &levels, aim) else { continue };
        let known = chosen.last().map_or(0, |before| before.rows.end);
        let Some(first) = joints.clean_before(wanted.start, known) else { continue };
        let last = bounded(rows, first..wanted.end, aim.values_max, &joints);
        let whole = joints.is_clean(last);
        let until = if whole { Timestamp::MAX } else { cut_before(rows, first..last, &joints) };
        if rows.get(first).is_none_or(|first| until < first.key.start) {
            continue;
        }
        chosen.push(Merge { rows: first..last, until });
        // The rest of a row that was cut belongs to the next merge, which must first read this
        // rest.
        if !whole {
            break;
        }
    }
    chosen
}

/// Start of the part at the end of the partition that is not in full chunks. Later rows may be merged with it. Always a
/// clean boundary. `None` if the last chunk is full, or if no boundary is trusted.
pub fn unfinished(rows: &[Facts], floor: Timestamp, merges: &[Merge], aim: &Aim) -> Option<Timestamp> {
    let joints = Joints::new(rows, floor, None, aim.ordered);
    let merge_of = |at: usize| merges.iter().find(|merge| merge.rows.contains(&at));
    let full = |at: usize| match merge_of(at) {
        Some(merge) => {
            let merged = rows.get(merge.rows.clone()).unwrap_or_default().iter();
            merged.map(|row| row.records).sum::<usize>() >= aim.records / 3 * 2
        }
        None => level(rows, at, aim) == 0,
    };
    let first = (0..rows.len()).rev().take_while(|at| !full(*at)).last()?;
    let first = joints.clean_before(first, 0)?;
    rows.get(first).map(|row| row.key.start)
}

/// The time from which rows must be read before a merge may start at `floor`. This is the earlier of two times: the start
/// of the first row that reaches over `floor` from before, and the earliest time to which a row after `floor` reaches
/// back. `None` if no row reaches over `floor`.
pub fn reaches_over(rows: &[Facts], floor: Timestamp, ordered: bool) -> Option<Timestamp> {
    let over = rows.iter().map(|row| (row.key.start, row.reach()));
    let over = over.filter(|(start, reach)| ordered && reach.start < floor && floor <= reach.end.max(*start));
    over.map(|(start, reach)| if start < floor { start } else { reach.start }).min()
}

/// The merge that cuts a set of overlapping rows that is too large for a window. The rows overlap each other and the rows from
/// `next` on. `None` if there is a clean boundary after its first row, if unknown earlier rows may overlap the set, or if the cut
/// would be before its first row.
pub fn cut_through(rows: &[Facts], floor: Timestamp, next: Next, aim: &Aim) -> Option<Merge> {
    let joints = Joints::new(rows, floor, Some(next), aim.ordered);
    let first = rows.first()?;
    if !joints.is_clean(0) || (1..=rows.len()).any(|at| joints.is_clean(at)) {
        return None;
    }
    let last = bounded(rows, 0..rows.len(), aim.values_max, &joints);
    let until = cut_before(rows, 0..last, &joints);
    (until >= first.key.start).then_some(Merge { rows: 0..last, until })
}

/// Start of the next window: the last clean boundary between these rows or after them. All of them start before `next`.
/// `None` if all rows overlap, because the next window would start like this one.
pub fn resumes(rows: &[Facts], floor: Timestamp, next: Next, ordered: bool) -> Option<Timestamp> {
    let joints = Joints::new(rows, floor, Some(next), ordered);
    let start = |at: usize| rows.get(at).map_or(next.start, |row| row.key.start);
    let boundaries = (0..=rows.len()).rev().filter(|at| joints.is_clean(*at)).map(start);
    let first = rows.first().map_or(Timestamp::MIN, |row| row.key.start);
    boundaries.take_while(|start| *start > first).find(|start| *start >= floor)
}

/// The time at which a merge of these rows ends. No sample on one side of this time may be a resent copy of a sample on
/// the other side.
fn cut_before(rows: &[Facts], merged: Range<usize>, joints: &Joints) -> Timestamp {
    let Some(reach) = joints.behind(merged.end) else { return Timestamp::MAX };
    let last = reach.saturating_sub(1);
    let crosses = |row: &&Facts| row.end.saturating_add_unsigned(row.error) > last;
    let moved = rows.get(merged).unwrap_or_default().iter().filter(crosses).map(|row| row.error).max();
    last.saturating_sub_unsigned(moved.unwrap_or(0))
}

/// Runs of adjacent rows that need work: too small, due, or overlapping.
fn runs(rows: &[Facts], joints: &Joints, levels: &[u32], aim: &Aim) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    // Rows before the first trusted boundary are not changed.
    let first = (0..rows.len()).find(|at| joints.is_clean(*at)).unwrap_or(rows.len());
    for (at, (row, level)) in rows.iter().zip(levels).enumerate().skip(first) {
        if row.state == State::Sound && *level == 0 && !joints.is_bound(at) {
            continue;
        }
        let before = at.checked_sub(1).and_then(|before| rows.get(before));
        let joins = |run: &&mut Range<usize>| {
            run.end == at && before.is_some_and(|before| share_chunk(before, row, aim))
        };
        match runs.last_mut().filter(joins) {
            Some(run) => run.end = at + 1,
            None => runs.push(at..at + 1),
        }
    }
    runs
}

/// The level of a row. A full row that a merge wrote has level 0. Rows of each higher level are `fan_in` times smaller. A full
/// row that a flush wrote has level 1 if the order matters, else level 0.
fn level(rows: &[Facts], at: usize, aim: &Aim) -> u32 {
    let Some([row, later @ ..]) = rows.get(at..) else { return 0 };
    // Whether the merge that wrote the row continued with `next`. The row was then full by some limit of a chunk.
    let cut = |next: &Facts| row.is_sibling(next) && row.conflicts(next);
    let span = row.end.abs_diff(row.key.start);
    let full = row.records.saturating_mul(3) >= aim.records.saturating_mul(2) || span >= aim.span_max / 4 * 3;
    if row.replacement.is_some() && later.iter().take(GROUP_MEMBERS_MAX).any(cut) {
        return 0;
    }
    if full {
        return u32::from(aim.ordered && row.replacement.is_none());
    }
    let (mut level, mut records) = (1, row.records.max(1).saturating_mul(aim.fan_in.max(2)));
    while records < aim.records {
        records = records.saturating_mul(aim.fan_in.max(2));
        level += 1;
    }
    level
}

/// The rows of a run that are merged now.
fn wanted(rows: &[Facts], run: Range<usize>, levels: &[u32], aim: &Aim) -> Option<Range<usize>> {
    let part = rows.get(run.clone())?;
    let first = part.first()?;
    if let Some(due) = part.iter().position(|row| row.state != State::Sound) {
        let length = part.iter().skip(due).take_while(|row| row.state != State::Sound).count();
        return Some(run.start + due..run.start + due + length);
    }
    let lanes = lanes(part);
    let small = part.iter().zip(levels.get(run.clone())?).filter(|(_, level)| **level > 0);
    let records = small.map(|(row, _)| row.records).sum::<usize>() / lanes;
    let pays = match aim.mode {
        Mode::All if part.len() == 1 => first.replacement.is_none() && first.values >= LONE_VALUES_MIN,
        Mode::All => part.iter().any(|row| row.replacement.is_none() || !row.is_sibling(first)),
        _ if records >= aim.records => true,
        Mode::Finish => finishes(part),
        Mode::Tiered => false,
    };
    if pays { Some(run) } else { run_of_level(rows, run, aim.fan_in.max(2) * lanes, levels, aim) }
}

/// Number of distinct sets of members among the rows. Each flush adds a row per set.
fn lanes(part: &[Facts]) -> usize {
    let mut members: Vec<u64> = part.iter().map(|row| row.members).collect();
    members.sort_unstable();
    members.dedup();
    members.len().max(1)
}

/// Whether there are several rows, and the largest has at most four times the records of all other rows
/// together.
fn finishes(part: &[Facts]) -> bool {
    let largest = part.iter().map(|row| row.records).max().unwrap_or(0);
    let all: usize = part.iter().map(|row| row.records).sum();
    part.len() > 1 && (all - largest).saturating_mul(4) >= largest
}

/// Whether the merged row is much larger than its largest source. If it is not, the merge mostly copies that source.
fn grows(part: &[Facts], aim: &Aim) -> bool {
    let largest = part.iter().map(|row| row.records).max().unwrap_or(0);
    part.iter().map(|row| row.records).sum::<usize>() >= largest.saturating_mul(aim.fan_in.max(4) / 2)
}

/// For each level, from the highest (the smallest rows) down: finds the first run of at least `count` adjacent rows of this
/// level or above. The merged row must be much larger than the largest row of the run ([`grows`]).
fn run_of_level(
    rows: &[Facts],
    run: Range<usize>,
    count: usize,
    levels: &[u32],
    aim: &Aim,
) -> Option<Range<usize>> {
    let levels = levels.get(run.clone())?;
    let highest = levels.iter().copied().max().unwrap_or(0);
    (1..=highest).rev().find_map(|wanted| {
        let mut from = 0;
        for (at, level) in levels.iter().chain([&0]).enumerate() {
            if *level >= wanted {
                continue;
            }
            let found = run.start + from..run.start + at;
            if found.len() >= count && rows.get(found.clone()).is_some_and(|rows| grows(rows, aim)) {
                return Some(found);
            }
            from = at + 1;
        }
        None
    })
}

/// The position after the last row of a merge that stays below the limit of values. At least one row is merged. Rows with the
/// same start are merged together, because they are replaced together. Rows just before a row with moved times are merged with
/// that row. Otherwise the merge would end before them ([`cut_before`]).
fn bounded(rows: &[Facts], range: Range<usize>, values_max: usize, joints: &Joints) -> usize {
    let (mut values, mut together) = (0usize, Timestamp::MIN);
    let mut at = range.start;
    while let Some(row) = rows.get(at) {
        let is_torn = at > range.start && joints.behind(at).is_some_and(|reach| reach <= together);
        values = values.saturating_add(row.values);
        let is_enough = at >= range.end || at > range.start && values > values_max;
        if is_enough && !is_torn {
            break;
        }
        together = together.max(row.key.start.saturating_add_unsigned(row.error));
        at += 1;
    }
    at
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "the expected choices are lists of ranges")]
mod tests {
    use tacho_model::TimeRange;

    use super::*;
    use crate::group::resent::Overhang;
    use crate::group::row::Replacement;
    use crate::keys::{ChunkKey, Span};

    const AIM: Aim = Aim {
        mode: Mode::Tiered,
        records: 100,
        span_max: 1_000_000,
        fan_in: 4,
        values_max: 1_000,
        ordered: true,
    };

    /// Merge number 0 means a row that no merge wrote.
    fn row(start: i64, end: i64, records: usize, merge: u64) -> Facts {
        let key = ChunkKey { span: Span::Short, start, generation: 1, number: 0 };
        let replacement =
            (merge > 0).then_some(Replacement { merge, starts: TimeRange::new(start, start), through: 1 });
        Facts {
            key,
            end,
            error: 0,
            overhang: Overhang::default(),
            records,
            values: records,
            members: 1,
            bucket: 0,
            replacement,
            state: State::Sound,
        }
    }

    /// Adjacent rows with these numbers of records. Each row covers ten units of time.
    fn side_by_side(records: &[usize]) -> Vec<Facts> {
        records.iter().zip(0..).map(|(records, at)| row(at * 10, at * 10 + 9, *records, 1)).collect()
    }

    fn check(rows: &[Facts], aim: Aim, expect: &[(Range<usize>, i64)]) {
        let chosen: Vec<_> =
            choose(rows, i64::MIN, None, &aim).into_iter().map(|m| (m.rows, m.until)).collect();
        assert_eq!(chosen, expect);
    }

    const END: i64 = i64::MAX;

    #[test]
    fn rows_of_one_level_are_merged_when_there_are_enough() {
        check(&side_by_side(&[5, 5, 5]), AIM, &[]);
        check(&side_by_side(&[5, 5, 5, 5]), AIM, &[(0..4, END)]);
        check(&side_by_side(&[20, 5, 5, 5, 5]), AIM, &[(1..5, END)]);
        check(&side_by_side(&[20, 5, 5, 5]), AIM, &[]);
        check(&side_by_side(&[20, 5, 5, 18]), AIM, &[(0..4, END)]);
        check(&side_by_side(&[100, 5, 5, 5, 5, 100, 1, 1, 1, 1]), AIM, &[(1..5, END), (6..10, END)]);
    }

    #[test]
    fn a_full_chunk_is_merged_once() {
        check(&side_by_side(&[30, 30, 30, 12]), AIM, &[(0..4, END)]);
        check(&side_by_side(&[100, 67, 200]), AIM, &[]);
        check(&[row(0, 9, 100, 0)], AIM, &[(0..1, END)]);
        check(&[row(0, 900_000, 3, 1), row(900_001, 900_002, 3, 1)], AIM, &[]);
    }

    #[test]
    fn the_mode_decides_which_small_groups_are_merged() {
        let finish = Aim { mode: Mode::Finish, ..AIM };
        let all = Aim { mode: Mode::All, ..AIM };
        check(&side_by_side(&[20, 5]), finish, &[(0..2, END)]);
        check(&side_by_side(&[21, 5]), finish, &[]);
        check(&side_by_side(&[21]), finish, &[]);
        check(&side_by_side(&[60, 1]), all, &[(0..2, END)]);
        let lone = |values, merge| [Facts { values, ..row(0, 9, 5, merge) }];
        check(&lone(LONE_VALUES_MIN, 0), all, &[(0..1, END)]);
        check(&lone(LONE_VALUES_MIN - 1, 0), all, &[]);
        check(&lone(LONE_VALUES_MIN, 1), all, &[]);
    }

    #[test]
    fn a_merge_starts_at_a_clean_boundary_and_ends_anywhere() {
        let chain = |n: i64| -> Vec<Facts> { (0..n).map(|at| row(at * 10, at * 10 + 12, 5, 0)).collect() };
        check(&chain(4), AIM, &[(0..4, END)]);
        let large = Aim { values_max: 12, ..AIM };
        check(&chain(6), large, &[(0..2, 19)]);
        let known = choose(&chain(4), i64::MIN, Some(Next::at(35)), &AIM);
        assert_eq!(known, [Merge { rows: 0..4, until: 34 }]);
        // Late rows within the time range of a full row.
        let mut late = vec![row(0, 99, 100, 1)];
        late.extend((0..4).map(|at| row(20 + at, 50, 1, 0)));
        check(&late, AIM, &[(0..5, END)]);
        check(&late[..3], AIM, &[]);
        check(&late[..3], Aim { mode: Mode::All, ..AIM }, &[(0..3, END)]);
    }

    /// A row with times that may be off by 3, and an overhang of 2.
    fn moved(start: i64, end: i64) -> Facts {
        Facts { error: 3, overhang: Overhang { before: 2, after: 2 }, ..row(start, end, 5, 1) }
    }

    #[test]
    fn possible_copies_are_merged_with_their_originals() {
        let due = |start, end| Facts { state: State::Due, ..row(start, end, 100, 1) };
        // A sample at 33 may be a copy of the last moved sample; a sample at 34 cannot.
        check(&[moved(10, 31), due(33, 39)], AIM, &[(0..2, END)]);
        check(&[moved(10, 31), due(34, 39)], AIM, &[(1..2, END)]);
        check(&[due(0, 8), moved(10, 31)], AIM, &[(0..1, 7)]);
        check(&[due(0, 7), moved(10, 31)], AIM, &[(0..1, END)]);
        let reaches_over = |floor| super::reaches_over(&[moved(10, 31)], floor, true);
        assert_eq!([8, 9, 33, 34].map(reaches_over), [None, Some(8), Some(10), None]);
    }

    #[test]
    fn a_merge_ends_before_possible_resent_samples() {
        let large = Aim { values_max: 12, ..AIM };
        let chain = |n: i64| -> Vec<Facts> { (0..n).map(|at| row(at * 10, at * 10 + 12, 5, 0)).collect() };
        let mut rows = chain(6);
        // The moved row may reach over the end at 19, so the merge ends 3 earlier.
        rows[1] = moved(10, 31);
        check(&rows, large, &[(0..2, 16)]);
        // The next row has moved times and reaches back by 2.
        let mut rows = chain(6);
        rows[2] = moved(20, 31);
        check(&rows, large, &[(0..2, 17)]);
        // Rows that start where the merge would have to end are included.
        let near = [moved(0, 90), row(2, 14, 20, 0), row(3, 20, 20, 0), row(30, 50, 20, 0)];
        check(&near, Aim { mode: Mode::All, ..large }, &[(0..3, 26)]);
    }

    #[test]
    fn rows_with_the_same_start_are_merged_together() {
        let rows: Vec<Facts> = (0..6).map(|_| row(0, 5, 300, 0)).collect();
        check(&rows, AIM, &[(0..6, END)]);
    }

    #[test]
    fn overlaps_of_unordered_records_do_not_restrict_merges() {
        let chain: Vec<Facts> = (0..6).map(|at| row(at * 10, at * 10 + 12, 5, 0)).collect();
        let aim = Aim { ordered: false, values_max: 12, ..AIM };
        check(&chain, aim, &[(0..2, END)]);
        let mut rows = vec![row(0, 99, 100, 1)];
        rows.extend((0..3).map(|at| row(20 + at, 50, 1, 0)));
        check(&rows, aim, &[]);
        check(&[row(0, 9, 100, 0), row(5, 14, 100, 0)], aim, &[]);
    }

    #[test]
    fn rows_that_cannot_share_a_chunk_are_not_merged() {
        let days: Vec<Facts> =
            (0..8).map(|at| Facts { bucket: at / 2, ..row(at * 10, at * 10 + 9, 5, 0) }).collect();
        check(&days, AIM, &[]);
        check(
            &days,
            Aim { fan_in: 2, ordered: false, ..AIM },
            &[(0..2, END), (2..4, END), (4..6, END), (6..8, END)],
        );
        let twin = |start| Facts { values: 300, ..row(start, 9, 5, 0) };
        let mut twins = vec![twin(0), twin(0), twin(5)];
        twins[1].bucket = 1;
        check(&twins, Aim { mode: Mode::All, ordered: false, ..AIM }, &[(0..2, END), (2..3, END)]);
        let far: Vec<Facts> = (0..8).map(|at| row(at * 2_000_000, at * 2_000_000 + 9, 5, 0)).collect();
        check(&far, AIM, &[]);
    }

    #[test]
    fn cuts_of_a_merge_are_kept() {
        let replacement = Some(Replacement { merge: 1, starts: TimeRange::new(0, 90), through: 1 });
        let rows: Vec<Facts> =
            side_by_side(&[5; 8]).into_iter().map(|row| Facts { replacement, ..row }).collect();
        check(&rows, AIM, &[]);
        check(&rows, Aim { mode: Mode::All, ..AIM }, &[]);
        check(&[&rows[..], &[row(80, 80, 1, 0)]].concat(), Aim { mode: Mode::All, ..AIM }, &[(7..9, END)]);
    }

    #[test]
    fn the_part_that_is_not_in_full_chunks_starts_at_a_clean_boundary() {
        let unfinished = |rows: &[Facts]| {
            let merges = choose(rows, i64::MIN, None, &AIM);
            super::unfinished(rows, i64::MIN, &merges, &AIM)
        };
        assert_eq!(unfinished(&side_by_side(&[100, 5, 5])), Some(10));
        assert_eq!(unfinished(&side_by_side(&[100, 5, 5, 5, 5])), Some(10));
        assert_eq!(unfinished(&side_by_side(&[100, 50, 50])), None);
        assert_eq!(unfinished(&[]), None);
        let mut reaching = side_by_side(&[100, 5]);
        reaching[0].end = 15;
        assert_eq!(unfinished(&reaching), Some(0));
    }

    #[test]
    fn the_next_window_starts_at_a_clean_boundary() {
        let seen = |rows: &[Facts]| {
            let next = Next::at(40);
            let cut = super::cut_through(rows, i64::MIN, next, &AIM).map(|merge| (merge.rows, merge.until));
            (super::resumes(rows, i64::MIN, next, true), cut)
        };
        let mut rows = side_by_side(&[5; 4]);
        assert_eq!(seen(&rows), (Some(40), None));
        rows[3].end = 45;
        assert_eq!(seen(&rows), (Some(30), None));
        rows[0].end = 45;
        assert_eq!(seen(&rows), (None, Some((0..4, 39))));
        rows[1].values = 2_000;
        assert_eq!(seen(&rows).1, Some((0..1, 9)));
        rows[0].members = 2;
        assert_eq!(
            seen(&rows).0,
            None,
            "the next window started, although later rows may have the same members"
        );
        assert_eq!(super::resumes(&rows, i64::MIN, Next::at(40), false), Some(40));
        assert_eq!(super::resumes(&[], 50, Next::at(40), true), None);
    }

    #[test]
    fn due_rows_are_rewritten_without_sound_rows_that_do_not_overlap_them() {
        let mut rows = side_by_side(&[100, 100, 100, 5]);
        rows[1].state = State::Due;
        check(&rows, AIM, &[(1..2, END)]);
        rows[0].state = State::Expired;
        check(&rows, AIM, &[(0..2, END)]);
        rows[2].end = 35;
        rows[1].state = State::Sound;
        rows[3].state = State::Due;
        check(&rows, AIM, &[(0..1, END), (2..4, END)]);
    }

    #[test]
    fn boundaries_before_the_floor_are_not_trusted() {
        let mut rows = side_by_side(&[5, 5, 5, 5, 5, 5, 5, 5]);
        let floor = |rows: &[Facts], floor| {
            let chosen = choose(rows, floor, None, &AIM).into_iter().map(|m| m.rows);
            (chosen.collect::<Vec<_>>(), reaches_over(rows, floor, true))
        };
        assert_eq!(floor(&rows, 0), (vec![0..8], None));
        assert_eq!(floor(&rows, 20), (vec![2..8], None));
        assert_eq!(floor(&rows, 50), (vec![], None));
        rows[1].end = 25;
        assert_eq!(floor(&rows, 20), (vec![3..8], Some(10)));
    }

    #[test]
    fn members_with_separate_times_do_not_restrict_each_others_merges() {
        let sibling = |start, members| {
            let replacement = Some(Replacement { merge: 1, starts: TimeRange::new(0, 50), through: 1 });
            Facts { members, replacement, ..row(start, start + 99, 100, 1) }
        };
        check(&[sibling(0, 1), sibling(2, 2)], Aim { mode: Mode::All, ..AIM }, &[]);
        check(&[sibling(0, 1), sibling(2, 1)], Aim { mode: Mode::All, ..AIM }, &[]);
        let late = row(60, 61, 1, 0);
        check(&[sibling(0, 1), sibling(2, 1), late], Aim { mode: Mode::All, ..AIM }, &[(0..3, END)]);
        check(&[sibling(0, 1), sibling(2, 2), late], Aim { mode: Mode::All, ..AIM }, &[(0..3, END)]);
        let late = Facts { members: 2, ..late };
        check(&[sibling(0, 1), sibling(2, 2), late], Aim { mode: Mode::All, ..AIM }, &[(1..3, END)]);
        let lanes = |n: i64| -> Vec<Facts> {
            (0..n)
                .map(|at| Facts {
                    members: 1 << (at % 2),
                    ..row(at / 2 * 10 + at % 2, at / 2 * 10 + 9, 5, 0)
                })
                .collect()
        };
        check(&lanes(6), AIM, &[]);
        check(&lanes(8), AIM, &[(0..8, END)]);
    }
}
