//! Snapshots determine which rows a reader sees while merges put new rows and delete old ones.
//!
//! A scan is paged. Its first page may be read before a merge puts its rows, and its last page after the merge has
//! deleted the replaced rows. Each reader therefore opens a snapshot before it reads, and sees the rows of that moment:
//!
//! ```text
//!   merge    announce new rows -> put -> publish -> wait -> delete replaced rows -> wait -> forget
//!   new      no snapshot sees them      later snapshots see them
//!   replaced all snapshots see them     later snapshots do not
//! ```
//! Before the delete, a merge waits for the snapshots that are older than the change; after the delete, for all snapshots that
//! are open then. After a crash there are no snapshots, and visibility depends only on the rows (`alive.rs`).

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Partition and clustering of a row in the Chunks table.
pub type Place = (Vec<u8>, Vec<u8>);

#[derive(Debug, Default)]
pub struct Snapshots {
    state: Mutex<State>,
    /// Number of marked rows. It is usually 0; then readers skip all other checks.
    marked: AtomicUsize,
    left: Notify,
}

#[derive(Debug, Default)]
struct State {
    published: u64,
    /// Number of open snapshots, by the last change that they see.
    open: BTreeMap<u64, usize>,
    marks: HashMap<Vec<u8>, HashMap<Vec<u8>, Mark>>,
}

/// Temporary state of a row during a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark {
    born: Birth,
    /// The change that replaced the row.
    doomed: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Birth {
    /// No recent change put the row.
    #[default]
    Known,
    /// The put of the row is in progress.
    Announced,
    /// The change that put the row.
    At(u64),
}

impl Mark {
    const fn is_seen(self, snapshot: u64) -> bool {
        let born = match self.born {
            Birth::Known => true,
            Birth::Announced => false,
            Birth::At(change) => change <= snapshot,
        };
        let doomed = match self.doomed {
            Some(change) => change <= snapshot,
            None => false,
        };
        born && !doomed
    }
}

/// The snapshot of one reader. Dropping it closes the snapshot.
#[derive(Debug)]
pub struct Snapshot {
    snapshots: Arc<Snapshots>,
    at: u64,
}

impl Snapshot {
    pub fn sees(&self, partition: &[u8], clustering: &[u8]) -> bool {
        if self.snapshots.marked.load(Ordering::Acquire) == 0 {
            return true;
        }
        let state = self.snapshots.lock();
        let mark = state.marks.get(partition).and_then(|rows| rows.get(clustering));
        mark.is_none_or(|mark| mark.is_seen(self.at))
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut state = self.snapshots.lock();
        if let Some(count) = state.open.get_mut(&self.at) {
            *count -= 1;
            if *count == 0 {
                state.open.remove(&self.at);
            }
        }
        drop(state);
        self.snapshots.left.notify_waiters();
    }
}

impl Snapshots {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn open(self: &Arc<Self>) -> Snapshot {
        let mut state = self.lock();
        let at = state.published;
        *state.open.entry(at).or_default() += 1;
        Snapshot { snapshots: self.clone(), at }
    }

    /// Hides these rows from all readers until they are published.
    pub fn announce(&self, new: &[Place]) {
        self.mark(new, |mark| mark.born = Birth::Announced);
    }

    /// Removes the marks of rows that were not put or that were deleted.
    pub fn withdraw(&self, new: &[Place]) {
        self.unmark(new, |_| None);
    }

    /// Makes new snapshots see the new rows instead of the replaced ones. Returns the number of the change.
    pub fn publish(&self, new: &[Place], replaced: &[Place]) -> u64 {
        // One lock for both steps, so that no snapshot opens between them.
        let mut state = self.lock();
        let change = state.published + 1;
        set(&mut state, &self.marked, new, |mark| mark.born = Birth::At(change));
        set(&mut state, &self.marked, replaced, |mark| mark.doomed = Some(change));
        state.published = change;
        change
    }

    pub fn has_older(&self, change: u64) -> bool {
        self.lock().open.keys().next().is_some_and(|oldest| *oldest < change)
    }

    pub async fn wait_for_older(&self, change: u64) {
        loop {
            let left = self.left.notified();
            if !self.has_older(change) {
                return;
            }
            left.await;
        }
    }

