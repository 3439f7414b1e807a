//! Finds the partitions to which rules or deletions must be applied, and completes deletions.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use tacho_model::{Kind, SeriesId, TimeRange, Timestamp};
use tokio::time::Instant;

use super::Upkeep;
use super::batch::{JobResults, batch};
use super::choice::Mode;
use super::forget::holds_rows;
use super::job::Job;
use super::merge::Treatment;
use super::pace::Pace;
use super::replace::{delete_with_retries, wait_for_readers};
use super::tombstones::Tombstone;
use super::window::{Partition, Stretch};
use crate::ErrorKind;
use crate::guarded::Guarded;
use crate::index::{self, Index};
use crate::mutation::Mutation;
use crate::policy::Policy;

/// Every partition that may have chunks, except those with unreadable labels, which are not in the index.
pub fn partitions(index: &Guarded<Index>) -> Vec<Partition> {
    let index = index.read();
    let samples = index.groups().map(|group| Partition { kind: Kind::Sample, id: index.group(group).id });
    let others = [Kind::Entry, Kind::Execution]
        .into_iter()
        .flat_map(|kind| index.of_kind(kind).map(move |number| (kind, number)));
    let others = others.map(|(kind, number)| Partition { kind, id: index.id(number) });
    samples.chain(others).collect()
}

/// Jobs for partitions with records that may be past their retention or due for downsampling. `thinned` has the end of the
/// downsampled part of each partition.
pub fn aged(upkeep: &Upkeep, thinned: &mut HashMap<Partition, Timestamp>) -> Vec<Job> {
    if !upkeep.store.options.policies.age() {
        return Vec::new();
    }
    let now = upkeep.store.clock.now();
    let mut jobs = Vec::new();
    for partition in partitions(&upkeep.store.index) {
        let (mut expired, mut thin) = (Timestamp::MIN, Timestamp::MIN);
        for policy in policies(upkeep, &partition) {
            let treatment = Treatment::new(&policy, Vec::new(), now);
            expired = expired.max(treatment.expired_before);
            thin = thin.max(treatment.thin.map_or(Timestamp::MIN, |(through, _)| through));
        }
        if expired > Timestamp::MIN {
            jobs.push(Job { end: expired, ..Job::all(partition, Mode::Tiered) });
        }
        if thin > Timestamp::MIN {
            let from = thinned.insert(partition, thin).map_or(Stretch::From(Timestamp::MIN), Stretch::Around);
            jobs.push(Job { end: thin, stretch: from, ..Job::all(partition, Mode::Tiered) });
        }
    }
    jobs
}

fn policies(upkeep: &Upkeep, partition: &Partition) -> Vec<Policy> {
    let index = upkeep.store.index.read();
    let policies = &upkeep.store.options.policies;
    match partition.kind {
        Kind::Sample => index.group_number(partition.id).map_or(Vec::new(), |number| {
            let members = index.group(number).members.iter();
            members.map(|member| policies.of(&index.labels_of(*member))).collect()
        }),
        Kind::Entry | Kind::Execution => {
            let summed_until = upkeep.summed_until(partition);
            let policy = index.labels(partition.id).map(|labels| policies.of(&labels));
            policy.map(|policy| Policy { summed_until, ..policy }).into_iter().collect()
        }
    }
}

/// Kind and id of a partition; its order is the order of work.
type Place = (Kind, SeriesId);

/// Partitions that may have records that a deletion covers.
fn places(index: &Guarded<Index>, tombstone: &Tombstone) -> BTreeSet<Place> {
    let mut places = BTreeSet::new();
    for kind in Kind::ALL {
        let numbers = index::select(index, kind, &tombstone.matchers, &|| true).unwrap_or_default();
        let index = index.read();
        // A series may have left the index in the meantime. It then has no records.
        for number in numbers.into_iter().filter(|number| index.is_of(kind, *number)) {
            if kind == Kind::Sample {
                places.extend(index.groups_of(number).map(|(group, _)| (kind, index.group(group).id)));
            } else {
                places.insert((kind, index.id(number)));
            }
        }
    }
    places
}

/// Deletions that were tried since the last sweep. They are skipped until the next sweep. Exception: when all generations of an
/// `early` deletion are flushed, it is tried again.
#[derive(Debug, Default)]
pub struct Tried {
    /// Deletions that are not completed, because some of their records cannot be read.
    stuck: HashSet<u64>,
    /// Deletions that were applied before all of their generations were flushed.
    early: HashSet<u64>,
}

