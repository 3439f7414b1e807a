//! Recovers the state of the store that the previous process left.
//!
//! Reads the store's identity, sessions, deletions, series and groups from the driver. Then reads every journal file.
//! Generations that are not in the driver become sealed generations with the same numbers. Of the other generations, only the
//! sessions are used. Before the journals are read, `evidence.rs` checks that all required files exist and have their own names.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use futures_util::TryStreamExt;
use tacho_model::{Kind, SeriesId, TimeRange, Timestamp};

use crate::arrival::{Arrival, Origin};
use crate::changes;
use crate::commit::number_series;
use crate::damage::Unreadable;
use crate::disk::{self, Disk, RealDisk, SyncPoint};
use crate::driver::{Damaged, Driver, Row, Scan, Scanned, Table};
use crate::evidence::{Files, Keys, Misnamed};
use crate::generation::{Generation, Generations, JournalFile};
use crate::group::row::{Unfolding, check_series_version, each_member, series_key, series_scan};
use crate::guarded::Guarded;
use crate::index::Index;
use crate::journal::format::{HEADER_BYTES, Older};
use crate::journal::{self, Contents, Found, Lack, Numbered};
use crate::kept::{self, KeptKey, SummedDays, decode_until, until_scan};
use crate::keys::{
    Journals, StoreFact, decode_session, decode_store_fact, identity_row, sessions_scan, store_scan,
};
use crate::mutation::Mutation;
use crate::options::{Options, draw_id};
use crate::refusal::Refusal;
use crate::rollup::{day_of, range_of};
use crate::sessions::Sessions;
use crate::stats::{Counters, Stored};
use crate::upkeep::{Tombstone, Tombstones, tombstones_scan};
use crate::{Error, ErrorKind, Result};

pub struct Recovered {
    pub id: u128,
    pub index: Arc<Guarded<Index>>,
    pub sessions: Sessions,
    pub tombstones: Tombstones,
    pub summed: SummedDays,
    pub unreadable: Unreadable,
    pub generations: Generations,
    /// The last generation in the driver.
    pub flushed: u64,
    pub stored: [Stored; 3],
    /// The last assigned sequence number (`upkeep/sequence.rs`).
    pub last_sequence: u64,
    /// The latest time that an earlier process trusted.
    pub clock_last: Option<Timestamp>,
    pub counters: Counters,
}

/// Finds out whether a store lacks a required journal or fact, has journals of another store, or has rows that a start reads but
/// that a newer version wrote. A start calls this function before it changes the files of the driver. `directory` is the
/// directory of the journals.
///
/// # Errors
/// Like [`crate::Store::open`].
pub async fn incomplete(driver: &dyn Driver, directory: &Path) -> Result<Refusal> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    // Nothing is logged here, because [`recover`] logs the unreadable rows and the files that permit missing parts.
    let base = Base::read(driver, directory, &disk, |_| ()).await?;
    refuse_newer_rows(driver).await?;
    let is_empty = match base.facts.id {
        Some(_) => false,
        None => {
            let (tombstones, _) = load_tombstones(driver, |_| ()).await?;
            let (index, _) = load_index(driver, |_| (), draw_id).await?;
            base.is_empty(&index, &tombstones)
        }
    };
    Ok(base.check(driver, is_empty, |_| ()).1)
}

/// Refuses deletions and series rows of a newer version. [`recover`] reports other errors of these rows.
///
/// # Errors
/// `Version` for a row of a newer version. Like [`Driver::scan`] when the rows cannot be read.
async fn refuse_newer_rows(driver: &dyn Driver) -> Result<()> {
    let refuse = |row: Scanned, check: fn(&Row) -> Result<()>| match row.map(|row| check(&row)) {
        Ok(Err(error)) if error.kind() == ErrorKind::Version => Err(error),
        _ => Ok(()),
    };
    each_row(driver, tombstones_scan(), |row| refuse(row, |row| Tombstone::decode(row).map(drop))).await?;
    for shard in 0..=u8::MAX {
        each_row(driver, series_scan(shard), |row| refuse(row, check_series_version)).await?;
    }
    Ok(())
}

/// The parts of a store that show whether it is complete.
struct Base {
    facts: Facts,
    keys: Keys,
    files: Files,
    sessions: Sessions,
    flushed: u64,
}

