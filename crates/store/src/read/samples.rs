//! Reads the samples of series in a time range.
//!
//! The first flush of a series assigns its home group (`docs/format/keys.md`). From then on, every flush writes the samples of
//! the series into chunks of this group. Series with the same home group form a unit. Each row is read once per unit. Its column
//! of times is decoded once, unless several threads share its columns. Many units share one call to the driver. A generation is
//! read from memory until its flush has ended, and from the driver afterwards.
//!
//! Path of one record. Before: `flush.rs` put its chunk into the driver. After: `server/src/http/` passes it to `query`.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tacho_chunk::Chunk;
use tacho_model::{Kind, Labels, SeriesId, TimeRange, Windows};

use super::rows::{Found, Lost, live, unreadable};
use super::{Reader, read_memory, take_room};
use crate::answer::{Exactness, Piece, SampleAnswer};
use crate::damage::Damages;
use crate::driver::{Parts, Scan};
use crate::generation::Generation;
use crate::group::piece::Part;
use crate::group::plan::{Asked, Done, Failed, Job, Plan, Question, Stored, is_wanted};
use crate::group::row::replacement_bytes;
use crate::keys::{CHUNK_SPAN_MAX_NS, Span, chunk_scan, spans};
use crate::memtable::OpenSamples;
use crate::size::in_memory;
use crate::threads::Threads;
use crate::{Error, ErrorKind, Result};

/// Limits on the units per call to the driver. The maximum applies to ranges shorter than [`CHUNK_SPAN_MAX_NS`] and to
/// [`short_samples`], which reads few rows per unit. The minimum applies to long ranges.
const UNITS_AT_ONCE_MAX: u64 = 128;
const UNITS_AT_ONCE_MIN: u64 = 4;
/// Limit of [`short_samples`] on the rows that each group has in one span class ([`Span`]: the limit on the time that a chunk
/// covers). Such a read keeps the rows of up to [`UNITS_AT_ONCE_MAX`] units in memory.
const SHORT_ROWS_MAX: usize = 4;
/// Largest number of values that are decoded on the calling thread. Decoding so many values takes about 200 us. For
/// fewer values, moving to another thread would take a large part of that time.
const VALUES_INLINE_MAX: usize = 1 << 16;
/// Least number of values per thread when several threads decode.
const VALUES_A_THREAD: usize = 1 << 16;
/// Number of parts per thread into which the columns are divided when several threads decode, and the least number of
/// columns of a part.
const PARTS_A_THREAD: usize = 4;
const PART_COLUMNS_MIN: usize = 4;

/// Series with the same home group, or one series without a home group.
#[derive(Default)]
struct Unit {
    /// Series number in the index, and position in the answer.
    series: Vec<(u32, usize)>,
    groups: Vec<Searched>,
}

/// A group, and the series of the unit that are members of it.
struct Searched {
    id: SeriesId,
    /// Member number and position in the unit, ordered by member.
    members: Arc<[(u16, usize)]>,
}

#[derive(Clone, Copy)]
pub struct Limits<'a> {
    pub room: &'a AtomicUsize,
    pub rows_max: Option<usize>,
}

/// Samples of the series within the range. A row is read once for all series with the same home group.
pub async fn samples(
    reader: &Reader,
    series: &[SeriesId],
    range: TimeRange,
    windows: Option<&Windows>,
    limits: Limits<'_>,
) -> Result<SampleAnswer> {
    let moved = reader.options.policies.time_max().saturating_mul(2);
    let reach =
        TimeRange::new(range.start.saturating_sub_unsigned(moved), range.end.saturating_add_unsigned(moved));
    let question = Question { range, reach, windows: windows.copied() };
    let mut answer = SampleAnswer::default();
    answer.series.resize_with(series.len(), Vec::new);
    answer.exactness.resize_with(series.len(), Exactness::default);
    if range.is_empty() {
        return Ok(answer);
    }
    let days = range.end.abs_diff(range.start) / CHUNK_SPAN_MAX_NS + 1;
    let at_once = match limits.rows_max {
        Some(_) => UNITS_AT_ONCE_MAX,
        None => (UNITS_AT_ONCE_MAX / days).max(UNITS_AT_ONCE_MIN),
    };
    for (number, units) in units(reader, series).chunks_mut(in_memory(at_once)).enumerate() {
        if number > 0 {
            // Reads from memory and the page cache never wait. Without this yield, a query over many series would occupy
            // its thread, and other requests would wait. If the client disconnects, the query's future is dropped here.
            tokio::task::yield_now().await;
        }
        for (place, pieces, exactness) in read(reader, units, question, limits, &mut answer).await? {
            if let (Some(of_series), Some(of_answer)) =
                (answer.series.get_mut(place), answer.exactness.get_mut(place))
            {
                (*of_series, *of_answer) = (pieces, exactness);
            }
        }
    }
    Ok(answer)
}

