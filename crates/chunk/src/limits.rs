//! Every limit of a chunk, with its unit and reason (`docs/format/chunk.md`, *Limits*).

/// Samples, entries or segments of one chunk. The store seals chunks much earlier; readers refuse more.
pub const CHUNK_RECORDS_MAX: usize = 1 << 20;
/// Series of one group, i.e. columns of values in one chunk of samples: hosts report tens of metrics together, and a header
/// stays small.
pub const GROUP_MEMBERS_MAX: usize = 64;
/// Events, carried calls, attributes, or template slots of one chunk: bounds the memory that a few hostile bytes can request
/// (32 MiB per column).
pub const CHUNK_EVENTS_MAX: usize = 1 << 22;
/// Bytes of one column of strings after decompression, or after expanding a dictionary or templates. Larger columns are
/// stored plain.
pub const CHUNK_TEXT_BYTES_MAX: usize = 1 << 28;
/// Columns of one chunk: executions have a few for each attribute key.
pub const CHUNK_COLUMNS_MAX: usize = 16_384;
/// Columns of times in one chunk of executions.
pub const CHUNK_TIME_GROUPS_MAX: usize = 256;
/// Bytes of one header.
pub const CHUNK_HEADER_BYTES_MAX: usize = 1 << 20;
/// Nesting depth of columns: an integer column of multiples of packed numbers has depth three.
pub const NESTING_MAX: u8 = 2;