impl Base {
    async fn read(
        driver: &dyn Driver,
        directory: &Path,
        disk: &Arc<dyn Disk>,
        tell: fn(&Damaged),
    ) -> Result<Self> {
        let facts = store_facts(driver, tell).await?;
        let keys = Keys::read(driver).await?;
        let files = Files::read(disk, directory)?;
        let (sessions, last_session) = load_sessions(driver, tell).await?;
        // Sessions are put after chunks, so a session of a generation proves that all chunks of the generation exist.
        let flushed = facts.flushed().max(last_session);
        Ok(Self { facts, keys, files, sessions, flushed })
    }

    fn is_empty(&self, index: &Index, tombstones: &Tombstones) -> bool {
        self.keys.generations.is_empty() && index.len() == 0 && self.flushed == 0 && tombstones.is_empty()
    }

    /// The required journals that the Meta table names.
    fn live(&self) -> &[Older] {
        self.facts.journals.as_ref().map_or(&[], |journals| &journals.live)
    }

    /// Returns the identity of the store, and all that is missing. The identity is `None` for a new store.
    fn check(&self, driver: &dyn Driver, is_empty: bool, permitted: fn(&Path)) -> (Option<u128>, Refusal) {
        let Self { facts, keys, files, flushed, .. } = self;
        let mut refusal = Refusal::default();
        let id = match facts.id {
            Some(id) => Some(id),
            None => {
                let forgets = !driver.capabilities().durable;
                files.identity(facts.journals.as_ref(), is_empty, forgets, (permitted, &mut refusal))
            }
        };
        refusal.merge(files.check(*flushed, id, (self.live(), &keys.generations), permitted));
        (id, refusal)
    }
}

pub async fn recover(driver: &dyn Driver, directory: &Path, options: &Options) -> Result<Recovered> {
    let base = Base::read(driver, directory, &options.disk, tell).await?;
    let (tombstones, deletions) = load_tombstones(driver, tell).await?;
    let (index, nameless) = load_index(driver, tell, options.draw_id).await?;
    let is_empty = base.is_empty(&index, &tombstones);
    let (id, refusal) = base.check(driver, is_empty, |path| {
        tracing::warn!(path = %path.display(), "store is opened without its missing parts, as this file permits");
    });
    refusal.check(directory)?;
    let live: Vec<u64> = base.live().iter().map(|older| older.generation).collect();
    let Base { facts, keys, files, sessions, flushed } = base;
    let seen = keys.generations.last().copied().into_iter().chain(live);
    let next = next_generation(seen.chain([files.highest, flushed, tombstones.through()]))?;
    let mut recovery = Recovery {
        directory,
        options,
        id,
        flushed,
        index: Arc::new(Guarded::new(index)),
        sessions,
        replayed: Sessions::default(),
        generations: Generations { active: None, sealed: VecDeque::new(), next },
        counters: Counters::default(),
        // Losses in files that earlier starts quarantined.
        lacks: journal::lost_in(&*options.disk, directory),
    };
    recovery.all(&files)?;
    let id = recovery.id.unwrap_or_else(options.draw_id);
    // An identity row of the current version prevents older programs from opening a store that they cannot read.
    if (facts.id.is_none() || facts.old) && !options.read_only {
        driver.put(vec![identity_row(id)]).await?;
    }
    let Recovery { index, sessions, generations, flushed, counters, lacks, .. } = recovery;
    counters.journals_quarantined.add(journal::quarantined(&*options.disk, directory));
    let last_sequence = match Mutation::SequenceReused.is_on() {
        true => 0,
        false => facts.last_sequence().max(keys.last_sequence),
    };
    if facts.stored.is_none() && !keys.generations.is_empty() {
        tracing::error!("statistics of the stored records are missing: they restart at 0");
    }
    let stored = facts.stored.unwrap_or_default();
    if facts.clock.is_none() && !is_empty {
        // The times in the newest chunk cannot replace this time, because the clock of their sender may be ahead.
        tracing::warn!(
            "the store does not have the time when its clock was last trusted: the clock is trusted"
        );
    }
    let unreadable = Unreadable::new(nameless, deletions, lacks, &driver.health());
    Ok(Recovered {
        id,
        index,
        sessions,
        tombstones,
        summed: load_summed(driver).await?,
        unreadable,
        generations,
        flushed,
        stored,
        last_sequence,
        clock_last: facts.clock,
        counters,
    })
}

/// The number of the next generation: above all numbers `seen`, so that older deletions do not mask new data.
fn next_generation(seen: impl Iterator<Item = u64>) -> Result<u64> {
    let highest = seen.fold(0, u64::max);
    let exhausted = || Error::corrupt(format!("generation {highest} is the highest possible number"));
    let step = u64::from(!Mutation::GenerationReused.is_on() || highest == 0);
    highest.checked_add(step).ok_or_else(exhausted)
}

