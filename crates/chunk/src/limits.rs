//! Every limit of a chunk with its unit and its reason (`docs/format/chunk.md`, *Limits*).

/// Samples, entries or segments of one chunk. A store cuts far earlier; a reader refuses more.
pub const CHUNK_RECORDS_MAX: usize = 1 << 20;
/// Series of one group, columns of values in one chunk of samples: hosts report tens of metrics together; a header stays small.
pub const GROUP_MEMBERS_MAX: usize = 64;
/// Events, carried calls, attributes, or slots of templates of one chunk: bounds what a few hostile bytes can unfold to (32 MiB a
/// column).
pub const CHUNK_EVENTS_MAX: usize = 1 << 22;
/// Bytes of one column of strings that compression, a dictionary or templates may unfold. A larger column is written plain.
pub const CHUNK_TEXT_BYTES_MAX: usize = 1 << 28;
/// Columns of one chunk: executions have a few for each attribute key.
pub const CHUNK_COLUMNS_MAX: usize = 16_384;
/// Columns of times in one chunk of executions.
pub const CHUNK_TIME_GROUPS_MAX: usize = 256;
/// Bytes of one header.
pub const CHUNK_HEADER_BYTES_MAX: usize = 1 << 20;
/// How deep columns nest: an integer column of multiples of packed numbers is three deep.
pub const NESTING_MAX: u8 = 2;
