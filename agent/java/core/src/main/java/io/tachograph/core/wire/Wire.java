package io.tachograph.core.wire;

/**
 * Constants of the protocol. A limit that is also in the table of limits of {@code
 * docs/format/wire.md} has the same name there.
 */
public final class Wire {
    public static final int VERSION = 1;
    public static final int FRAME_HEADER_BYTES = 12;
    public static final int FRAME_BODY_BYTES_MAX = 4_194_304;
    public static final int DICT_IDS_MAX = 65_536;
    public static final int DICT_BYTES_MAX = 16_777_216;
    public static final int HELLO_PAIRS_MAX = 32;
    public static final int TOKEN_BYTES_MAX = 256;
    public static final int HEARTBEAT_MS = 5_000;
    public static final int RECORD_FIELDS_MAX = 64;
    public static final int PROBE_RULES_MAX = 1_000;
    public static final int PROBED_MOVED_MAX = 256;
    public static final int PROBED_TEXT_BYTES_MAX = 512;

    /** The same value as in {@code crates/model/src/limits.rs}. */
    public static final int OPERATION_BYTES_MAX = 8_192;

    public static final int SEGMENT_EVENTS_MAX = 65_536;
    public static final int SEGMENT_CARRIED_MAX = 65_536;
    public static final int SEGMENT_ATTRIBUTES_MAX = 4_096;
    public static final int ATTRIBUTE_BYTES_MAX = 4_096;

    public static final int HELLO = 1;
    public static final int DICT = 2;
    public static final int DATA = 3;
    public static final int PING = 4;
    public static final int BYE = 5;
    public static final int PROBED = 6;
    public static final int WELCOME = 65;
    public static final int ACK = 66;
    public static final int WAIT = 67;
    public static final int PONG = 68;
    public static final int ERROR = 69;
    public static final int REJECT = 70;
    public static final int PROBES = 71;

    public static final int DICT_TEXT = 1;
    public static final int DICT_OPERATION = 2;
    public static final int DICT_SERIES = 3;
    public static final int DICT_RECORD_TYPE = 4;

    public static final int TAG_SAMPLES = 1;
    public static final int TAG_ENTRY = 2;
    public static final int TAG_SEGMENT = 3;
    public static final int TAG_RECORD = 4;

    public static final int VALUE_F64 = 1;
    public static final int VALUE_I64 = 2;
    public static final int VALUE_U64 = 3;

    public static final int FLAG_CONTINUED = 1;
    public static final int FLAG_PARENT = 2;
    public static final int FLAG_TRACE_FULL = 4;
    public static final int FLAG_TRACE_OF_SEGMENT = 8;
    public static final int FLAG_ATTRIBUTES = 16;

    public static final int FORM_TEXT_ID = 0;
    public static final int FORM_STRING = 1;
    public static final int FORM_UUID = 2;
    public static final int FORM_INTEGER = 3;

    /** A bit in the features of WELCOME: the server supports DICT kind 4 and DATA tag 4. */
    public static final int FEATURE_RECORDS = 1;

    public static final int FIELD_BOOL = 1;
    public static final int FIELD_I64 = 2;
    public static final int FIELD_F64 = 3;
    public static final int FIELD_TEXT = 4;
    public static final int FIELD_TEXT_ID = 5;
    public static final int FIELD_UUID = 6;
    public static final int FIELD_U64 = 7;
    public static final int FIELD_F32 = 8;
    public static final int FIELD_TIME = 9;

    public static final int RECORD_CONTEXT = 1;
    public static final int RECORD_NULLS = 2;
    public static final int RECORD_TRACE_FULL = 4;
    public static final int RECORD_TRACE_OF_SEGMENT = 8;

    private Wire() {}
}
