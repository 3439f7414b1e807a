//! Reads a window: the rows of a stretch of a partition, without decoding their records.
//!
//! A window has the rows that its stretch selects, up to a limit. These are the living rows with their facts, and the rows that
//! were replaced but are not deleted yet. The end of a window never separates rows with the same start. It never separates a row
//! from the rows that it replaced.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use futures_util::TryStreamExt;
use tacho_chunk::{Chunk, Header};
use tacho_model::{Kind, SeriesId, TimeRange, Timestamp};

use super::alive::alive;
use super::facts::{Facts, Next, State};
use super::merge::{Source, Treatment};
use super::snapshots::Place;
use super::tombstones::Mask;
use crate::driver::{Damaged, Driver, Row, RowStream, Scanned};
use crate::group::resent::Overhang;
use crate::group::row::{Replacement, Split, split_value};
use crate::keys::{ChunkKey, Span, chunk_partition, chunk_scan, spans};
use crate::memtable::SEGMENT_SHORT_MAX_NS;
use crate::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    pub kind: Kind,
    /// Id of the group for samples, id of the series for other kinds.
    pub id: SeriesId,
}

impl Partition {
    pub fn key(&self) -> Vec<u8> {
        chunk_partition(self.kind, self.id)
    }

    pub fn decode(key: &[u8]) -> Option<Self> {
        let (kind, id) = key.split_first()?;
        let id = SeriesId(u128::from_be_bytes(id.try_into().ok()?));
        Some(Self { kind: Kind::from_byte(*kind)?, id })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// Rows that start at this time or later. No earlier row reaches to this time or beyond.
    From(Timestamp),
    /// Rows that may have records at or after this time.
    Around(Timestamp),
    /// Rows that start at `from` or later. Earlier rows may reach beyond `from`, up to and including
    /// `reached`.
    Past { from: Timestamp, reached: Timestamp },
}

impl Stretch {
    /// The time from which boundaries between rows can be trusted.
    pub const fn floor(self) -> Timestamp {
        match self {
            Self::From(_) => Timestamp::MIN,
            Self::Around(from) => from,
            Self::Past { reached, .. } => reached.saturating_add(1),
        }
    }

    /// The start of the stretch, if rows that reach over it must be known.
    pub const fn looks_back(self) -> Option<Timestamp> {
        if let Self::Around(from) = self { Some(from) } else { None }
    }

    /// The range for [`chunk_scan`], which begins its scan `span_max_ns` before the start of the range.
    const fn range(self, span: Span) -> TimeRange {
        let start = match self {
            Self::From(Timestamp::MIN) => Timestamp::MIN,
            Self::From(from) | Self::Past { from, .. } => from.saturating_add_unsigned(span.span_max_ns()),
            Self::Around(from) => from,
        };
        TimeRange::new(start, Timestamp::MAX)
    }

