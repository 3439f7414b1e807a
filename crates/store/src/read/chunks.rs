//! Lists all stored chunks of one series, of any kind.

use tacho_chunk::{Chunk, Header};
use tacho_model::{Kind, SeriesId, TimeRange};

use super::Reader;
use super::rows::{Found, Lost, each_live};
use crate::Result;
use crate::damage::Read;

/// A chunk in the driver, for `tacho inspect`, and for reads that divide a range at starts of chunks.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkInfo {
    pub start: i64,
    pub end: i64,
    pub generation: u64,
    /// Size of key and value, bytes. For a chunk of several series, the share of this series.
    pub bytes: usize,
    /// Member number of the series; 0 for entries and executions.
    pub member: u16,
    pub header: Header,
}

/// All chunks of a series in the driver. The memtables are not included.
pub async fn chunks(reader: &Reader, kind: Kind, id: SeriesId) -> Result<Read<Vec<ChunkInfo>>> {
    let snapshot = reader.snapshots.open();
    let mut read: Read<Vec<ChunkInfo>> = Read::default();
    let masks = reader.masks_of(kind, id);
    for (group, member) in partitions(reader, kind, id) {
        let each = |found: Found| {
            let Found { key, chunk, row_bytes, .. } = &found;
            match Chunk::open(chunk) {
                Ok(chunk) => {
                    let header = chunk.into_header();
                    if let Some(bytes) = share(&header, member, *row_bytes) {
                        let (start, end, generation) = (header.start, header.end, key.generation);
                        read.records.push(ChunkInfo { start, end, generation, bytes, member, header });
                    }
                }
                Err(error) => {
                    let reason = found.reason((kind, group), error)?;
                    reader.unreadable.note((kind, group), key, &reason);
                    let lost = Lost { key: *key, range: found.range(), reason };
                    read.damages.extend(lost.of(kind, reader.labels_of(id), TimeRange::ALL, &masks));
                }
            }
            Ok(())
        };
        each_live(reader, (kind, group), TimeRange::ALL, &snapshot, each).await?;
    }
    read.records.sort_by_key(|info| (info.start, info.generation));
    Ok(read)
}

/// Partitions of a series, and its member number in each. The member number is 0 for entries and executions.
fn partitions(reader: &Reader, kind: Kind, id: SeriesId) -> Vec<(SeriesId, u16)> {
    if kind != Kind::Sample {
        return vec![(id, 0)];
    }
    let index = reader.index.read();
    let Some(number) = index.number(id) else { return Vec::new() };
    index.groups_of(number).map(|(group, member)| (index.group(group).id, member)).collect()
}

/// The share of a member in the bytes of its row. It is the sum of the member's own bytes and an equal share of the
/// common bytes. `None` if the chunk has no samples of the member.
fn share(header: &Header, member: u16, row_bytes: usize) -> Option<usize> {
    if header.kind != Kind::Sample {
        return Some(row_bytes);
    }
    let own = header.members.iter().find(|info| info.member == member)?.bytes;
    let columns: usize = header.members.iter().map(|info| info.bytes).sum();
    Some(own + row_bytes.saturating_sub(columns) / header.members.len().max(1))
}
