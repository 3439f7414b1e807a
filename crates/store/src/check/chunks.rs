//! Is a row of the table of chunks sound? Checks its key, its group and its records.

use std::sync::PoisonError;

use tacho_chunk::{Checked, Chunk, Header};
use tacho_model::{Kind, SeriesId, TimeRange};

use super::checker::{Checker, Depth, Nameless, Unrecorded, Verdict, chain};
use super::finding::{Finding, FindingKind, Lost, Place};
use crate::damage::time;
use crate::driver::{Damaged, Row, Scanned, Table};
use crate::group::row::{Split, remains, replacement_bytes, split_value};
use crate::keys::{ChunkKey, Span, chunk_place};
use crate::kinds::plural;
use crate::upkeep::row_sequence;
use crate::{ErrorKind, Result};

#[derive(Clone, Copy)]
struct Named {
    kind: Kind,
    group: SeriesId,
    key: ChunkKey,
}

impl Checker {
    pub(super) fn chunk(&self, place: Place, is_key_certain: bool, row: Scanned) -> Result<Verdict> {
        let (Ok(Row { partition, clustering, .. }) | Err(Damaged { partition, clustering, .. })) = &row;
        // The text of the key is made only for rows with a finding.
        let named = match named(partition, clustering) {
            Ok(named) => named,
            Err(error) if error.kind() == ErrorKind::Version && row.is_ok() => return Err(error),
            Err(error) => {
                let key_bytes = chunk_key_bytes(partition, clustering);
                let why = row.err().map_or_else(|| chain(&error), |damaged| damaged.reason.into());
                let finding = Finding::new(FindingKind::KeyWrong, place, why).key(key_bytes);
                return Ok(Verdict::found(finding.effect("the series and times of its records are unknown")));
            }
        };
        match row {
            Ok(row) => self.sound_chunk(place, named, row),
            Err(damaged) => Ok(self.damaged_chunk(place, named, is_key_certain, damaged)),
        }
    }

    /// Whether the chunk of a damaged row fits its key. Then the key is probably intact.
    pub(super) fn has_chunk_of_key(&self, row: &Scanned) -> bool {
        let Err(damaged) = row else { return true };
        let named = match named(&damaged.partition, &damaged.clustering) {
            Ok(named) if damaged.table == Table::Chunks => named,
            _ => return false,
        };
        let rest = remains(&damaged.value);
        // A merged row without a chunk has no records.
        if rest.chunk.is_empty() {
            return rest.merge.is_some_and(|merge| merge > 0);
        }
        // A series that was deleted is unknown.
        let members = self.member_count(named.kind, named.group).unwrap_or(usize::MAX);
        Chunk::open(&rest.chunk).is_ok_and(|chunk| misplaced(&named, chunk.header(), members).is_none())
    }

