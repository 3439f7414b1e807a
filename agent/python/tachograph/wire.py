"""Encoding of the protocol: frames, records and definitions as specified in docs/format/wire.md.

Functions with the prefix `put_` append to a bytearray. Functions named after a frame or a record of the agent return its body;
`probes` reads the body of a frame of the server. The module has no state.
Before: reader (segments), inbox (samples, entries), dictionary, outbox (frames). After: link.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Optional

from . import messages
from .crc32c import crc32c

VERSION = 1
# The bytes "HTTP", read as the length of a frame: the server's HTTP port answers with them.
_HTTP = int.from_bytes(b"HTTP", "little")
FRAME_HEADER_BYTES = 12
FRAME_BODY_BYTES_MAX = 4_194_304
DICT_IDS_MAX = 65_536
DICT_BYTES_MAX = 16_777_216
HELLO_PAIRS_MAX = 32
TOKEN_BYTES_MAX = 256
HEARTBEAT_MS = 5_000
PROBE_RULES_MAX = 1_000
PROBED_TEXT_BYTES_MAX = 512

# From crates/model/src/limits.rs.
LABELS_MAX = 64
LABEL_NAME_BYTES_MAX = 256
LABEL_VALUE_BYTES_MAX = 4_096
ENTRY_BYTES_MAX = 1 << 20
OPERATION_BYTES_MAX = 8_192
SEGMENT_EVENTS_MAX = 65_536
SEGMENT_CARRIED_MAX = 65_536
SEGMENT_ATTRIBUTES_MAX = 4_096
ATTRIBUTE_BYTES_MAX = 4_096

HELLO, DICT, DATA, PING, BYE, PROBED = 1, 2, 3, 4, 5, 6
WELCOME, ACK, WAIT, PONG, ERROR, REJECT, PROBES = 65, 66, 67, 68, 69, 70, 71

DICT_TEXT, DICT_OPERATION, DICT_SERIES = 1, 2, 3
TAG_SAMPLES, TAG_ENTRY, TAG_SEGMENT = 1, 2, 3
VALUE_F64, VALUE_I64, VALUE_U64 = 1, 2, 3
BODY_TEXT, BODY_BYTES = 0, 1
FLAG_CONTINUED, FLAG_PARENT, FLAG_TRACE_FULL, FLAG_TRACE_OF_SEGMENT, FLAG_ATTRIBUTES = 1, 2, 4, 8, 16
FORM_TEXT_ID, FORM_STRING, FORM_UUID, FORM_INTEGER = 0, 1, 2, 3

MASK64 = (1 << 64) - 1


class DamagedError(Exception):
    """The received bytes violate the protocol; the message has the details."""


# ---- primitives ----


def put_varint(out: bytearray, value: int) -> None:
    """Unsigned LEB128 of 0 to 2^64 - 1."""
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def zigzag(value: int) -> int:
    """Maps a signed number, taken modulo 2^64, to an unsigned number."""
    value &= MASK64
    return (value << 1 & MASK64) ^ (MASK64 if value >> 63 else 0)


def put_blob(out: bytearray, data: bytes) -> None:
    put_varint(out, len(data))
    out += data


def size(text: str) -> int:
    """The bytes of the text in UTF-8, encoded as by `cut`."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def cut(text: str, bytes_max: int) -> bytes:
    """UTF-8; longer text is cut between two characters and ends with an ellipsis. Lone surrogates become question marks."""
    data = text.encode("utf-8", "replace")
    if len(data) <= bytes_max:
        return data
    end = bytes_max - 3
    while data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end] + "…".encode()


# ---- frames ----


def frame(type_: int, body: bytes) -> bytes:
    head = struct.pack("<IBBH", len(body), type_, 0, 0)
    return head + struct.pack("<I", crc32c(head + body)) + body


def hello(
    session: bytes,
    pairs: Iterable[tuple[str, str]],
    version_min: int = VERSION,
    version_max: int = VERSION,
    secret: Optional[bytes] = None,
    token: bytes = b"",
) -> bytes:
    """`session`: 16 bytes. `secret`: 16 bytes from which the session is derived. `token`: authenticates the client. At most
    `HELLO_PAIRS_MAX` pairs are used."""
    taken = list(pairs)[:HELLO_PAIRS_MAX]
    out = bytearray(b"tacho")
    out += bytes((version_min, version_max))
    out += session
    put_varint(out, len(taken))
    for key, value in taken:
        put_blob(out, key.encode())
        put_blob(out, cut(value, LABEL_VALUE_BYTES_MAX))
    # A token follows a secret. Zeros stand for no secret.
    out += secret or (bytes(16) if token else b"")
    return with_token(bytes(out), token)