/// Like [`samples`], for series with few stored rows and few samples in memory. `None` if a group has more than
/// [`SHORT_ROWS_MAX`] rows of one span class, or if the series have more than `samples_max` samples by an estimate. The read
/// then ends early, so that it takes little memory.
pub async fn short_samples(
    reader: &Reader,
    series: &[SeriesId],
    range: TimeRange,
    samples_max: usize,
) -> Result<Option<SampleAnswer>> {
    let numbers: Vec<u32> = {
        let index = reader.index.read();
        series.iter().filter_map(|id| index.number(*id)).collect()
    };
    let open = |generation: &Generation| {
        let series = numbers.iter().filter_map(|number| generation.samples.get(*number));
        Some(series.map(OpenSamples::len).sum::<usize>())
    };
    if read_memory(reader, open).parts.into_iter().sum::<usize>() > samples_max {
        return Ok(None);
    }
    let room = AtomicUsize::new(samples_max);
    let limits = Limits { room: &room, rows_max: Some(SHORT_ROWS_MAX) };
    match samples(reader, series, range, None, limits).await {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.kind() == ErrorKind::Limit => Ok(None),
        Err(error) => Err(error),
    }
}

/// Groups series by their home group. An unknown series is in no unit.
fn units(reader: &Reader, series: &[SeriesId]) -> Vec<Unit> {
    let index = reader.index.read();
    let mut units: Vec<Unit> = Vec::new();
    let mut by_home: HashMap<u32, usize> = HashMap::new();
    for (place, id) in series.iter().enumerate() {
        let Some(number) = index.number(*id) else { continue };
        let mut new = || {
            units.push(Unit::default());
            units.len() - 1
        };
        // A series has no home group before its first flush. Each such series forms its own unit.
        let unit = match index.home(number) {
            Some((group, _)) => *by_home.entry(group).or_insert_with(new),
            None => new(),
        };
        if let Some(unit) = units.get_mut(unit) {
            unit.series.push((number, place));
        }
    }
    units
}

/// Finds the groups of the units' series. Must run after memory was read, because a flush adds a series to a group before
/// it removes the series from memory.
fn find_groups(reader: &Reader, units: &mut [Unit]) {
    let index = reader.index.read();
    for unit in units {
        let mut groups: BTreeMap<u32, Vec<(u16, usize)>> = BTreeMap::new();
        for (place, (number, _)) in unit.series.iter().enumerate() {
            for (group, member) in index.groups_of(*number) {
                groups.entry(group).or_default().push((member, place));
            }
        }
        let searched = |(group, mut members): (u32, Vec<(u16, usize)>)| {
            members.sort_unstable();
            Searched { id: index.group(group).id, members: members.into() }
        };
        unit.groups = groups.into_iter().map(searched).collect();
    }
}

/// For each series its position in the answer, its pieces, and their exactness.
type Pieces = Vec<(usize, Vec<Piece>, Exactness)>;