    /// Checks a row that matches its checksum.
    fn sound_chunk(&self, place: Place, named: Named, row: Row) -> Result<Verdict> {
        let Named { kind, group, key } = named;
        let split = match split_value(&row.value) {
            Ok(split) => split,
            Err(error) if error.kind() == ErrorKind::Version => return Err(error),
            Err(error) => {
                let lost = self.lost_of(named, None, &[]);
                let finding = Finding::new(FindingKind::ChunkDamaged, place, chain(&error));
                return Ok(Verdict::found(finding.key(self.named_words(named)).lost(lost)));
            }
        };
        if key.generation > self.highest {
            let why = format!("generation {} is above the last one, {}", key.generation, self.highest);
            let finding =
                Finding::new(FindingKind::GenerationUnknown, place, why).key(self.named_words(named));
            return Ok(Verdict::found(finding.lost(self.lost_of(named, None, &[]))));
        }
        self.note_sequence(&key, &split, &place);
        if split.chunk.is_empty() && split.replacement.is_some() {
            return Ok(Verdict { kept: Some(row), ..Verdict::default() });
        }
        let chunk = match Chunk::open(&split.chunk) {
            Ok(chunk) => chunk,
            Err(tacho_chunk::Error::Version { got, known }) => {
                return Err(crate::keys::newer("chunk", got.into(), known.into()));
            }
            Err(error) => {
                let lost = self.lost_of(named, None, &[]);
                let finding =
                    Finding::new(FindingKind::ChunkDamaged, place, error).key(self.named_words(named));
                return Ok(Verdict::found(finding.lost(lost)));
            }
        };
        let header = chunk.header();
        let Some(members) = self.member_count(kind, group) else {
            self.note_nameless(named, place, Some(header));
            return Ok(Verdict::default());
        };
        if let Some(why) = misplaced(&named, header, members) {
            let lost = self.lost_of(named, Some(header), &[]);
            let finding = Finding::new(FindingKind::KeyWrong, place, why).key(self.named_words(named));
            return Ok(Verdict::found(finding.lost(lost)));
        }
        let records = Some((kind, records(header, &[])));
        if self.depth == Depth::Quick {
            return Ok(Verdict { kept: Some(row), records, ..Verdict::default() });
        }
        match chunk.check() {
            Ok(Checked { summary: Some(tacho_chunk::Error::SummaryVersion { got, known }), .. }) => {
                Err(crate::keys::newer("summary of calls", got.into(), known.into()))
            }
            Ok(Checked { members, filters: None, summary: None }) if members.is_empty() => {
                Ok(Verdict { kept: Some(row), records, ..Verdict::default() })
            }
            Ok(Checked { members, filters, summary }) if members.is_empty() => {
                let filters = filters.map(|why| (FindingKind::FiltersWrong, why));
                let summary = summary.map(|why| (FindingKind::SummaryWrong, why));
                let finding = |(kind, why): (FindingKind, tacho_chunk::Error)| {
                    Finding::new(kind, place.clone(), why).key(self.named_words(named))
                };
                let findings = filters.into_iter().chain(summary).map(finding).collect();
                Ok(Verdict { findings, kept: with_new_front(&row, &split.chunk, &chunk), records })
            }
            found => {
                let mut verdict = self.wrong_columns(place, named, &chunk, found);
                verdict.kept = verdict.kept.map(|left| with_prefix(&row, &split.chunk, left));
                Ok(verdict)
            }
        }
    }

    /// Checks a row that does not match its checksum. Its chunk has its own checksums. If the key is certain, columns
    /// that match these checksums are kept.
    fn damaged_chunk(&self, place: Place, named: Named, is_key_certain: bool, damaged: Damaged) -> Verdict {
        let Named { kind, group, .. } = named;
        let rest = remains(&damaged.value);
        let chunk = Chunk::open(&rest.chunk).ok();
        let header = chunk.as_ref().map(Chunk::header);
        let is_placed = header
            .zip(self.member_count(kind, group))
            .is_some_and(|(header, members)| misplaced(&named, header, members).is_none());
        let why = |more: &str| format!("{}{more}", damaged.reason);
        let whole = |more: &str| {
            let lost = self.lost_of(named, header.filter(|_| is_placed), &[]);
            let finding =
                Finding::new(FindingKind::RowDamaged, place.clone(), why(more)).key(self.named_words(named));
            Verdict::found(finding.lost(lost))
        };
        // The prefix names the rows that this row replaced. Without the prefix, readers would get those rows again.
        let is_usable = is_placed && is_key_certain && rest.merge.is_some();
        let Some(chunk) = chunk.as_ref().filter(|_| is_usable) else {
            return whole(if is_key_certain { "" } else { "; its key may be damaged too" });
        };
        let row = Row {
            table: damaged.table,
            partition: damaged.partition.clone(),
            clustering: damaged.clustering.clone(),
            value: damaged.value.clone(),
        };
        match chunk.check() {
            Err(_) => whole(""),
            Ok(Checked { members, filters, summary }) if members.is_empty() => {
                let (kept, more) = match filters.or(summary) {
                    None => (Some(row), "; the chunk in it is whole"),
                    Some(_) => {
                        (with_new_front(&row, &rest.chunk, chunk), "; the records of its chunk are whole")
                    }
                };
                let finding = Finding::new(FindingKind::RowDamaged, place, why(more));
                let records = Some((kind, records(chunk.header(), &[])));
                Verdict { findings: vec![finding.key(self.named_words(named))], kept, records }
            }
            Ok(checked) => {
                let mut verdict = self.wrong_columns(place, named, chunk, Ok(checked));
                verdict.kept = verdict.kept.map(|left| with_prefix(&row, &rest.chunk, left));
                for finding in &mut verdict.findings {
                    finding.kind = FindingKind::RowDamaged;
                }
                verdict
            }
        }
    }

