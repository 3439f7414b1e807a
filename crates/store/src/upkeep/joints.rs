//! Clean boundaries between the rows of a partition, in order of time.
//!
//! The order of overlapping rows matters. A row with moved times reaches further than its first and last time, because
//! later samples there may be resent copies of its samples (`group/resent.rs`).

use tacho_model::Timestamp;

use super::facts::{Facts, Next};

/// Boundaries between rows. Each list has one item more than there are rows.
pub struct Joints {
    /// `clean[i]`: no conflicting row before row `i` reaches to the start of row `i` or beyond this start.
    clean: Vec<bool>,
    /// Like `clean`, but ignores overlaps between siblings of a merge.
    settled: Vec<bool>,
    /// The earliest start of the reach of row `i` and all later rows; `None` if there are none.
    behind: Vec<Option<Timestamp>>,
}

impl Joints {
    pub fn new(rows: &[Facts], floor: Timestamp, next: Option<Next>, ordered: bool) -> Self {
        let mut behind = vec![next.map(|next| next.reach); rows.len() + 1];
        for (at, row) in rows.iter().enumerate().rev() {
            let start = row.reach().start;
            behind[at] = behind[at + 1].map_or(Some(start), |behind| Some(behind.min(start)));
        }
        let [clean, settled] = [vec![true; rows.len() + 1], vec![true; rows.len() + 1]];
        let mut joints = Self { clean, settled, behind };
        if let Some(before) = rows.iter().rposition(|row| row.reach().start < floor) {
            joints.clean[..=before].fill(false);
        }
        let before_max = rows.iter().map(|row| row.overhang.before).max().unwrap_or(0);
        for (at, row) in rows.iter().enumerate() {
            let end = row.reach().end;
            // Two conflicting rows with overlapping reaches make all boundaries between them unclean.
            let furthest = end.saturating_add_unsigned(before_max);
            let reached = rows[at + 1..].iter().take_while(|later| later.key.start <= furthest);
            for (later, behind) in reached.zip(at + 1..) {
                let together = later.key.start == row.key.start;
                let meets = ordered && later.reach().start <= end && row.conflicts(later);
                if together || meets {
                    joints.clean[at + 1..=behind].fill(false);
                }
                if meets && !row.is_sibling(later) {
                    joints.settled[at + 1..=behind].fill(false);
                }
            }
            if ordered && next.is_some_and(|next| next.reach <= end) {
                joints.clean[at + 1..].fill(false);
            }
        }
        joints
    }

    /// The earliest start of the reach of row `at` and all later rows.
    pub fn behind(&self, at: usize) -> Option<Timestamp> {
        self.behind.get(at).copied().flatten()
    }

    pub fn is_clean(&self, at: usize) -> bool {
        self.clean.get(at).copied().unwrap_or(true)
    }

    /// Whether row `at` overlaps another row, and no merge has read the two rows together.
    pub fn is_bound(&self, at: usize) -> bool {
        [at, at + 1].iter().any(|at| self.settled.get(*at) == Some(&false))
    }

    /// The last clean boundary at or before `at`, but not before `low`.
    pub fn clean_before(&self, at: usize, low: usize) -> Option<usize> {
        (low..=at).rev().find(|boundary| self.is_clean(*boundary))
    }
}
