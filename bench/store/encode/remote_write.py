"""Prometheus remote write 1.0: protobuf in a snappy block.

```
WriteRequest { repeated TimeSeries timeseries = 1 }
TimeSeries { repeated Label labels = 1; repeated Sample samples = 2 }
Label { string name = 1; string value = 2 }
Sample { double value = 1; int64 timestamp = 2 (ms) }
```
The snappy block is one literal, so that a server needs almost no time for decompression. A body has the same rows as a
body of lines, grouped by series. With 100 frames, about a hundred samples follow each label set. So the receiver decodes
fewer label sets than from requests of Prometheus itself.
"""

import struct
from collections.abc import Iterator

from ..dataset import Dataset, Frame

NAME = "__name__"
LITERAL_OF_4_BYTES_LENGTH = 63 << 2
SAMPLE = struct.Struct("<3sd")


def remote_write(dataset: Dataset) -> Iterator[bytes]:
    """Bodies with as many rows as the bodies of `lines`."""
    labels = [[_labels(dataset.measurement, frame, name) for name in frame.columns] for frame in dataset.frames]
    columns = [list(frame.columns.values()) for frame in dataset.frames]
    for piece in dataset.bodies():
        request = bytearray()
        for number, rows in _by_frame(piece).items():
            times = [_field(2, 0) + varint(dataset.frames[number].times_ms[row]) for row in rows]
            for text, column in zip(labels[number], columns[number]):
                samples = b"".join([_sample(column[row], time) for row, time in zip(rows, times)])
                request += _message(1, text + samples)
        yield snappy_literal(bytes(request))


def _by_frame(piece: list[tuple[int, int, int]]) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    for _, frame, row in piece:
        rows.setdefault(frame, []).append(row)
    return rows


def _labels(measurement: str, frame: Frame, name: str) -> bytes:
    pairs = {NAME: f"{measurement}_{name}"} | frame.tags
    return label_pairs(pairs)


def label_pairs(pairs: dict[str, str]) -> bytes:
    """The labels of a series as fields of `TimeSeries`, sorted by name."""
    return b"".join(_message(1, _message(1, key.encode()) + _message(2, pairs[key].encode())) for key in sorted(pairs))


def _sample(value: float, time: bytes) -> bytes:
    return SAMPLE.pack(bytes((2 << 3 | 2, 9 + len(time), 1 << 3 | 1)), value) + time


def _field(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


def _message(number: int, payload: bytes) -> bytes:
    return _field(number, 2) + varint(len(payload)) + payload


def varint(number: int) -> bytes:
    """LEB128. `number` must not be negative."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def snappy_literal(payload: bytes) -> bytes:
    """The payload as one literal of a snappy block."""
    return varint(len(payload)) + bytes((LITERAL_OF_4_BYTES_LENGTH,)) + struct.pack("<I", len(payload) - 1) + payload
