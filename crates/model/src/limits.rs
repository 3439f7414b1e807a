//! Limits on labels and records, each with its unit. A value over a limit is refused with an error that states the limit;
//! it is never truncated silently.

/// Limit on the number of labels of one series. Series of real Prometheus setups usually have fewer than 30 labels. 64 leaves a
/// margin, and bounds the memory that a hostile sender can use.
pub const LABELS_MAX: usize = 64;
pub const LABEL_NAME_BYTES_MAX: usize = 256;
pub const LABEL_VALUE_BYTES_MAX: usize = 4_096;
/// Limit on the bytes of all labels of one series: names, values, and one end byte after each name and each value. InfluxDB has
/// the same limit for a series key. The other limits alone permit more than four times this size. That is too much for line
/// protocol, because each field of a line becomes a series with all labels of the line.
pub const LABELS_BYTES_MAX: usize = 65_536;
/// Limit on the bytes of one entry's body. A long stack trace fits.
pub const ENTRY_BYTES_MAX: usize = 1 << 20;
/// Limit on the bytes of one operation name. A normalised SQL statement may be long.
pub const OPERATION_BYTES_MAX: usize = 8_192;
/// Limit on the events (enters and exits) in one part of a segment; the agent cuts longer segments into parts.
pub const SEGMENT_EVENTS_MAX: usize = 65_536;
/// Limit on the calls that are open where a segment is cut, and that the next part carries.
pub const SEGMENT_CARRIED_MAX: usize = 65_536;
pub const SEGMENT_ATTRIBUTES_MAX: usize = 4_096;
/// Limit on the bytes of one attribute value; the agent truncates longer values and appends `…`.
pub const ATTRIBUTE_BYTES_MAX: usize = 4_096;