impl Tried {
    pub fn clear(&mut self) {
        self.stuck.clear();
        self.early.clear();
    }
}

/// Applies the deletions that cover only flushed generations and were not tried. Removes those without remaining records. The
/// others are skipped until the next sweep, because some of their records cannot be read. If a flush fails because the disk is
/// full, also applies deletions of later generations to the flushed records: the flush may need the space that they free. If a
/// job fails, removes no deletion, and returns `false`.
pub async fn finish_deletions(upkeep: &Arc<Upkeep>, pace: Option<Pace>, tried: &mut Tried) -> bool {
    let (flushed, is_full) = {
        let progress = upkeep.store.progress.borrow();
        let is_full = progress.last_failure.as_ref().is_some_and(|e| e.kind() == ErrorKind::StorageFull);
        (progress.flushed, is_full)
    };
    let ready = |tombstone: &Arc<Tombstone>| match tombstone.through <= flushed {
        true => !tried.stuck.contains(&tombstone.id),
        false => is_full && !tried.early.contains(&tombstone.id),
    };
    let tombstones: Vec<_> = upkeep.store.tombstones.read().all().into_iter().filter(ready).collect();
    if tombstones.is_empty() || !upkeep.store.driver.capabilities().atomic_put {
        return true;
    }
    let meant: Vec<BTreeSet<Place>> =
        tombstones.iter().map(|tombstone| places(&upkeep.store.index, tombstone)).collect();
    let from = |(kind, id): Place| Job::all(Partition { kind, id }, Mode::Tiered);
    let places: BTreeSet<Place> = meant.iter().flatten().copied().collect();
    let mut jobs: VecDeque<Job> = places.into_iter().map(from).collect();
    let mut results = JobResults::default();
    if Mutation::TombstoneRemovedEarly.is_on() {
        jobs.clear();
    }
    while !jobs.is_empty() {
        let (begun, before) = (Instant::now(), results.report);
        batch(upkeep, &mut jobs, 1, &mut results).await;
        if let Some(pace) = pace {
            let after = results.report;
            let bytes = after.bytes_read + after.bytes_written - before.bytes_read - before.bytes_written;
            tokio::time::sleep(pace.rest(bytes, after.busy - before.busy, begun.elapsed())).await;
        }
    }
    if results.failure.is_some() {
        return false;
    }
    for (tombstone, meant) in tombstones.into_iter().zip(meant) {
        if tombstone.through > flushed {
            tried.early.insert(tombstone.id);
        } else if is_needed(upkeep, &tombstone, &meant, &results).await {
            tried.stuck.insert(tombstone.id);
        } else {
            remove(upkeep, &tombstone).await;
        }
    }
    true
}

/// Whether the deletion may still mask records: records in an unreadable row, or records of a series with unreadable labels.
/// The row or the labels may become readable later.
async fn is_needed(
    upkeep: &Upkeep,
    tombstone: &Tombstone,
    meant: &BTreeSet<Place>,
    results: &JobResults,
) -> bool {
    let walled = |(partition, range): (&Partition, &TimeRange)| {
        meant.contains(&(partition.kind, partition.id)) && range.overlaps(&tombstone.range)
    };
    if results.walled.iter().any(walled) {
        return true;
    }
    for (kind, id) in upkeep.store.unreadable.nameless() {
        if holds_rows(&*upkeep.store.driver, Partition { kind, id }, tombstone.range).await {
            return true;
        }
    }
    false
}

/// Removes a deletion that masks no record of any row. Waits for readers first, because a reader that began earlier may
/// have read a row with masked records, and still needs the mask.
async fn remove(upkeep: &Arc<Upkeep>, tombstone: &Tombstone) {
    wait_for_readers(&upkeep.store.snapshots).await;
    if !delete_with_retries(upkeep, &[tombstone.delete()]).await {
        return;
    }
    let mut tombstones = upkeep.store.tombstones.write();
    tombstones.remove(tombstone.id);
    if tombstones.is_empty() {
        upkeep.notes().applied.clear();
    }
    upkeep.counts.deletions_done.add(1);
    tracing::info!(tombstone = tombstone.id, "deletion is done");
}