/// Facts that the store has written about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// `None` in a new store.
    pub id: Option<u128>,
    old: bool,
    flushed: u64,
    pub stored: Option<[Stored; 3]>,
    last_sequence: u64,
    pub journals: Option<Journals>,
    /// The time when the clock was last trusted.
    pub clock: Option<Timestamp>,
}

impl Facts {
    pub fn add(&mut self, fact: StoreFact) {
        match fact {
            StoreFact::Identity { id, old } => (self.id, self.old) = (Some(id), old),
            StoreFact::Flushed(generation) => self.flushed = generation,
            StoreFact::Stored(stored) => self.stored = Some(stored),
            StoreFact::Sequence(last) => self.last_sequence = last,
            StoreFact::Journals(journals) => self.journals = Some(journals),
            StoreFact::Clock(at) => self.clock = Some(at),
            StoreFact::Unknown => {}
        }
    }

    /// The last flushed generation. It is stored twice, and the higher number applies.
    pub fn flushed(&self) -> u64 {
        self.journals.as_ref().map_or(0, |journals| journals.flushed).max(self.flushed)
    }

    /// The last assigned sequence number. It is stored twice, and the higher number applies.
    pub fn last_sequence(&self) -> u64 {
        self.journals.as_ref().map_or(0, |journals| journals.sequence).max(self.last_sequence)
    }
}

async fn store_facts(driver: &dyn Driver, tell: fn(&Damaged)) -> Result<Facts> {
    let mut facts = Facts::default();
    let location = driver.info().location;
    each_row(driver, store_scan(), |row| {
        // An unreadable fact is treated like a missing fact: other rows or the journals may have it. `Base::check` decides
        // whether the store opens without it.
        let Ok(row) = row.inspect_err(tell) else { return Ok(()) };
        facts.add(decode_store_fact(&row).map_err(|e| e.with("store", &location))?);
        Ok(())
    })
    .await?;
    Ok(facts)
}

/// Sessions, and the last generation that has a session.
async fn load_sessions(driver: &dyn Driver, tell: fn(&Damaged)) -> Result<(Sessions, u64)> {
    let mut sessions = Sessions::default();
    let mut last_session = 0;
    each_row(driver, sessions_scan(), |row| {
        // An unreadable row is skipped. A batch of its session may then be stored twice, which is not a sufficient
        // reason to refuse the start.
        let Ok(row) = row.inspect_err(tell) else { return Ok(()) };
        let (id, session) = decode_session(&row)?;
        last_session = last_session.max(session.generation);
        sessions.restore(id, session);
        Ok(())
    })
    .await?;
    Ok((sessions, last_session))
}

/// Deletions, and the unreadable rows of deletions.
async fn load_tombstones(driver: &dyn Driver, tell: fn(&Damaged)) -> Result<(Tombstones, Vec<Damaged>)> {
    let (mut tombstones, mut damaged) = (Tombstones::default(), Vec::new());
    each_row(driver, tombstones_scan(), |row| {
        match row.inspect_err(tell) {
            Ok(row) => tombstones.add(Tombstone::decode(&row)?),
            Err(row) => damaged.push(row),
        }
        Ok(())
    })
    .await?;
    Ok((tombstones, damaged))
}

/// The end of the summed days of each series. If its row is missing or damaged, the end of the last day with a kept summary.
async fn load_summed(driver: &dyn Driver) -> Result<SummedDays> {
    let mut summed = SummedDays::default();
    let mut last: HashMap<SeriesId, Timestamp> = HashMap::new();
    let mut each = |partition: &[u8], clustering: &[u8]| {
        let key = kept::series_of(partition).zip(KeptKey::decode(clustering).ok());
        if let Some((series, key)) = key {
            let until = range_of(day_of(key.start)).end.saturating_add(1);
            let last = last.entry(series).or_insert(until);
            *last = until.max(*last);
        }
    };
    driver.keys(Table::Meta, &mut each).await?;
    each_row(driver, until_scan(), |row| {
        let Ok(row) = row.inspect_err(tell) else { return Ok(()) };
        match decode_until(&row) {
            Ok((series, until)) => summed.set(series, until),
            Err(error) if error.kind() == ErrorKind::Version => return Err(error),
            Err(error) => tracing::error!(%error, "row of the store's metadata is damaged"),
        }
        Ok(())
    })
    .await?;
    for (series, until) in last {
        if !summed.has(series) {
            summed.set(series, until);
        }
    }
    Ok(summed)
}

