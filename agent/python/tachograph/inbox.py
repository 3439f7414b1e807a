"""Samples and entries that wait for the sender, in two bounded lists. Any thread appends to a list without a lock.

Before: the program (`sample`, `entry`) and the samplers. After: outbox, by way of the sender.
"""

from __future__ import annotations

from collections import deque
from time import time_ns
from typing import Optional, Union

from . import wire
from .dictionary import Labels
from .outbox import Outbox
from .totals import Totals
from .track import Home

# Maximum number of waiting samples, and of waiting entries. The sender empties the lists, sleeps for at most 50 ms (1 s after an
# error), and repeats.
RECORDS_MAX = 65_536
# Limit on the size of the waiting entries. Above it, further entries are dropped.
BYTES_MAX = 16 << 20

_POINTS_MAX = 1_000

Value = Union[int, float]


class Inbox:
    def __init__(self, home: Home, labels: dict[str, str]) -> None:
        """`labels`: labels of all series; a record may have its own label of the same name."""
        self.home = home
        self.labels = labels
        self.samples: deque[tuple[Labels, int, Value]] = deque()
        self.entries: deque[tuple[Labels, int, Union[str, bytes]]] = deque()
        self.entry_bytes = 0
        self.samples_dropped = 0
        self.entries_dropped = 0

    def series(self, name: str, labels: dict[str, object]) -> Labels:
        """Raises ValueError for a label that is too long. The server would refuse it, and its text would fill the dictionary."""
        for label, value in labels.items():
            for what, text, most in (
                ("name", label, wire.LABEL_NAME_BYTES_MAX),
                ("value", str(value), wire.LABEL_VALUE_BYTES_MAX),
            ):
                size = wire.size(text)
                if size > most:
                    shown = label[: wire.LABEL_NAME_BYTES_MAX]
                    raise ValueError(f"the {what} of the label {shown} has {size} bytes, at most {most} are allowed")
        return tuple(sorted({**self.labels, "__name__": name, **{key: str(value) for key, value in labels.items()}}.items()))

    def sample(self, series: Labels, value: Value, at: Optional[int] = None) -> None:
        """`at`: ns since the epoch, None for now."""
        if len(self.samples) >= RECORDS_MAX:
            with self.home.lock:
                self.samples_dropped += 1
        else:
            self.samples.append((series, time_ns() if at is None else at, value))

    def entry(self, series: Labels, body: Union[str, bytes], at: Optional[int] = None) -> None:
        if len(self.entries) >= RECORDS_MAX or self.entry_bytes > BYTES_MAX:
            with self.home.lock:
                self.entries_dropped += 1
        else:
            content = body[: wire.ENTRY_BYTES_MAX]
            # A race may lose an update, but the limit on memory need not be exact.
            self.entry_bytes += len(content) if isinstance(content, bytes) else wire.size(content)
            self.entries.append((series, time_ns() if at is None else at, content))

    # ---- the sender's side ----

    def empty_into(self, outbox: Outbox, totals: Totals) -> None:
        """Moves all samples and entries into the outbox. Drops and counts them if the outbox is full. Up to 1,000 samples of one
        series and type form one record of a DATA frame."""
        points: dict[tuple[Labels, int], list[tuple[int, Value]]] = {}
        for _ in range(len(self.samples)):
            series, at, value = self.samples.popleft()
            points.setdefault((series, value_type(value)), []).append((at, value))
        for (series, type_), values in points.items():
            for begin in range(0, len(values), _POINTS_MAX):
                _put_samples(series, type_, values[begin : begin + _POINTS_MAX], outbox, totals)
        for _ in range(len(self.entries)):
            _put_entry(*self.entries.popleft(), outbox, totals)
        self.entry_bytes = 0


def value_type(value: Value) -> int:
    is_whole = isinstance(value, int) and -(1 << 63) <= value < 1 << 63
    return wire.VALUE_I64 if is_whole else wire.VALUE_F64


def _put_samples(series: Labels, type_: int, points: list[tuple[int, Value]], outbox: Outbox, totals: Totals) -> None:
    id_ = 0 if outbox.is_full else outbox.dictionary.series(series)
    if not id_:
        totals.samples_dropped += len(points)
        return
    base = outbox.begin(points[0][0])
    outbox.put(wire.TAG_SAMPLES, wire.samples(type_, id_, base, points), samples=len(points))
    totals.samples_sent += len(points)


def _put_entry(series: Labels, at: int, body: Union[str, bytes], outbox: Outbox, totals: Totals) -> None:
    id_ = 0 if outbox.is_full else outbox.dictionary.series(series)
    if not id_:
        totals.entries_dropped += 1
        return
    form = wire.BODY_BYTES if isinstance(body, bytes) else wire.BODY_TEXT
    content = body if isinstance(body, bytes) else wire.cut(body, wire.ENTRY_BYTES_MAX)
    dt = at - outbox.begin(at)
    outbox.put(wire.TAG_ENTRY, wire.entry(id_, dt, form, content), entries=1)
    totals.entries_sent += 1