    const fn holds(self, key: &ChunkKey) -> bool {
        match self {
            Self::From(from) | Self::Past { from, .. } => key.start >= from,
            Self::Around(_) => true,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Known {
    pub facts: Facts,
    pub source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableRow {
    pub key: ChunkKey,
    pub reason: Box<str>,
}

#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Living rows, ordered by start.
    pub rows: Vec<Known>,
    pub dead: Vec<Place>,
    /// Rows that replaced other rows and have no records. Without them, the dead rows would be alive again.
    pub emptied: Vec<Place>,
    /// Unreadable rows and the reasons. They are not changed, and no merge crosses them.
    pub undecodable: Vec<UnreadableRow>,
    /// The first row after the window; `None` at the end of the partition.
    pub next: Option<Next>,
    pub bytes: u64,
    /// The highest merge number of all rows.
    pub merge: u64,
    /// Whether rows of generations that are not completely flushed were skipped.
    pub young: bool,
}

/// Facts about rows, only in memory.
#[derive(Debug, Default)]
pub struct Notes {
    pub undecodable: HashSet<Place>,
    /// The last deletion that was applied, by row, for rows that merges of this process wrote. Cleared when no deletion is
    /// pending.
    pub applied: HashMap<Place, u64>,
}

impl Notes {
    fn of(&self, place: &Place) -> (u64, bool) {
        (self.applied.get(place).copied().unwrap_or(0), self.undecodable.contains(place))
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Scope {
    pub partition: Partition,
    pub stretch: Stretch,
    /// Rows that start after this time are skipped.
    pub end: Timestamp,
    /// Rows of later generations are skipped, because a flush may still write them again.
    pub through: u64,
    /// Approximate limit on the values of the rows. Together with [`BYTES_A_VALUE`] it bounds memory.
    pub values: usize,
}

/// Limit on the number of rows after a window that are checked for their reach. The check also ends at a row that starts later
/// than the first of these rows by the largest permitted change of a time. Where times were moved, that change is less than the
/// usual distance between samples, so few rows are checked.
const AHEAD_MAX: usize = 16;
/// Encoded bytes per value that are assumed for the size of a window.
const BYTES_A_VALUE: usize = 2;

pub async fn read(
    driver: &dyn Driver,
    scope: Scope,
    members: &[Treatment],
    notes: &Mutex<Notes>,
) -> Result<Window> {
    let Scope { partition, stretch, end, through, values: values_max } = scope;
    let mut heads = Heads::open(driver, partition, stretch).await?;
    let mut window = Window::default();
    let mut found: Vec<Found> = Vec::new();
    let (mut bytes, mut values, mut torn_before) = (0usize, 0usize, Timestamp::MIN);
    let mut moved_max = time_max(members);
    while let Some(head) = heads.next().await? {
        let key = head.0;
        if key.generation > through {
            window.young = true;
            continue;
        }
        let full = bytes >= values_max.saturating_mul(BYTES_A_VALUE) || values >= values_max;
        if full || key.start > end {
            let next = heads.behind(&head, moved_max).await?;
            if next.reach > torn_before {
                window.next = Some(next);
                break;
            }
        }
        // Rows with the same start must be read together, even if one of them is unreadable: no window ends between them.
        torn_before = torn_before.max(key.start);
        let split = head.1.map_err(Error::from).and_then(|row| Ok((split_value(&row.value)?, row)));
        let (Split { replacement, overhang, chunk }, row) = match split {
            Ok(split) => split,
            Err(error) => {
                window.undecodable.push(UnreadableRow { key, reason: error.to_string().into() });
                continue;
            }
        };
        let row_bytes = row.value.len() + row.clustering.len();
        window.bytes += row_bytes as u64;
        let place = (row.partition, row.clustering);
        torn_before = torn_before.max(replacement.map_or(Timestamp::MIN, |r| r.starts.end));
        window.merge = window.merge.max(replacement.map_or(0, |r| r.merge));
        let (applied, is_undecodable) = notes.lock().unwrap_or_else(PoisonError::into_inner).of(&place);
        let opened = Chunk::open(&chunk).map_err(|error| Box::from(error.to_string()));
        let opened = if is_undecodable { Err("its records cannot be decoded".into()) } else { opened };
        let known = opened.map(|chunk| facts(key, (replacement, overhang), chunk.header(), members, applied));
        let facts = known.as_ref().ok().copied();
        // The window must not end between the start of this row and the start plus the row's error. Otherwise a merge would have
        // to end before this row (`choice.rs`).
        let error = facts.map_or(0, |facts| facts.error);
        (moved_max, torn_before) =
            (moved_max.max(error), torn_before.max(key.start.saturating_add_unsigned(error)));
        // Rows that end before the stretch are read only to find rows that reach into it. They do not count towards the
        // limits. Otherwise the window could be full before the stretch is read.
        let is_passed =
            facts.is_some_and(|facts| stretch.looks_back().is_some_and(|from| facts.reach().end < from));
        if !is_passed {
            bytes += row_bytes;
            values += facts.map_or(0, |facts| facts.values);
        }
        let what = match known {
            Ok(_) if is_passed => What::Passed,
            Ok(facts) => What::Known(Known { facts, source: Source { key, overhang, chunk } }),
            Err(_) if chunk.is_empty() => What::Emptied,
            Err(reason) => What::Unreadable(UnreadableRow { key, reason }),
        };
        found.push(Found { place, key, replacement, what });
    }
    sort_out(found, &mut window);
    Ok(window)
}

/// The largest change of a time that the rules permit.
fn time_max(members: &[Treatment]) -> u64 {
    let rules = members.iter().filter_map(|treatment| treatment.semantic);
    rules.map(|semantic| semantic.time).max().unwrap_or(0)
}

struct Found {
    place: Place,
    key: ChunkKey,
    replacement: Option<Replacement>,
    what: What,
}

enum What {
    Known(Known),
    Passed,
    Emptied,
    Unreadable(UnreadableRow),
}

fn sort_out(found: Vec<Found>, window: &mut Window) {
    let merge = |f: &Found| f.replacement.map_or(0, |replacement| replacement.merge);
    let keys: Vec<_> = found.iter().map(|f| (f.key, f.replacement, merge(f))).collect();
    for (found, alive) in found.into_iter().zip(alive(&keys)) {
        match found.what {
            _ if !alive => window.dead.push(found.place),
            What::Known(known) => window.rows.push(known),
            What::Passed => {}
            What::Emptied => window.emptied.push(found.place),
            What::Unreadable(row) => window.undecodable.push(row),
        }
    }
}

fn facts(
    key: ChunkKey,
    (replacement, overhang): (Option<Replacement>, Overhang),
    header: &Header,
    members: &[Treatment],
    applied: u64,
) -> Facts {
    let (mut mask, mut columns) = (1u64, 1);
    if header.kind == Kind::Sample {
        mask = header
            .members
            .iter()
            .fold(0, |mask, info| mask | 1u64.checked_shl(info.member.into()).unwrap_or(0));
        columns = header.members.len();
    }
    let bucket = match (header.kind, key.span) {
        (Kind::Execution, Span::Short) => key.start.div_euclid(SEGMENT_SHORT_MAX_NS.cast_signed()),
        (Kind::Execution, _) => i64::MAX,
        _ => 0,
    };
    Facts {
        key,
        end: header.end,
        error: header.time_error_max,
        overhang,
        records: header.count,
        values: header.count.saturating_mul(columns),
        members: mask,
        bucket,
        replacement,
        state: state(key, header, members, applied),
    }
}

/// The work that rules and deletions require for a row. `applied` is the last deletion that was applied to it.
fn state(key: ChunkKey, header: &Header, members: &[Treatment], applied: u64) -> State {
    let untreated = Treatment::default();
    let one = [(0, None)];
    let here: Vec<_> = header.members.iter().map(|info| (info.member, Some(info))).collect();
    let here = if header.kind == Kind::Sample { &here[..] } else { &one[..] };
    let (mut expired, mut due) = (0, false);
    for (member, info) in here {
        let treatment = members.get(usize::from(*member)).unwrap_or(&untreated);
        let range = TimeRange::new(header.start, header.end);
        let masks_records =
            |mask: &Mask| mask.id > applied && key.generation <= mask.through && mask.range.overlaps(&range);
        expired += usize::from(header.end < treatment.expired_before);
        due |= treatment.masks.iter().any(masks_records);
        due |= info.zip(treatment.thin).is_some_and(|(info, (through, to))| {
            header.end <= through && info.loss.and_then(|loss| loss.aggregation) != Some(to)
        });
    }
    match expired {
        all if all == here.len() => State::Expired,
        0 if !due => State::Sound,
        _ => State::Due,
    }
}

type Head = (ChunkKey, Scanned);

/// Rows of all span classes of a partition, ordered by start.
struct Heads {
    stretch: Stretch,
    /// Rows that were read ahead and not taken yet.
    ahead: VecDeque<Head>,
    streams: Vec<(RowStream, Option<Head>)>,
}

impl Heads {
    async fn open(driver: &dyn Driver, partition: Partition, stretch: Stretch) -> Result<Self> {
        let mut heads = Self { stretch, ahead: VecDeque::new(), streams: Vec::new() };
        for span in spans(partition.kind) {
            let scan = chunk_scan(partition.kind, partition.id, *span, stretch.range(*span));
            let mut stream = driver.scan(scan).await?;
            let head = Self::advance(&mut stream, stretch).await?;
            heads.streams.push((stream, head));
        }
        Ok(heads)
    }

    async fn advance(stream: &mut RowStream, stretch: Stretch) -> Result<Option<Head>> {
        while let Some(row) = stream.try_next().await? {
            let (Ok(Row { clustering, .. }) | Err(Damaged { clustering, .. })) = &row;
            let key = ChunkKey::decode(clustering)?;
            if stretch.holds(&key) {
                return Ok(Some((key, row)));
            }
        }
        Ok(None)
    }

    /// Describes the end of the window. `first` is the first row after the window, which was already taken. The reach
    /// includes later rows that may reach further back than `first`.
    async fn behind(&mut self, first: &Head, moved_max: u64) -> Result<Next> {
        let start = first.0.start;
        let furthest = start.saturating_add_unsigned(moved_max);
        while self.ahead.len() < AHEAD_MAX && self.ahead.back().unwrap_or(first).0.start < furthest {
            match self.take().await? {
                Some(head) => self.ahead.push_back(head),
                None => break,
            }
        }
        let reach = |(key, row): &Head| {
            let split = row.as_ref().ok().and_then(|row| split_value(&row.value).ok());
            key.start.saturating_sub_unsigned(split.map_or(0, |split| split.overhang.before))
        };
        let reach = std::iter::once(first).chain(&self.ahead).map(reach).min().unwrap_or(start);
        Ok(Next { start, reach })
    }

    async fn next(&mut self) -> Result<Option<Head>> {
        match self.ahead.pop_front() {
            Some(head) => Ok(Some(head)),
            None => self.take().await,
        }
    }

    async fn take(&mut self) -> Result<Option<Head>> {
        let order = |(_, head): &&mut (RowStream, Option<Head>)| {
            head.as_ref().map_or((1, 0, 0, 0), |(key, _)| (0, key.start, key.generation, key.number))
        };
        let Some((stream, head)) = self.streams.iter_mut().min_by_key(order) else { return Ok(None) };
        let next = head.take();
        if next.is_some() {
            *head = Self::advance(stream, self.stretch).await?;
        }
        Ok(next)
    }
}