/// Loads the index. Also returns the partitions with unknown series.
async fn load_index(
    driver: &dyn Driver,
    tell: fn(&Damaged),
    draw_id: fn() -> u128,
) -> Result<(Index, BTreeSet<(Kind, SeriesId)>)> {
    let (mut index, mut nameless) = (Index::new(draw_id), BTreeSet::new());
    let (mut numbers, mut unfolding) = (Vec::new(), Unfolding::default());
    for shard in 0..=u8::MAX {
        each_row(driver, series_scan(shard), |row| {
            let row = match row.inspect_err(tell) {
                Ok(row) => row,
                Err(Damaged { clustering, .. }) => {
                    nameless.insert(series_key(&clustering)?);
                    return Ok(());
                }
            };
            numbers.clear();
            let (kind, group) = each_member(&row, &mut unfolding, |kind, canonical| {
                numbers.push(index.add_canonical(kind, canonical)?);
                Ok(())
            })?;
            if kind == Kind::Sample {
                index.add_group(group, &numbers);
            } else {
                let ids: Vec<SeriesId> = numbers.iter().map(|number| index.id(*number)).collect();
                ids.into_iter().for_each(|id| index.set_persisted(kind, id));
            }
            Ok(())
        })
        .await?;
    }
    Ok((index, nameless))
}

fn tell(damaged: &Damaged) {
    tracing::error!(error = %Error::from(damaged.clone()), "row of the store's metadata skipped");
}

pub async fn each_row(
    driver: &dyn Driver,
    scan: Scan,
    mut each: impl FnMut(Scanned) -> Result<()>,
) -> Result<()> {
    let mut rows = driver.scan(scan).await?;
    while let Some(row) = rows.try_next().await? {
        each(row)?;
    }
    Ok(())
}

struct Recovery<'a> {
    directory: &'a Path,
    options: &'a Options,
    id: Option<u128>,
    flushed: u64,
    index: Arc<Guarded<Index>>,
    sessions: Sessions,
    /// Sessions according to the journals alone, without the rows of sessions.
    replayed: Sessions,
    generations: Generations,
    counters: Counters,
    /// Reasons why batches of the journal may be missing.
    lacks: Vec<Arc<str>>,
}