def with_token(hello_body: bytes, token: bytes) -> bytes:
    """`hello_body`: a HELLO with a secret and without a token."""
    out = bytearray(hello_body)
    if token:
        put_blob(out, token)
    return bytes(out)


def ping(executions_dropped: int, samples_dropped: int, entries_dropped: int, bytes_buffered: int) -> bytes:
    out = bytearray()
    for count in (executions_dropped, samples_dropped, entries_dropped, bytes_buffered):
        put_varint(out, count)
    return bytes(out)


@dataclass
class Report:
    """The result of applying the rules of the PROBES frame with this revision.

    `on`, `aggregated`, `off`: numbers of operations. `rules`: for each rule the number of operations that it decides, and the
    reason why it is invalid, empty for a valid rule. `moved`: operations that are aggregated or switched off without a rule,
    with the reason and the time of the change, ns since the epoch.
    """

    revision: int
    on: int
    aggregated: int
    off: int
    rules: Sequence[tuple[int, str]] = ()
    moved: Sequence[tuple[str, str, int]] = ()


def probed(report: Report) -> bytes:
    out = bytearray()
    for count in (report.revision, report.on, report.aggregated, report.off, len(report.rules)):
        put_varint(out, count)
    for at, (matched, fault) in enumerate(report.rules):
        put_varint(out, at)
        put_varint(out, matched)
        put_blob(out, cut(fault, PROBED_TEXT_BYTES_MAX))
    put_varint(out, len(report.moved))
    for operation, reason, since in report.moved:
        put_blob(out, cut(operation, PROBED_TEXT_BYTES_MAX))
        put_blob(out, cut(reason, PROBED_TEXT_BYTES_MAX))
        out += (since & MASK64).to_bytes(8, "little")
    return bytes(out)


def data_head(seq: int, base: int) -> bytearray:
    """`base`: ns since the epoch. Records follow."""
    out = bytearray()
    put_varint(out, seq)
    out += (base & MASK64).to_bytes(8, "little")
    return out


# ---- definitions ----


def put_text(out: bytearray, id_: int, text: bytes) -> None:
    out.append(DICT_TEXT)
    put_varint(out, id_)
    put_blob(out, text)


def put_operation(out: bytearray, id_: int, kind: int, name: bytes) -> None:
    out.append(DICT_OPERATION)
    put_varint(out, id_)
    out.append(kind)
    put_blob(out, name)


def put_series(out: bytearray, id_: int, labels: Iterable[tuple[bytes, bytes]]) -> None:
    pairs = list(labels)
    out.append(DICT_SERIES)
    put_varint(out, id_)
    put_varint(out, len(pairs))
    for name, value in pairs:
        put_blob(out, name)
        put_blob(out, value)


# ---- records: the content behind tag and length ----


def put_record(out: bytearray, tag: int, content: bytes) -> None:
    out.append(tag)
    put_blob(out, content)


def samples(value_type: int, series: int, base: int, points: Iterable[tuple[int, float]]) -> bytes:
    """`points`: (time in ns, value). Values fit `value_type`: floats for `VALUE_F64`, else integers."""
    points = list(points)
    out = bytearray((value_type,))
    put_varint(out, series)
    put_varint(out, len(points))
    before = base
    for time, value in points:
        put_varint(out, zigzag(time - before))
        before = time
        if value_type == VALUE_F64:
            out += struct.pack("<d", value)
        else:
            put_varint(out, zigzag(int(value)) if value_type == VALUE_I64 else int(value))
    return bytes(out)


def entry(series: int, dt: int, body: int, content: bytes) -> bytes:
    """`dt`: ns since the frame's base. `body`: `BODY_TEXT` or `BODY_BYTES`."""
    out = bytearray()
    put_varint(out, series)
    put_varint(out, zigzag(dt))
    out.append(body)
    put_blob(out, content)
    return bytes(out)


def put_enter(out: bytearray, dt: int, operation: int) -> None:
    """With `operation` 0 the event is not an enter: the innermost open call ends as failed."""
    put_varint(out, dt << 1 | 1)
    put_varint(out, operation)


def put_exit(out: bytearray, dt: int) -> None:
    put_varint(out, dt << 1)


def put_failed(out: bytearray, dt: int) -> None:
    put_enter(out, dt, 0)


@dataclass
class Head:
    """The fields of a part of a segment, without events and attributes. One object is reused for all parts, because a sender
    writes thousands of parts per second.

    `trace`: 16 bytes, or None. `trace_of`: number of the segment that began the trace, or None. If both are None, the trace
    begins with this segment. `parent`: 8 bytes, or None. `part` 0 is the first. `carried`: the calls that earlier parts left
    open, each as (operation, call, age in ns), outermost first.
    """

    segment: int = 0
    thread: int = 0
    trace: Optional[bytes] = None
    trace_of: Optional[int] = None
    parent: Optional[bytes] = None
    part: int = 0
    first_call: int = 0
    carried: Sequence[tuple[int, int, int]] = ()


