// Constants of the protocol. The limits have the names and values of `docs/format/wire.md` and `crates/model/src/limits.rs`.

export const VERSION = 1;
export const FRAME_HEADER_BYTES = 12;
export const FRAME_BODY_BYTES_MAX = 4_194_304;
export const DICT_IDS_MAX = 65_536;
export const DICT_BYTES_MAX = 16_777_216;
export const HELLO_PAIRS_MAX = 32;
export const TOKEN_BYTES_MAX = 256;
export const PROBE_RULES_MAX = 1_000;
export const PROBED_TEXT_BYTES_MAX = 512;

export const LABELS_MAX = 64;
export const LABEL_NAME_BYTES_MAX = 256;
export const LABEL_VALUE_BYTES_MAX = 4_096;
export const LABELS_BYTES_MAX = 65_536;
export const ENTRY_BYTES_MAX = 1_048_576;
export const OPERATION_BYTES_MAX = 8_192;
export const SEGMENT_ATTRIBUTES_MAX = 4_096;
export const ATTRIBUTE_BYTES_MAX = 4_096;

export const FRAME = /** @type {const} */ ({
  HELLO: 1,
  DICT: 2,
  DATA: 3,
  PING: 4,
  BYE: 5,
  PROBED: 6,
  WELCOME: 65,
  ACK: 66,
  WAIT: 67,
  PONG: 68,
  ERROR: 69,
  REJECT: 70,
  PROBES: 71,
});

/** Kinds of definitions in a DICT frame. */
export const DICT = /** @type {const} */ ({ TEXT: 1, OPERATION: 2, SERIES: 3 });

/** Tags of the records of a DATA frame. */
export const TAG = /** @type {const} */ ({ SAMPLES: 1, ENTRY: 2, SEGMENT: 3 });

/** Types of the values of samples. */
export const VALUE = /** @type {const} */ ({ F64: 1, I64: 2, U64: 3 });

/** Flags of a segment. */
export const FLAG = /** @type {const} */ ({ CONTINUED: 1, PARENT: 2, TRACE_FULL: 4, TRACE_OF_SEGMENT: 8, ATTRIBUTES: 16 });

/** Forms of an attribute's value. */
export const FORM = /** @type {const} */ ({ TEXT_ID: 0, STRING: 1, UUID: 2, INTEGER: 3 });

export const KIND = /** @type {const} */ ({
  METHOD: 1,
  HTTP_SERVER: 2,
  HTTP_CLIENT: 3,
  DATABASE: 4,
  CONNECTION_WAIT: 5,
  TASK: 6,
});

/** States of an operation, as in rules. */
export const STATE = /** @type {const} */ ({ OFF: 0, ON: 1, AGGREGATE: 2 });
