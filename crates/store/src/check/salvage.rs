//! What does `tacho repair` write besides the sound rows? It writes the journals again, without damaged records. It writes the
//! facts about the store, taken from all rows and files that have them. It writes lost labels if another row or a journal
//! has them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use tacho_model::{Kind, Labels, SeriesId};

use super::checker::Checker;
use super::journals::Journals;
use super::known::Known;
use crate::disk::Disk;
use crate::driver::{Row, Table};
use crate::group::home::{self, NewGroup};
use crate::group::row::series_row;
use crate::index::Index;
use crate::journal::format::{Header, Older};
use crate::journal::{Encoder, Failure, Writer};
use crate::keys::{Journals as JournalList, clock_row, flushed_row, identity_row, sequence_row, stored_row};
use crate::kinds::of_kind_mut;
use crate::memtable::OpenSeries;
use crate::options::draw_id;
use crate::stats::Stored;
use crate::{Error, Result};

/// Number of bytes of journal records that are collected before they are written and synced.
const COMMIT_BYTES: usize = 1 << 20;

#[derive(Debug, Default)]
pub struct Salvage {
    pub store: u128,
    /// The last generation whose records are in the rows of the copy.
    flushed: u64,
    /// Generations of the copied journals, and the number of acknowledged bytes in each.
    live: Vec<Older>,
    /// Numbers of records by kind in the copied journals of generations that were not flushed.
    pub records: [u64; 3],
}

impl Salvage {
    /// Writes a copy of the journals of `source`.
    ///
    /// # Errors
    /// `Io`, and `Version` when a newer version wrote a journal.
    pub fn write_journals(
        source: &Journals,
        known: &Known,
        (disk, directory): (&dyn Disk, &Path),
    ) -> Result<Self> {
        let of_meta = known.facts.journals.as_ref().map(|journals| journals.store);
        let store = known.facts.id.or(of_meta).or_else(|| source.store()).unwrap_or_else(draw_id);
        let flushed = flushed(known, &source.begun().collect());
        let mut salvage = Self { store, flushed, ..Self::default() };
        // A store with chunks of an unflushed generation opens only if this generation has a journal. If the source
        // lacks this journal, the copy gets an empty one.
        let unfinished = known.keys.generations.range(flushed.saturating_add(1)..).copied();
        let generations: BTreeSet<u64> = source.begun().chain(unfinished).collect();
        for generation in generations {
            let created = source.created(generation).unwrap_or(0);
            let header = Header { generation, store, created, older: salvage.live.clone() };
            let mut copy = Copy::new(Writer::create(disk, directory, &header)?, disk);
            let checked = source.read(generation, known, |arrival| copy.add(&arrival))?;
            let length = copy.finish()?;
            // Records of flushed generations are in the driver, so they are not counted here. When a store opens, it reads
            // only sessions from the journals of these generations.
            if generation > flushed {
                salvage.records.iter_mut().zip(checked.records).for_each(|(sum, more)| *sum += more);
            }
            salvage.live.push(Older { generation, length });
        }
        Ok(salvage)
    }

    /// Rows with the facts about the copy. `checker` must have checked all rows. `counted` are the counts of the copied rows. If
    /// `is_whole`, nothing was lost, and the rows have the counts of the source instead.
    pub fn rows(&self, checker: &Checker, counted: [Stored; 3], is_whole: bool) -> Vec<Row> {
        let known = checker.known();
        let (flushed, sequence) = (self.flushed, checker.last_sequence());
        let stored = known.facts.stored.filter(|_| is_whole).unwrap_or(counted);
        let live = self.live.iter().filter(|older| older.generation > flushed).copied().collect();
        let journals = JournalList { store: self.store, flushed, sequence, live };
        let mut rows = vec![identity_row(self.store), stored_row(&stored), journals.row()];
        rows.extend((flushed > 0).then(|| flushed_row(flushed)));
        rows.extend((sequence > 0).then(|| sequence_row(sequence)));
        rows.extend(known.facts.clock.map(clock_row));
        rows
    }
}

/// The last generation that counts as flushed in the copy. If the flush of a generation was interrupted and its journal is
/// missing, its chunks are all that is left. Such a generation counts as flushed, so that readers get these chunks. It does not
/// count as flushed if an earlier unflushed generation has a journal in `journals`.
fn flushed(known: &Known, journals: &BTreeSet<u64>) -> u64 {
    let mut flushed = known.flushed();
    for generation in known.keys.generations.range(flushed.saturating_add(1)..) {
        if journals.range(flushed.saturating_add(1)..=*generation).next().is_some() {
            break;
        }
        flushed = *generation;
    }
    flushed
}

struct Copy<'a> {
    writer: Writer,
    disk: &'a dyn Disk,
    encoder: Encoder,
    records: Vec<u8>,
    error: Option<Error>,
}

impl<'a> Copy<'a> {
    fn new(writer: Writer, disk: &'a dyn Disk) -> Self {
        Self { writer, disk, encoder: Encoder::default(), records: Vec::new(), error: None }
    }