def segment(head: Head, start: int, events: bytes, event_count: int, attributes: bytes, attribute_count: int) -> bytes:
    """`start`: ns since the frame's base. `events` and `attributes`: output of the `put_` functions."""
    trace, trace_of, parent = head.trace, head.trace_of, head.parent
    flags = FLAG_ATTRIBUTES if attribute_count else 0
    if head.part:
        flags |= FLAG_CONTINUED
    if parent is not None:
        flags |= FLAG_PARENT
    out = bytearray((flags,))
    put_varint(out, head.segment)
    if trace is not None:
        out[0] |= FLAG_TRACE_FULL
        out += trace
    elif trace_of is not None:
        out[0] |= FLAG_TRACE_OF_SEGMENT
        put_varint(out, trace_of)
    put_varint(out, head.thread)
    put_varint(out, zigzag(start))
    if parent is not None:
        out += parent
    if head.part:
        for number in (head.part, head.first_call, len(head.carried)):
            put_varint(out, number)
        for call in head.carried:
            for number in call:
                put_varint(out, number)
    put_varint(out, event_count)
    out += events
    if attribute_count:
        put_varint(out, attribute_count)
        out += attributes
    return bytes(out)


# ---- attributes ----


def put_attribute_text(out: bytearray, call: int, key: int, text: int) -> None:
    put_varint(out, call)
    put_varint(out, key)
    out.append(FORM_TEXT_ID)
    put_varint(out, text)


def put_attribute_string(out: bytearray, call: int, key: int, value: bytes) -> None:
    put_varint(out, call)
    put_varint(out, key)
    out.append(FORM_STRING)
    put_blob(out, value)


def put_attribute_uuid(out: bytearray, call: int, key: int, value: bytes) -> None:
    """`value`: 16 bytes."""
    put_varint(out, call)
    put_varint(out, key)
    out.append(FORM_UUID)
    out += value


def put_attribute_integer(out: bytearray, call: int, key: int, value: int) -> None:
    """`value`: -2^63 to 2^63 - 1."""
    put_varint(out, call)
    put_varint(out, key)
    out.append(FORM_INTEGER)
    put_varint(out, zigzag(value))


# ---- from the server ----


class Body:
    """Reads the body of a control frame in sequence. Raises DamagedError if it ends too early."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def u8(self) -> int:
        return self.raw(1)[0]

    def raw(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            raise DamagedError(f"a frame's body of {len(self.data)} bytes ends inside a field of {count} bytes at byte {self.at}")
        self.at, begin = end, self.at
        return self.data[begin:end]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
            if shift > 63:
                raise DamagedError(f"a varint of more than 10 bytes at byte {self.at}")
        if value > MASK64:
            raise DamagedError(f"a varint of more than 64 bits at byte {self.at}")
        return value

    def string(self) -> str:
        return self.raw(self.varint()).decode("utf-8", "replace")

    def i64(self) -> int:
        return int.from_bytes(self.raw(8), "little", signed=True)


def probes(body: Body) -> tuple[int, list[tuple[int, str]]]:
    """(revision, state and pattern of each rule). Raises DamagedError."""
    revision, count = body.varint(), body.varint()
    if count > PROBE_RULES_MAX:
        raise DamagedError(f"PROBES claims {count} rules, at most {PROBE_RULES_MAX} are allowed")
    return revision, [(body.u8(), body.string()) for _ in range(count)]


class FrameReader:
    def __init__(self) -> None:
        self.pending = bytearray()

    def push(self, data: bytes) -> None:
        self.pending += data

    def next(self) -> Optional[tuple[int, Body]]:
        """(type, body) of the next frame, None if it is incomplete. Raises DamagedError."""
        if len(self.pending) < FRAME_HEADER_BYTES:
            return None
        length, type_, _, _, checksum = struct.unpack_from("<IBBHI", self.pending)
        if length == _HTTP:
            raise DamagedError(messages.SERVER_IS_HTTP)
        if length > FRAME_BODY_BYTES_MAX:
            raise DamagedError(f"a frame claims {length} bytes")
        end = FRAME_HEADER_BYTES + length
        if len(self.pending) < end:
            return None
        body = bytes(self.pending[FRAME_HEADER_BYTES:end])
        computed = crc32c(bytes(self.pending[:8]) + body)
        if computed != checksum:
            raise DamagedError(f"frame checksum mismatch: expected 0x{checksum:08x}, got 0x{computed:08x}")
        del self.pending[:end]
        return type_, Body(body)
