"""Size with the published method of Chronix: date-delta compaction, protobuf and gzip in chunks of 128 KiB. This
module is only the codec, without a server.

```
Points { repeated Point p = 1; uint32 ddc = 2 }
Point { uint64 tlong = 1; uint32 tint = 2; uint64 tlongBP = 3; uint32 tintBP = 4; double v = 5; uint32 vIndex = 6 }
```
A point contains the difference of its time from the previous time, unless this difference equals the last stored one. After an
omitted difference, the field is `tlongBP` or `tintBP`, otherwise `tlong` or `tint`. `ddc` is 0, a setting that the converter
of Chronix calls lossless. A point also contains its value, or the index of an earlier point of the chunk with the same value.

Chronix stores further data for each chunk (id, attributes, bounds, the search index). These data are not counted, which
favours Chronix. The processor time of gzip is that of zlib in C. The other parts are in Python, so their time is not measured.
"""

import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .dataset import Dataset
from .encode.remote_write import varint

CHUNK_BYTES = 128 * 1024
GZIP_LEVEL = 6  # java.util.zip's default
GZIP_WINDOW = 31
INT_MAX = 2**31 - 1
T_LONG, T_INT, T_LONG_BASE, T_INT_BASE, V, V_INDEX = range(1, 7)
POINT_TAG = b"\x0a"
DOUBLE = struct.Struct("<Bd")


@dataclass
class ChronixCost:
    """Sums over a dataset."""

    values: int = 0
    chunks: int = 0
    bytes: int = 0
    gzip_cpu_seconds: float = 0.0


def chronix_cost(dataset: Dataset) -> ChronixCost:
    """Encodes every series. Decodes the first chunk of each series and raises ValueError if the chunk differs from the
    input."""
    cost = ChronixCost()
    for frame in dataset.frames:
        for column in frame.columns.values():
            begun, first = 0, True
            for count, chunk in encode(frame.times_ms, column):
                before = time.process_time()
                packed = _gzip(chunk)
                cost.gzip_cpu_seconds += time.process_time() - before
                if first and decode(zlib.decompress(packed, GZIP_WINDOW), frame.times_ms[begun]) != (
                    list(frame.times_ms[begun : begun + count]),
                    list(map(float, column[begun : begun + count])),
                ):
                    raise ValueError(f"a chunk of {frame.identity} does not decode to its input")
                begun, first = begun + count, False
                cost.chunks += 1
                cost.values += count
                cost.bytes += len(packed)
    return cost


def encode(times: Sequence[int], values: Sequence[float]) -> Iterator[tuple[int, bytes]]:
    """(number of points, protobuf) of each chunk. The time of the first point is the start of the chunk, which Chronix
    stores separately."""
    chunk, seen, count, stored, omitted = bytearray(), {}, 0, 0, False
    previous = times[0]
    for moment, value in zip(times, values):
        if len(chunk) >= CHUNK_BYTES:
            yield count, bytes(chunk)
            chunk, seen, count, stored, omitted, previous = bytearray(), {}, 0, 0, False, moment
        delta, previous = moment - previous, moment
        if delta == stored:
            point, omitted = b"", True
        else:
            point, stored, omitted = _delta(delta, after_omission=omitted), delta, False
        index = seen.setdefault(value, count)
        point += DOUBLE.pack(V << 3 | 1, value) if index == count else bytes((V_INDEX << 3,)) + varint(index)
        chunk += POINT_TAG + varint(len(point)) + point
        count += 1
    yield count, bytes(chunk)


def decode(chunk: bytes, start: int) -> tuple[list[int], list[float]]:
    times, values, moment, stored, at = [], [], start, 0, 0
    while at < len(chunk):
        length, at = _varint_at(chunk, at + 1)
        end = at + length
        while at < end:
            number = chunk[at] >> 3
            if number == V:
                values.append(DOUBLE.unpack_from(chunk, at)[1])
                at += DOUBLE.size
                continue
            whole, at = _varint_at(chunk, at + 1)
            if number == V_INDEX:
                values.append(values[whole])
            else:
                stored = whole
        moment += stored
        times.append(moment)
    return times, values


def _delta(delta: int, after_omission: bool) -> bytes:
    if after_omission:
        number = T_INT_BASE if delta <= INT_MAX else T_LONG_BASE
    else:
        number = T_INT if delta <= INT_MAX else T_LONG
    return bytes((number << 3,)) + varint(delta)


def _gzip(chunk: bytes) -> bytes:
    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_WINDOW)
    return packer.compress(chunk) + packer.flush()


def _varint_at(data: bytes, at: int) -> tuple[int, int]:
    """The number, and the position after the number."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
