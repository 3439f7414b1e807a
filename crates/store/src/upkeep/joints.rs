//! Clean boundaries between the rows of a partition, in order of time.
//!
//! The order of overlapping rows of samples or entries matters. A row with moved times (times that a rule changed) may
//! reach beyond its first and last time, because samples there that arrive later may be resent copies of its samples
//! (`group/resent.rs`).

use std::ops::Range;

use tacho_model::Timestamp;

use super::facts::{Facts, Next};

/// Boundaries between rows. Each list has one item more than there are rows.
pub struct Joints {
    /// `clean[i]`: no row before row `i` has the same start as row `i` or a later row. If the order matters, no reach of a row
    /// before row `i` overlaps the reach of a conflicting row from `i` on. The reaches of row `i` and all later rows start at
    /// `floor` or later, because unknown earlier rows may reach up to `floor`.
    clean: Vec<bool>,
    /// Like `clean`, but only overlaps of conflicting rows that are not siblings of a merge make an item false.
    settled: Vec<bool>,
    /// The earliest start of the reach of row `i` and all later rows; `None` if there are none.
    behind: Vec<Option<Timestamp>>,
}

fn unset(boundaries: &mut [bool], range: Range<usize>) {
    boundaries.get_mut(range).unwrap_or_default().fill(false);
}

impl Joints {
    pub fn new(rows: &[Facts], floor: Timestamp, next: Option<Next>, ordered: bool) -> Self {
        let mut earliest = next.map(|next| next.reach);
        let mut behind = vec![earliest];
        for row in rows.iter().rev() {
            let start = row.reach().start;
            earliest = Some(earliest.map_or(start, |earliest| earliest.min(start)));
            behind.push(earliest);
        }
        behind.reverse();
        let [clean, settled] = [vec![true; rows.len() + 1], vec![true; rows.len() + 1]];
        let mut joints = Self { clean, settled, behind };
        if let Some(before) = rows.iter().rposition(|row| row.reach().start < floor) {
            unset(&mut joints.clean, 0..before + 1);
        }
        let before_max = rows.iter().map(|row| row.overhang.before).max().unwrap_or(0);
        for (at, row) in rows.iter().enumerate() {
            let end = row.reach().end;
            // Two rows with the same start, or two conflicting rows with overlapping reaches, make all boundaries between them
            // unclean.
            let furthest = end.saturating_add_unsigned(before_max);
            let reached = rows.iter().skip(at + 1).take_while(|later| later.key.start <= furthest);
            for (later, behind) in reached.zip(at + 1..) {
                let together = later.key.start == row.key.start;
                let meets = ordered && later.reach().start <= end && row.conflicts(later);
                if together || meets {
                    unset(&mut joints.clean, at + 1..behind + 1);
                }
                if meets && !row.is_sibling(later) {
                    unset(&mut joints.settled, at + 1..behind + 1);
                }
            }
            if ordered && next.is_some_and(|next| next.reach <= end) {
                unset(&mut joints.clean, at + 1..rows.len() + 1);
            }
        }
        joints
    }

    pub fn behind(&self, at: usize) -> Option<Timestamp> {
        self.behind.get(at).copied().flatten()
    }

    pub fn is_clean(&self, at: usize) -> bool {
        self.clean.get(at).copied().unwrap_or(true)
    }

    /// Whether row `at` is one of two conflicting rows that overlap, or is between them. Two rows of the same merge do not
    /// count.
    pub fn is_bound(&self, at: usize) -> bool {
        [at, at + 1].iter().any(|at| self.settled.get(*at) == Some(&false))
    }

    /// The last clean boundary at or before `at`, but not before `low`.
    pub fn clean_before(&self, at: usize, low: usize) -> Option<usize> {
        (low..=at).rev().find(|boundary| self.is_clean(*boundary))
    }
}
