"""The requests of one round, by protocol.

Line protocol: bodies of 50,000 lines, pod by pod, all with one time. Remote write: the requests of a Prometheus,
which scrapes each pod at its own offset within the interval, and distributes the series over four shards. Each shard
sends requests of 2,000 samples in the order of the scrapes. So a request has samples of many pods, and at most one of
each series. All samples of a pod have the same time.
"""

import struct
from collections.abc import Iterator
from random import Random

from ..common.client import Request
from ..store.encode.remote_write import NAME, label_pairs, snappy_literal, varint
from ..store.systems.promql import remote_write_request
from .fleet import FIELD, MEASUREMENT, METRIC, PATHS, Fleet

LINES_A_BODY = 50_000
SAMPLES_A_REQUEST = 2_000
SHARDS = 4
TIME = "@"
"""Stands for the time in templates. No name of the fleet contains it."""
SMALL = {NAME: "small", "by": "bench"}
TIME_FIELD, VALUE_HEAD = b"\x10", b"\x09"
SAMPLE_BYTES = len(VALUE_HEAD) + 8 + len(TIME_FIELD) + len(varint(1 << 41))
"""A value and a time in ms. The time has the same length from 1972 to 2108."""


class Lines:
    """Requests in line protocol."""

    def __init__(self, fleet: Fleet):
        self._fleet = fleet
        self._templates = [self._template(pod) for pod in range(fleet.pods)]

    def round(self, time_ms: int) -> list[list[bytes]]:
        """The bodies of this round. Each inner list must be sent in order; the lists may be sent at the same time."""
        for pod in self._fleet.replaced:
            self._templates[pod] = self._template(pod)
        return [[body] for body in self._bodies(time_ms)]

    def time_ms(self, _pod: int, time_ms: int) -> int:
        """The time of a pod's samples in the round that begins at this time."""
        return time_ms

    @staticmethod
    def request(body: bytes) -> Request:
        return Request("POST", "/write", body)

    @staticmethod
    def small(time_ms: int) -> bytes:
        """One sample of a series that is not part of the fleet."""
        return f"small,by=bench v=1 {time_ms}000000\n".encode()

    def _bodies(self, time_ms: int) -> Iterator[bytes]:
        pods, time = LINES_A_BODY // len(PATHS), f"{time_ms}000000"
        for first in range(0, self._fleet.pods, pods):
            values = self._fleet.counts[first * len(PATHS) : (first + pods) * len(PATHS)]
            template = "".join(self._templates[first : first + pods])
            yield (template % tuple(values)).replace(TIME, time).encode()

    def _template(self, pod: int) -> str:
        name, zone = self._fleet.name(pod), self._fleet.zone(pod)
        return "".join(f"{MEASUREMENT},pod={name},path={path},zone={zone} {FIELD}=%d {TIME}\n" for path in PATHS)


class Remote:
    """Requests of remote write."""

    def __init__(self, fleet: Fleet, step_ms: int, seed: int):
        self._fleet = fleet
        random = Random(seed)
        self._offsets = [random.randrange(step_ms) for _ in range(fleet.pods)]
        self._scrapes = sorted((offset, pod) for pod, offset in enumerate(self._offsets))
        self._heads = [self._pod_heads(pod) for pod in range(fleet.pods)]

    def round(self, time_ms: int) -> list[list[bytes]]:
        """The requests of this round, by shard."""
        for pod in self._fleet.replaced:
            self._heads[pod] = self._pod_heads(pod)
        return [list(self._requests(shard, time_ms)) for shard in range(SHARDS)]

    def time_ms(self, pod: int, time_ms: int) -> int:
        """The time of a pod's samples in the round that begins at this time."""
        return time_ms + self._offsets[pod]

    @staticmethod
    def request(body: bytes) -> Request:
        return remote_write_request(body)

    @staticmethod
    def small(time_ms: int) -> bytes:
        """One sample of a series that is not part of the fleet."""
        return snappy_literal(Remote._head(SMALL) + struct.pack("<d", 1) + TIME_FIELD + varint(time_ms))

    def _requests(self, shard: int, time_ms: int) -> Iterator[bytes]:
        parts: list[bytes] = []
        samples = 0
        for offset, pod in self._scrapes:
            time = TIME_FIELD + varint(time_ms + offset)
            first = pod * len(PATHS)
            for nth in range((shard - first) % SHARDS, len(PATHS), SHARDS):
                parts += (self._heads[pod][nth], struct.pack("<d", self._fleet.counts[first + nth]), time)
                samples += 1
            if samples >= SAMPLES_A_REQUEST:
                yield snappy_literal(b"".join(parts))
                parts, samples = [], 0
        if parts:
            yield snappy_literal(b"".join(parts))

    def _pod_heads(self, pod: int) -> list[bytes]:
        name, zone = self._fleet.name(pod), self._fleet.zone(pod)
        return [self._head({NAME: METRIC, "path": path, "pod": name, "zone": zone}) for path in PATHS]

    @staticmethod
    def _head(pairs: dict[str, str]) -> bytes:
        """All bytes of a message `TimeSeries` before the value of its only sample."""
        labels = label_pairs(pairs)
        series = b"\x0a" + varint(len(labels) + 2 + SAMPLE_BYTES)
        return series + labels + b"\x12" + varint(SAMPLE_BYTES) + VALUE_HEAD