impl Recovery<'_> {
    fn all(&mut self, files: &Files) -> Result<()> {
        if !self.options.read_only {
            // The previous process may have ended before it made the name of a journal durable. The list of required journals in
            // the driver may name this journal from now on.
            let quarantine = self.directory.join(journal::QUARANTINE);
            let points = [SyncPoint::JournalQuarantineAtStart, SyncPoint::JournalNamesAtStart];
            disk::sync_names(&*self.options.disk, (&quarantine, self.directory), points)?;
        }
        for found in &files.journals {
            match files.misnamed.get(&found.generation) {
                Some(misnamed) => self.misnamed(found, misnamed)?,
                None => self.file(found)?,
            }
        }
        if Mutation::JournalsInWrongOrder.is_on() {
            self.generations.sealed.make_contiguous().reverse();
        }
        Ok(())
    }

    fn file(&mut self, found: &Found) -> Result<()> {
        if found.generation <= self.flushed {
            return self.flushed_file(found);
        }
        let journal = JournalFile { path: found.path.clone(), length: 0, cut: false, damaged: None };
        let mut generation = Generation::new(found.generation, journal);
        let numbered = Numbered::new(self.index.clone());
        let contents = journal::read_numbered(&*self.options.disk, &found.path, numbered, |arrival| {
            self.replay(arrival, &mut generation);
        })?;
        if contents.never_begun {
            return self.without_header(found, &contents);
        }
        self.report(found, &contents);
        // Torn bytes that may have been a whole record are not cut off. The file is kept with them.
        if contents.torn > 0 && !contents.doubtful && !self.options.read_only {
            let cut = self.options.disk.cut(&found.path, contents.length, SyncPoint::JournalTornEnd);
            cut.map_err(|e| Error::io("cut torn journal", &found.path, e))?;
        }
        if !self.options.read_only {
            // The previous process may have ended before a sync, or after a failed one. Frames of this file count as
            // acknowledged from now on, so they must survive a power failure.
            if !Mutation::RecoveredJournalNotRenewed.is_on() {
                let renewed =
                    self.options.disk.renew(&found.path, contents.proven, SyncPoint::JournalRecovered);
                renewed.map_err(|e| Error::io("sync journal", &found.path, e))?;
            }
        }
        generation.journal.length = contents.length;
        generation.journal.damaged =
            (contents.doubtful || !contents.damaged.is_empty()).then(|| contents.lack());
        self.generations.sealed.push_back(Arc::new(generation));
        Ok(())
    }

    /// Moves a journal with the name of another generation to the quarantine, under the name of the generation in its header. An
    /// operator permitted the start without this journal. After such a start, this generation may count as flushed although the
    /// driver lacks its records. So the file is never removed.
    fn misnamed(&mut self, found: &Found, Misnamed { generation, lack, .. }: &Misnamed) -> Result<()> {
        let path = found.path.display();
        tracing::error!(%path, generation, "journal has the name of another generation: its records are not read");
        self.lacks.extend(lack.reason(*generation));
        self.set_aside(&found.path, *generation, lack)
    }

    /// Reads the file of a flushed generation. Its records are in the driver, but some of its sessions may not be.
    fn flushed_file(&mut self, found: &Found) -> Result<()> {
        let contents = journal::read(&*self.options.disk, &found.path, |arrival| {
            if let Some(origin) = arrival.origin {
                self.sessions.take(origin, found.generation);
            }
        })?;
        if contents.damaged.is_empty() {
            return self.remove(found, "journal of a flushed generation removed");
        }
        self.report(found, &contents);
        self.set_aside(&found.path, found.generation, &contents.lack())
    }

    /// Handles a file without a header. No record was acknowledged before the header was on disk.
    fn without_header(&mut self, found: &Found, contents: &Contents) -> Result<()> {
        let bytes = contents.torn;
        if bytes <= HEADER_BYTES as u64 {
            return self.remove(found, "journal without a header removed");
        }
        tracing::error!(path = %found.path.display(), bytes, "journal quarantined: no readable header or record");
        self.set_aside(&found.path, found.generation, &contents.lack())
    }

    fn replay(&mut self, arrival: Arrival, generation: &mut Generation) {
        if let Some(origin) = arrival.origin {
            // The journals may contain a batch twice. A batch is compared only with the replayed batches. A comparison
            // with the rows of sessions would drop late frames, because a late frame has a lower number than the row
            // of its session.
            if self.replayed.is_repeated(origin) {
                return;
            }
            self.replayed.take(origin, generation.number);
            if !Mutation::SessionsNotRecovered.is_on() {
                self.sessions.take(origin, generation.number);
            }
        }
        self.counters.recovered_batches.add(1);
        {
            let mut index = self.index.write();
            arrival.known().numbers().for_each(|number| index.add_kind(Kind::Sample, number));
        }
        let numbers = number_series(&self.index, &arrival);
        let times: Vec<TimeRange> = changes::times(&arrival).collect();
        generation.apply(&arrival, &numbers, &times);
        if let Some(Origin { session, .. }) = arrival.origin {
            generation.sessions.insert(session, self.sessions.acked(session));
        }
    }

    fn report(&mut self, found: &Found, contents: &Contents) {
        let path = found.path.display();
        for (offset, reason) in &contents.damaged {
            if contents.is_one_header(*offset) {
                let what = "one of two headers of the journal is damaged, nothing is lost, file will be kept";
                tracing::warn!(%path, reason, "{what}");
            } else {
                tracing::error!(%path, offset, reason, "damaged journal record skipped, file will be kept");
            }
        }
        if contents.torn > 0 {
            let (offset, bytes) = (contents.length, contents.torn);
            let file_is_kept = contents.doubtful;
            tracing::warn!(%path, offset, bytes, file_is_kept, "torn end of journal dropped, good part kept");
        }
        tracing::info!(%path, records = contents.records, "journal read");
        self.counters.recovered_torn_bytes.add(contents.torn);
        let with_records = contents.damaged.iter().filter(|(offset, _)| !contents.is_one_header(*offset));
        self.counters.recovered_damaged.add(with_records.count() as u64);
        self.lacks.extend(contents.lack().reason(found.generation));
    }

    fn set_aside(&self, path: &Path, generation: u64, lack: &Lack) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        // The previous process may have ended before it synced these bytes.
        let renewed = self.options.disk.renew(path, 0, SyncPoint::JournalSetAsideBytes);
        renewed.map_err(|e| Error::io("sync journal", path, e))?;
        let kept = journal::set_aside(&*self.options.disk, self.directory, (path, generation), lack);
        let kept = kept.map_err(|e| Error::io("set journal aside", path, e))?;
        tracing::warn!(kept = %kept.display(), "journal set aside");
        Ok(())
    }

    fn remove(&self, found: &Found, why: &str) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        tracing::info!(path = %found.path.display(), "{why}");
        // Without a sync: if a power failure undoes the removal, the next start removes the file again.
        self.options.disk.remove(&found.path).map_err(|e| Error::io("remove journal", &found.path, e))
    }
}