async fn read(
    reader: &Reader,
    units: &mut [Unit],
    question: Question,
    Limits { room, rows_max }: Limits<'_>,
    SampleAnswer { report, damages, .. }: &mut SampleAnswer,
) -> Result<Pieces> {
    let snapshot = reader.snapshots.open();
    let open: Vec<(u64, Vec<Asked>)> =
        units.iter().map(|unit| open_samples(reader, unit, question.reach)).collect();
    find_groups(reader, units);
    let units = &*units;
    let scans = scans(units, question.reach, rows_max);
    // Without a scan the driver is not read: series that were never flushed are only in memory.
    let parts = parts(units, question);
    let rows = if scans.is_empty() { Vec::new() } else { reader.driver.read_parts(scans, parts).await? };
    if rows.iter().any(|rows| rows_max.is_some_and(|max| rows.len() > max)) {
        return Err(Error::new(ErrorKind::Limit, "a group has more rows than the read allows"));
    }
    let mut rows = rows.into_iter();
    let (mut plans, mut losses) = (Vec::with_capacity(units.len()), Vec::with_capacity(units.len()));
    for (unit, (oldest, asked)) in units.iter().zip(open) {
        let mut losing = Losing { reader, unit, range: question.range, rows: Vec::new() };
        let mut stored = Vec::new();
        for group in &unit.groups {
            let rows = rows.by_ref().take(spans(Kind::Sample).len()).flatten();
            let found = live(rows, &snapshot).map_err(|e| e.with("group", group.id))?;
            for row in found.into_iter().filter(|row| row.key.generation < oldest) {
                stored.push(Stored {
                    place: (row.key.generation, row.key.number),
                    overhang: row.overhang,
                    chunk: row.chunk.clone(),
                    whole: row.whole,
                    members: group.members.clone(),
                });
                losing.rows.push((group, row));
            }
        }
        let plan = losing.plan(asked, &stored, &question, damages)?;
        take_room(room, plan.samples, "samples")?;
        *report += plan.report;
        plans.push(plan);
        losses.push(losing);
    }
    let samples = plans.iter().map(|plan| plan.samples).sum();
    let jobs = plans
        .iter_mut()
        .zip(0..)
        .flat_map(|(plan, unit)| std::mem::take(&mut plan.jobs).into_iter().map(move |job| (unit, job)));
    let mut done: Vec<Vec<Done>> = Vec::new();
    done.resize_with(units.len(), Vec::new);
    for (unit, mut part) in decode(reader.options.threads, jobs.collect(), samples, question.reach).await? {
        report.values_decoded += part.values;
        let (Some(losing), Some(plan), Some(done)) = (losses.get(unit), plans.get(unit), done.get_mut(unit))
        else {
            continue;
        };
        for Failed { row, range, slot, error } in std::mem::take(&mut part.failed) {
            let reason = losing.reason(row, error)?;
            damages.extend(losing.damage((row, range), plan.series_of(slot), plan, reason));
        }
        done.push(part);
    }
    let pieces = units.iter().zip(plans).zip(done);
    Ok(pieces.flat_map(|((unit, plan), done)| of_unit(unit, plan, done, &question)).collect())
}

fn of_unit(unit: &Unit, mut plan: Plan, done: Vec<Done>, question: &Question) -> Pieces {
    let exactness = std::mem::take(&mut plan.exactness);
    let of_series = plan.finish(done, question).into_iter().zip(exactness);
    let places = unit.series.iter().map(|(_, place)| *place);
    places.zip(of_series).map(|(place, (pieces, exactness))| (place, pieces, exactness)).collect()
}

fn scans(units: &[Unit], range: TimeRange, rows_max: Option<usize>) -> Vec<Scan> {
    // One row more shows that a group is above the limit.
    let limit = rows_max.map(|rows| rows + 1);
    let scan = |group: &Searched, span: &Span| {
        let scan = chunk_scan(Kind::Sample, group.id, *span, range);
        Scan { limit, ..scan }
    };
    let groups = units.iter().flat_map(|unit| &unit.groups);
    groups.flat_map(|group| spans(Kind::Sample).iter().map(move |span| scan(group, span))).collect()
}

/// Selects the parts of a chunk to read: its header, and the columns of the unit's series if the chunk has samples in the
/// range. The group may have tens of other series.
fn parts(units: &[Unit], question: Question) -> Parts {
    let members: Vec<_> = units.iter().flat_map(|unit| &unit.groups).map(|g| g.members.clone()).collect();
    Arc::new(move |scan, front| {
        let members = members.get(scan / spans(Kind::Sample).len())?;
        let before = replacement_bytes(front)?;
        let parts = Chunk::parts(front.get(before..)?, question.reach, |member| is_wanted(members, member));
        let mut parts = parts?;
        for part in &mut parts {
            *part = part.start + before..part.end.checked_add(before)?;
        }
        // The first part is the header. It is extended to include the prefix.
        parts.first_mut()?.start = 0;
        Some(parts)
    })
}