    /// The verdict on a chunk with records that cannot be decoded or do not match its header. If some columns are sound, the
    /// value of `kept` is a chunk of only these. The caller completes the row.
    fn wrong_columns(
        &self,
        place: Place,
        named: Named,
        chunk: &Chunk<'_>,
        found: Result<Checked, tacho_chunk::Error>,
    ) -> Verdict {
        let header = chunk.header();
        let (wrong, why) = match found {
            Ok(Checked { members: wrong, .. }) => {
                let why: Vec<String> =
                    wrong.iter().take(3).map(|(member, error)| format!("member {member}: {error}")).collect();
                (wrong.into_iter().map(|(member, _)| member).collect(), why.join("; "))
            }
            Err(error) => (Vec::new(), error.to_string()),
        };
        let left = (!wrong.is_empty()).then(|| chunk.without(&wrong)).flatten();
        let lost = match left {
            Some(_) => self.lost_of(named, Some(header), &wrong),
            None => self.lost_of(named, Some(header), &[]),
        };
        let finding =
            Finding::new(FindingKind::ChunkDamaged, place, why).key(self.named_words(named)).lost(lost);
        let kept = left.map(|left| Row {
            table: Table::Chunks,
            partition: Vec::new(),
            clustering: Vec::new(),
            value: left.into(),
        });
        let records = kept
            .is_some()
            .then(|| (named.kind, records(header, &[]).saturating_sub(records(header, &wrong))));
        Verdict { findings: vec![finding], kept, records }
    }

    /// The lost records of the members in `wrong`. If `wrong` is empty, the records of all members are
    /// lost.
    fn lost_of(&self, Named { kind, group, key }: Named, header: Option<&Header>, wrong: &[u16]) -> Lost {
        let members = self.members(kind, group).unwrap_or_default();
        let is_lost = |member: u16| match header {
            _ if kind != Kind::Sample => true,
            _ if !wrong.is_empty() => wrong.contains(&member),
            Some(header) => header.member(member).is_some(),
            None => true,
        };
        let series: Vec<u32> =
            members.iter().zip(0u16..).filter(|(_, member)| is_lost(*member)).map(|(n, _)| *n).collect();
        let range = header.map_or_else(
            || TimeRange::new(key.start, key.start.saturating_add_unsigned(key.span.span_max_ns())),
            |header| TimeRange::new(header.start, header.end),
        );
        self.lost(kind, &series, Some(range), header.map(|header| records(header, wrong)))
    }

    /// Notes a sequence number that is higher than the last one in the store's facts. The row is still sound: probably the
    /// fact was lost. A merge puts the row and the fact together. The next flush puts a second copy of the fact. Without the
    /// fact, the server continues after the highest number of all rows.
    fn note_sequence(&self, key: &ChunkKey, split: &Split, place: &Place) {
        let last = self.known.facts.last_sequence();
        let merge = split.replacement.map_or(0, |replacement| replacement.merge);
        // A key has only the lower 31 bits of a sequence number. They are not compared with a last number of more than 31 bits.
        let of_row = if last < 1 << 31 { row_sequence(key.number) } else { 0 };
        let highest = merge.max(of_row);
        // Older versions wrote no sequence to the facts.
        if last == 0 || highest <= last {
            return;
        }
        let mut noted = self.unrecorded.lock().unwrap_or_else(PoisonError::into_inner);
        let unrecorded = noted.get_or_insert_with(|| Unrecorded { place: place.clone(), chunks: 0, highest });
        unrecorded.chunks += 1;
        unrecorded.highest = unrecorded.highest.max(highest);
        if *place < unrecorded.place {
            unrecorded.place = place.clone();
        }
    }