    fn add(&mut self, arrival: &crate::arrival::Arrival) {
        if self.error.is_some() {
            return;
        }
        let encoded = self.encoder.encode(arrival, self.writer.length(), &mut self.records);
        let done =
            encoded.and_then(|()| if self.records.len() >= COMMIT_BYTES { self.commit() } else { Ok(()) });
        self.error = done.err();
    }

    fn commit(&mut self) -> Result<()> {
        self.encoder.end_group(self.writer.length(), &mut self.records);
        self.writer
            .commit(self.disk, &self.records)
            .map_err(|(Failure::Undone(e) | Failure::Broken(e))| e)?;
        self.encoder.committed();
        self.records.clear();
        Ok(())
    }

    /// Writes the remaining records. Returns the length of the copy.
    fn finish(mut self) -> Result<u64> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if !self.records.is_empty() {
            self.commit()?;
        }
        Ok(self.writer.length())
    }
}

impl Checker {
    /// Finds labels for partitions without a readable series row. Another row or a journal may have these labels. Returns new
    /// series rows.
    ///
    /// # Errors
    /// The same as [`Journals::check`].
    pub fn derive_series(&mut self, journals: &Journals) -> Result<Vec<Row>> {
        let known = &self.known;
        let is_unknown = |(kind, group): &(Kind, SeriesId)| self.members(*kind, *group).is_none();
        let mut unknown: BTreeSet<(Kind, SeriesId)> =
            known.partitions.iter().copied().filter(is_unknown).collect();
        if unknown.is_empty() {
            return Ok(Vec::new());
        }
        let mut found: Vec<(Kind, SeriesId, Vec<Arc<Labels>>)> = Vec::new();
        let (mut labels, mut groups) = (HashMap::new(), Groups::default());
        for (generation, _) in journals.files() {
            let mut samples = OpenSeries::default();
            journals.check(generation, known, |arrival| {
                for (_, id, of_series) in arrival.series() {
                    labels.entry(id).or_insert_with(|| of_series.clone());
                }
                for (id, series) in arrival.samples() {
                    let number = groups.index.add(Kind::Sample, id, &series.labels);
                    samples.push(number, &series.samples);
                }
            })?;
            for (group, members) in groups.form(known, &samples) {
                if unknown.remove(&(Kind::Sample, group)) {
                    found.push((Kind::Sample, group, members));
                }
            }
        }
        for (kind, group) in unknown {
            // The id of a group with one member is the id of this member.
            let one = known.index.labels(group).or_else(|| labels.get(&group).cloned());
            found.extend(one.map(|one| (kind, group, vec![one])));
        }
        let mut rows = Vec::new();
        for (kind, group, members) in found {
            let of_row: Vec<&Labels> = members.iter().map(|labels| &**labels).collect();
            rows.push(series_row(kind, group, &of_row));
            let add = |labels: &Arc<Labels>| self.known.index.add(kind, labels.id(), labels);
            let numbers: Vec<u32> = members.iter().map(add).collect();
            if kind == Kind::Sample {
                self.known.index.add_group(group, &numbers);
            }
            self.derived.push((kind, group));
        }
        Ok(rows)
    }

    pub fn count(row: &Row, records: Option<(Kind, u64)>, counted: &mut [Stored; 3]) {
        if let (Table::Chunks, Some((kind, records))) = (row.table, records) {
            let bytes = row.value.len() as u64;
            *of_kind_mut(counted, kind) += Stored { chunks: 1, bytes, records };
        }
    }
}

/// Forms the groups of the series in journals. The id of a group with several members is a hash of the members, so an equal id
/// proves equal members.
#[derive(Default)]
struct Groups {
    /// The series of samples in the journals.
    index: Index,
    /// Series with a group according to the earlier journals.
    assigned: HashSet<u32>,
}

impl Groups {
    /// Returns the groups that a start of the server would form of these samples. Also returns other groups that an earlier flush
    /// may have formed of these series.
    fn form(&mut self, known: &Known, samples: &OpenSeries) -> Vec<(SeriesId, Vec<Arc<Labels>>)> {
        let all: Vec<u32> = samples.iter().map(|(number, _)| number).collect();
        let is_homeless = |number: &&u32| {
            let known_number = known.index.number(self.index.id(**number));
            let home = known_number.and_then(|number| known.index.home(number));
            home.is_none() && !self.assigned.contains(*number)
        };
        let homeless: Vec<u32> = all.iter().filter(is_homeless).copied().collect();
        self.assigned.extend(&homeless);
        let index = || &self.index;
        // The flush that formed a group may have had more samples of each series than these journals.
        let variants =
            [false, true].map(|regular| home::groups(samples, &all, index, |times| times.with_many(regular)));
        let formed = [&homeless, &all].map(|series| home::groups(samples, series, index, |times| times));
        let members = |group: NewGroup| {
            (group.id, group.members.into_iter().map(|number| self.index.labels_of(number)).collect())
        };
        formed.into_iter().chain(variants).flatten().map(members).collect()
    }
}