/// The rows of a unit, by their index in the plan, for reporting damages.
struct Losing<'a> {
    reader: &'a Reader,
    unit: &'a Unit,
    range: TimeRange,
    rows: Vec<(&'a Searched, Found)>,
}

impl Losing<'_> {
    /// Makes the plan. If a header is unreadable, all series that may be in the row get a damage.
    fn plan(
        &self,
        asked: Vec<Asked>,
        stored: &[Stored],
        question: &Question,
        damages: &mut Damages,
    ) -> Result<Plan> {
        let mut headless = Vec::new();
        let plan = Plan::new(asked, stored, question, |row, error| {
            headless.push((row, self.reason(row, error)?));
            Ok::<_, Error>(())
        })?;
        for (row, reason) in headless {
            for (_, series) in self.members(row) {
                let range = self.range_of(row);
                damages.extend(self.damage((row, range), *series, &plan, reason.clone()));
            }
        }
        Ok(plan)
    }

    /// The reason why a row or one of its columns cannot be read. It is noted, and the read continues with the other rows.
    /// Only a chunk of a newer version is an error.
    fn reason(&self, row: usize, error: tacho_chunk::Error) -> Result<Arc<str>> {
        let Some((group, row)) = self.rows.get(row) else { return Err(unreadable(error)) };
        let reason = row.reason((Kind::Sample, group.id), error)?;
        self.reader.unreadable.note((Kind::Sample, group.id), &row.key, &reason);
        Ok(reason)
    }

    /// The series of the unit that may be in a row.
    fn members(&self, row: usize) -> &[(u16, usize)] {
        self.rows.get(row).map_or(&[], |(group, _)| &group.members)
    }

    /// Time range of a row with an unreadable header.
    fn range_of(&self, row: usize) -> TimeRange {
        self.rows.get(row).map_or(TimeRange::ALL, |(_, row)| row.range())
    }

    fn damage(
        &self,
        (row, range): (usize, TimeRange),
        series: usize,
        plan: &Plan,
        reason: Arc<str>,
    ) -> Damages {
        let (Some((_, row)), Some((number, _))) = (self.rows.get(row), self.unit.series.get(series)) else {
            return Damages::default();
        };
        let labels = self.reader.index.read().labels_of(*number);
        let lost = Lost { key: row.key, range, reason };
        lost.of(Kind::Sample, Some(labels), self.range, plan.masks(series))
    }
}

/// The first generation in memory, and for each series of the unit its samples in memory and its masks.
fn open_samples(reader: &Reader, unit: &Unit, range: TimeRange) -> (u64, Vec<Asked>) {
    let read = |generation: &Generation| -> Vec<Vec<Part>> {
        let parts = |(number, _): &(u32, usize)| {
            let columns = generation.samples.get(*number).map(|open| open.columns(range).0);
            let parts = columns.into_iter().flatten();
            parts.filter_map(|column| Part::of_column((generation.number, 0), column)).collect()
        };
        unit.series.iter().map(parts).collect()
    };
    let memory = read_memory(reader, |generation| Some(read(generation)));
    let mut asked: Vec<Asked> = Vec::new();
    asked.resize_with(unit.series.len(), Asked::default);
    for parts in memory.parts {
        for (asked, parts) in asked.iter_mut().zip(parts) {
            asked.open.extend(parts);
        }
    }
    if let Some(masks) = reader.masks.by_labels() {
        // Patterns are not tried under the lock of the index.
        let labels: Vec<Arc<Labels>> = {
            let index = reader.index.read();
            unit.series.iter().map(|(number, _)| index.labels_of(*number)).collect()
        };
        for (asked, labels) in asked.iter_mut().zip(labels) {
            asked.masks = masks(&labels);
        }
    }
    (memory.oldest, asked)
}