    fn note_nameless(&self, Named { kind, group, key }: Named, place: Place, header: Option<&Header>) {
        let range = header.map_or(TimeRange::new(key.start, key.start), |h| TimeRange::new(h.start, h.end));
        let count = header.map(|header| records(header, &[]));
        let mut all = self.nameless.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry((kind, group)).or_insert_with(|| Nameless {
            place: place.clone(),
            chunks: 0,
            records: Some(0),
            range,
        });
        known.chunks += 1;
        known.records = known.records.zip(count).map(|(sum, count)| sum + count);
        known.range = TimeRange::new(known.range.start.min(range.start), known.range.end.max(range.end));
        known.place = known.place.clone().min(place);
    }

    pub(super) fn chunk_words(&self, partition: &[u8], clustering: &[u8]) -> String {
        named(partition, clustering)
            .map_or_else(|_| chunk_key_bytes(partition, clustering), |named| self.named_words(named))
    }

    fn named_words(&self, Named { kind, group, key }: Named) -> String {
        format!(
            "{} from {} on, generation {}, number {}",
            self.group_words(kind, group),
            time(key.start),
            key.generation,
            key.number
        )
    }
}

fn chunk_key_bytes(partition: &[u8], clustering: &[u8]) -> String {
    format!("chunk with an unreadable key of {} bytes", partition.len() + clustering.len())
}

fn named(partition: &[u8], clustering: &[u8]) -> Result<Named> {
    let malformed = || crate::Error::corrupt(format!("partition of {} bytes is malformed", partition.len()));
    let (kind, group) = chunk_place(partition).ok_or_else(malformed)?;
    Ok(Named { kind, group, key: ChunkKey::decode(clustering)? })
}

/// Number of samples, entries or calls of the given members of a chunk. An empty list means all members.
fn records(header: &Header, members: &[u16]) -> u64 {
    let columns = match (header.kind, members) {
        (Kind::Sample, []) => header.members.len(),
        (Kind::Sample, some) => some.len(),
        _ => 1,
    };
    (header.count * columns) as u64
}

/// The reason why a chunk does not belong to its key.
fn misplaced(Named { kind, key, .. }: &Named, header: &Header, members: usize) -> Option<String> {
    if header.kind != *kind {
        return Some(format!("it holds {}", plural(header.kind)));
    }
    if header.start != key.start {
        return Some(format!("its first time is {}, its key has {}", time(header.start), time(key.start)));
    }
    let span = header.end.abs_diff(header.start);
    // A segment may report a call that began before the segment.
    if kind != &Kind::Execution && key.span != Span::Long && span > key.span.span_max_ns() {
        return Some(format!("it spans {span} ns, its key permits {}", key.span.span_max_ns()));
    }
    let beyond = header.members.iter().find(|info| usize::from(info.member) >= members);
    beyond
        .filter(|_| *kind == Kind::Sample)
        .map(|info| format!("it has samples of member {}, the group has {members} members", info.member))
}

fn with_prefix(row: &Row, chunk: &[u8], left: Row) -> Row {
    with_chunk(row, chunk, &left.value)
}

fn with_chunk(row: &Row, chunk: &[u8], new: &[u8]) -> Row {
    let before = row.value.len() - chunk.len();
    debug_assert!(replacement_bytes(&row.value) == Some(before), "the prefix is sound");
    let value = [row.value.get(..before).unwrap_or_default(), new].concat();
    Row { value: value.into(), ..row.clone() }
}

/// The row with the same records, new filters and a new summary. `bytes` is the chunk of the row.
fn with_new_front(row: &Row, bytes: &[u8], chunk: &Chunk<'_>) -> Option<Row> {
    chunk.with_new_front().ok().map(|new| with_chunk(row, bytes, &new))
}