    /// Removes the marks of a change. The caller has made sure that no older snapshot is open. If the delete of the replaced
    /// rows failed, readers ignore these rows, because they are dead (`alive.rs`).
    pub fn forget(&self, change: u64, new: &[Place], replaced: &[Place]) {
        self.unmark(new, |mark| match mark.born {
            // A later change may have replaced the row in the meantime.
            Birth::At(at) if at <= change => Some(Mark { born: Birth::Known, ..mark }),
            _ => Some(mark),
        });
        self.unmark(replaced, |_| None);
    }

    fn mark(&self, rows: &[Place], change: impl Fn(&mut Mark)) {
        set(&mut self.lock(), &self.marked, rows, change);
    }

    fn unmark(&self, rows: &[Place], left: impl Fn(Mark) -> Option<Mark>) {
        let mut state = self.lock();
        for (partition, clustering) in rows {
            let Some(marks) = state.marks.get_mut(partition) else { continue };
            let Some(mark) = marks.get(clustering) else { continue };
            match left(*mark).filter(|mark| *mark != Mark::default()) {
                Some(mark) => {
                    marks.insert(clustering.clone(), mark);
                }
                None => {
                    marks.remove(clustering);
                    self.marked.fetch_sub(1, Ordering::Release);
                }
            }
            if marks.is_empty() {
                state.marks.remove(partition);
            }
        }
    }
}

fn set(state: &mut State, marked: &AtomicUsize, rows: &[Place], change: impl Fn(&mut Mark)) {
    for (partition, clustering) in rows {
        let marks = state.marks.entry(partition.clone()).or_default();
        let mark = marks.entry(clustering.clone()).or_insert_with(|| {
            marked.fetch_add(1, Ordering::Release);
            Mark::default()
        });
        change(mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(clustering: u8) -> Place {
        (vec![1], vec![clustering])
    }

    /// The rows among 0 to 3 that a snapshot sees.
    fn seen(snapshot: &Snapshot) -> Vec<u8> {
        (0..4).filter(|row| snapshot.sees(&[1], &[*row])).collect()
    }

    #[tokio::test]
    async fn a_snapshot_sees_the_rows_that_existed_when_it_began() {
        let snapshots = Arc::new(Snapshots::default());
        let before = snapshots.open();
        snapshots.announce(&[place(2)]);
        let during = snapshots.open();
        assert_eq!(seen(&before), [0, 1, 3]);
        let change = snapshots.publish(&[place(2)], &[place(0), place(1)]);
        let after = snapshots.open();
        assert_eq!([seen(&before), seen(&during)], [[0, 1, 3], [0, 1, 3]]);
        assert_eq!(seen(&after), [2, 3]);
        assert!(snapshots.has_older(change));
        drop(before);
        let waiting = tokio::spawn({
            let snapshots = snapshots.clone();
            async move { snapshots.wait_for_older(change).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(during);
        waiting.await.unwrap();
        snapshots.forget(change, &[place(2)], &[place(0), place(1)]);
        assert_eq!(snapshots.marked.load(Ordering::Relaxed), 0);
        assert_eq!(seen(&after), [0, 1, 2, 3]);
    }

    #[test]
    fn a_new_row_may_be_replaced_while_older_snapshots_are_open() {
        let snapshots = Arc::new(Snapshots::default());
        let first = snapshots.publish(&[place(0)], &[]);
        let between = snapshots.open();
        let second = snapshots.publish(&[place(1)], &[place(0)]);
        snapshots.forget(first, &[place(0)], &[]);
        assert_eq!(seen(&between), [0, 2, 3]);
        assert_eq!(seen(&snapshots.open()), [1, 2, 3]);
        drop(between);
        snapshots.forget(second, &[place(1)], &[place(0)]);
        assert_eq!(snapshots.marked.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn failed_puts_are_withdrawn() {
        let snapshots = Arc::new(Snapshots::default());
        snapshots.announce(&[place(3)]);
        assert_eq!(seen(&snapshots.open()), [0, 1, 2]);
        snapshots.withdraw(&[place(3)]);
        assert_eq!(seen(&snapshots.open()), [0, 1, 2, 3]);
    }
}