/// Runs the jobs on this thread, on a blocking thread, or on several, depending on the number of samples. Each job has
/// the number of its unit.
async fn decode(
    threads: Threads,
    jobs: Vec<(usize, Job)>,
    samples: usize,
    range: TimeRange,
) -> Result<Vec<(usize, Done)>> {
    if samples <= VALUES_INLINE_MAX {
        let alone = SharedJobs { jobs, next: AtomicUsize::new(0) };
        return Ok(alone.run(range, &|| true).into_iter().map(|(_, done)| done).collect());
    }
    // A closure, so that the cores are counted only when needed: `available_parallelism` reads several files.
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let count = match samples / VALUES_A_THREAD {
        0 | 1 => 1,
        wanted => wanted.min(cores()),
    };
    let columns: usize = jobs.iter().map(|(_, job)| job.columns()).sum();
    // Threads that are done early take more parts.
    let part = (columns / (count * PARTS_A_THREAD)).max(PART_COLUMNS_MIN);
    let divide = |(unit, job): (usize, Job)| job.parts(part).into_iter().map(move |job| (unit, job));
    let jobs: Vec<(usize, Job)> = if count > 1 { jobs.into_iter().flat_map(divide).collect() } else { jobs };
    let shared = Arc::new(SharedJobs { jobs, next: AtomicUsize::new(0) });
    // Dropped together with this future when the caller stops waiting. The tasks then stop.
    let wanted = Arc::new(());
    let start = |_| {
        let (shared, wanted) = (shared.clone(), Arc::downgrade(&wanted));
        threads.start(move || shared.run(range, &|| wanted.strong_count() > 0))
    };
    let tasks: Vec<_> = (0..count).map(start).collect();
    let mut all = Vec::new();
    for task in tasks {
        let ended = |e| Error::new(ErrorKind::Closed, "decoding did not end").caused_by(e);
        all.extend(task.join().await.map_err(ended)?);
    }
    drop(wanted);
    // Restores the order of the jobs.
    all.sort_unstable_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, done)| done).collect())
}

/// Jobs that threads share. Each thread repeatedly takes the next job. A single thread therefore runs all jobs in order.
struct SharedJobs {
    jobs: Vec<(usize, Job)>,
    next: AtomicUsize,
}

impl SharedJobs {
    /// The results with the numbers of their jobs. Stops when `is_wanted` returns false.
    fn run(&self, range: TimeRange, is_wanted: &dyn Fn() -> bool) -> Vec<(usize, (usize, Done))> {
        let mut all = Vec::new();
        while is_wanted() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((unit, job)) = self.jobs.get(number) else { break };
            let mut done = Done::default();
            job.run(range, &mut done);
            all.push((number, (*unit, done)));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryDriver, Options, Store};
    use tacho_model::{Batch, Labels, ManualClock, Sample, SampleSeries, Value};

    /// The whole flush of a new series takes place between two steps of a read.
    #[tokio::test]
    async fn a_series_that_is_flushed_for_the_first_time_during_a_read_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let (driver, clock) = (Arc::new(MemoryDriver::new()), Arc::new(ManualClock::new(0)));
        let store = Store::open(driver, directory.path(), Options::default(), clock).await.unwrap();
        let labels = Arc::new(Labels::new([("name", "m")]).unwrap());
        let samples = vec![Sample { at: 1, value: Value::I64(7) }];
        let batch =
            Batch { samples: vec![SampleSeries { labels: labels.clone(), samples }], ..Batch::default() };
        store.append(batch, None).await.unwrap();
        let reader = store.reader();
        let question = Question { range: TimeRange::ALL, reach: TimeRange::ALL, windows: None };
        let count = async |units: &mut [Unit]| {
            let (room, mut answer) = (AtomicUsize::new(usize::MAX), SampleAnswer::default());
            let limits = Limits { room: &room, rows_max: None };
            let pieces = read(reader, units, question, limits, &mut answer).await.unwrap();
            pieces.iter().flat_map(|(_, pieces, _)| pieces).flat_map(Piece::samples).count()
        };
        let mut before = units(reader, &[labels.id()]);
        store.flush().await.unwrap();
        assert_eq!(count(&mut before).await, 1);
        assert_eq!(count(&mut units(reader, &[labels.id()])).await, 1);
    }
}
