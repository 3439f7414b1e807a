"""Counts of aggregated operations. A call is counted with its duration when it ends, and is not recorded.

Each thread counts in its own table, without a lock; the sender sums up the tables and sends the sums as series, like the Java
agent. Before: recorder, track. After: inbox.

    a row has the counts of one operation on one thread:
    sum, longest call of even and of odd intervals, failed, calls of each bucket     (times in ns)

The sender resets only the longest calls.
"""

from __future__ import annotations

import threading
import weakref
from time import monotonic
from typing import TYPE_CHECKING

from . import wire
from .operations import METHOD, SHARED

if TYPE_CHECKING:
    from .inbox import Inbox

# Upper bounds of the buckets, ns, inclusive: powers of 2 up to 16 us, then a factor of 4 up to 1 s. One more bucket is
# unbounded.
BOUNDS = [1 << (6 + at if at < 9 else 14 + 2 * (at - 8)) for at in range(17)]

# Limit on operations that are counted separately; each has some twenty series. Further operations are `(other)`.
OPERATIONS_MAX = 512

# Unchanged values are sent again at this interval, so that a query that looks back five minutes finds them.
_UNCHANGED_S = 60.0

_SUM, _LONGEST, _FAILED, _BUCKETS = 0, 1, 3, 4
_ROW_LENGTH = _BUCKETS + len(BOUNDS) + 1
_NAME = "tacho_operation_seconds"

# Maps the bit length of (duration - 1) to the index of the duration's bucket in a row.
_CELLS = [_BUCKETS + sum(1 << bits > bound for bound in BOUNDS) for bits in range(65)]

Row = list[int]
Table = dict[int, Row]


class Thread:
    """Kept by the local data of a thread, so it is collected when the thread ends."""

    __slots__ = ("__weakref__",)


class Tallies:
    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Resets the counts in a forked child."""
        self.local = threading.local()
        # Tables of the threads, each with an object that is collected when its thread ends.
        self.tables: list[tuple[weakref.ref[Thread], Table]] = []
        # Sums of threads that have ended.
        self.gone: Table = {}
        self.interval = 0
        self.apart: set[int] = set()
        # By operation: number of calls in its last report, and the time of that report.
        self.told: dict[int, tuple[int, float]] = {}

    # ---- the thread's side ----

    def add(self, operation: int, ns: int, is_failed: bool) -> None:
        try:
            row = self.local.table[operation]
        except (AttributeError, KeyError):
            row = self._row(operation)
        row[_CELLS[(ns - 1).bit_length() if ns > 0 else 0]] += 1
        row[_SUM] += ns
        slot = _LONGEST + self.interval
        if row[slot] < ns:  # noqa: PLR1730 (`max` would be a call, each time)
            row[slot] = ns
        if is_failed:
            row[_FAILED] += 1

    def _row(self, operation: int) -> Row:
        """Creates the row for the first call of this operation on this thread."""
        local = self.local
        if "table" not in local.__dict__:
            local.thread = Thread()
            local.table = {}
            self.tables.append((weakref.ref(local.thread), local.table))
        row: Row = local.table.setdefault(operation, [0] * _ROW_LENGTH)
        return row

    @property
    def has_news(self) -> bool:
        """True if calls were counted that are not in a report yet. May be called on any thread."""
        tables = [self.gone, *(table for _, table in list(self.tables))]
        counted = sum(sum(row[_BUCKETS:]) for table in tables for row in list(table.values()))
        return counted != sum(calls for calls, _ in list(self.told.values()))

    # ---- the sender's side ----

    def sample(self, inbox: Inbox) -> None:
        """Reports the operations that have new calls since their last report, and the others once a minute."""
        ended = self.interval
        self.interval = 1 - ended
        sums = self._sums(_LONGEST + ended)
        now = monotonic()
        for operation, row in sums.items():
            calls = sum(row[_BUCKETS:])
            told_calls, told_at = self.told.get(operation, (-1, now))
            if calls != told_calls or now - told_at > _UNCHANGED_S:
                self.told[operation] = (calls, now)
                _tell(operation, calls, row, row[_LONGEST + ended], inbox)

    def _sums(self, slot: int) -> Table:
        """The sums of the tables of all threads. `slot`: index in a row of the longest call in the finished interval."""
        sums: Table = {}
        _merge(sums, self.gone, slot)
        for thread, table in list(self.tables):
            has_ended = thread() is None  # must be read first: if the thread has ended, the table has all its counts
            _merge(sums, table, slot)
            if has_ended:
                _merge(self.gone, table, slot)
                self.tables.remove((thread, table))
        for operation in list(sums):
            if operation not in self.apart and not self._is_admitted(operation):
                _merge(sums, {SHARED.other[METHOD]: sums.pop(operation)}, slot)
        return sums

    def _is_admitted(self, operation: int) -> bool:
        """True if the operation is counted separately. A separate operation stays separate, so that the sums only grow."""
        if operation == SHARED.other[METHOD] or len(self.apart) < OPERATIONS_MAX:
            self.apart.add(operation)
            return True
        return False


def _merge(into: Table, table: Table, slot: int) -> None:
    """Adds the counts of `table` to `into`. Resets the longest calls at `slot` in `table`; the other counts stay in it."""
    for operation, row in list(table.items()):
        total = into.setdefault(operation, [0] * _ROW_LENGTH)
        longest, row[slot] = row[slot], 0
        for at in (_SUM, *range(_FAILED, _ROW_LENGTH)):
            total[at] += row[at]
        total[slot] = max(total[slot], longest)


def _tell(operation: int, calls: int, row: Row, longest: int, inbox: Inbox) -> None:
    labels: dict[str, object] = {"operation": wire.cut(SHARED.entries[operation][1], wire.LABEL_VALUE_BYTES_MAX).decode()}
    inbox.sample(inbox.series(f"{_NAME}_count", labels), calls)
    inbox.sample(inbox.series(f"{_NAME}_sum", labels), row[_SUM] / 1e9)
    inbox.sample(inbox.series(f"{_NAME}_max", labels), longest / 1e9)
    inbox.sample(inbox.series("tacho_operation_failed_total", labels), row[_FAILED])
    below = 0
    for at, count in enumerate(row[_BUCKETS:]):
        below += count
        bound = f"{BOUNDS[at] / 1e9:.9f}".rstrip("0").rstrip(".") if at < len(BOUNDS) else "+Inf"
        inbox.sample(inbox.series(f"{_NAME}_bucket", {**labels, "le": bound}), below)


TALLIES = Tallies()
