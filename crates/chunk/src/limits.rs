//! All limits of a chunk (`docs/format/chunk.md`, *Limits*).

/// Limit on samples, entries or segments per chunk. The store cuts chunks much earlier.
pub const CHUNK_RECORDS_MAX: usize = 1 << 20;
/// Limit on the series of a group. Each series is a column of values in a chunk of samples. A host reports tens of metrics at the
/// same times. More columns would make the header large.
pub const GROUP_MEMBERS_MAX: usize = 64;
/// Limit on the events of a chunk. The same limit applies to carried calls (entered in an earlier part of their segment), to
/// attributes and to template slots. It bounds the memory that a few hostile bytes can request (32 MiB per column).
pub const CHUNK_EVENTS_MAX: usize = 1 << 22;
/// Limit on the bytes of one column of strings in any form except plain, after decompression and after expanding a dictionary
/// or templates. The encoder stores larger columns plain.
pub const CHUNK_TEXT_BYTES_MAX: usize = 1 << 28;
/// Limit on columns per chunk. Executions have a few columns for each attribute key.
pub const CHUNK_COLUMNS_MAX: usize = 16_384;
/// Limit on columns of times per chunk of executions.
pub const CHUNK_TIME_GROUPS_MAX: usize = 256;
/// Limit on the bytes of a header.
pub const CHUNK_HEADER_BYTES_MAX: usize = 1 << 20;
/// Limit on the nesting depth of columns. The outermost column has depth 0. Example: `decimal` contains `multiple`, which
/// contains `packed`; `packed` has depth 2.
pub const NESTING_MAX: u8 = 2;
/// Limit on the cells of a summary: two for each operation. A chunk whose operations need more cells has no summary.
pub const SUMMARY_CELLS_MAX: usize = 1 << 16;
/// Limit on the points of a summary (a point has the calls of one cell in one slot of time). The same limit applies to the slots
/// with requests, and to the buckets.
pub const SUMMARY_POINTS_MAX: usize = 1 << 18;
/// Limit on the links of a summary. A chunk with more pairs of calling and called operations has no summary.
pub const SUMMARY_LINKS_MAX: usize = 1 << 16;
/// Limit on the statuses of a summary. The summary of a chunk with more statuses has no bounds of durations by status.
pub const SUMMARY_STATUSES_MAX: usize = 64;
/// Limit on the loose parts of a summary: parts of segments whose previous or next part is in another chunk. A chunk with more
/// loose parts has no summary.
pub const SUMMARY_LOOSE_MAX: usize = 1 << 10;
