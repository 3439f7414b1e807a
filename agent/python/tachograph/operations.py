"""Which operations are there? A name becomes a number once; calls carry the number.

Ids count from 1. Bounded: past the bounds everything is the one operation `(other)` of its kind. Before: recorder and probes.
After: dictionary, which gives them ids on the wire when they are first sent.
"""

from __future__ import annotations

import threading

METHOD, HTTP_SERVER, HTTP_CLIENT, DATABASE, CONNECTION_WAIT, TASK = 1, 2, 3, 4, 5, 6
OTHER = "(other)"

# Names of all kinds together; a large program instrumented whole has fewer functions.
COUNT_MAX = 262_144
# Names of each kind but method: those come from data, so they have no natural bound.
DYNAMIC_MAX = 8_192


class Operations:
    def __init__(self, count_max: int = COUNT_MAX, dynamic_max: int = DYNAMIC_MAX) -> None:
        self.count_max = count_max
        self.dynamic_max = dynamic_max
        self.ids: dict[tuple[int, str], int] = {}
        self.counts = [0] * (TASK + 1)
        # (kind, name) by id; id 0 is none.
        self.entries: list[tuple[int, str]] = [(0, "")]
        self.lock = threading.Lock()
        self.other = [0] + [self._add(kind, OTHER) for kind in range(METHOD, TASK + 1)]

    def id(self, kind: int, name: str) -> int:
        """Never fails. Takes no lock for a name that is known, nor for a new one past a bound."""
        known = self.ids.get((kind, name))
        if known is not None:
            return known
        if self._is_full(kind):
            return self.other[kind]
        with self.lock:
            return self.ids.get((kind, name)) or self._add(kind, name)

    def _is_full(self, kind: int) -> bool:
        return len(self.entries) > self.count_max or (kind != METHOD and self.counts[kind] > self.dynamic_max)

    def _add(self, kind: int, name: str) -> int:
        self.entries.append((kind, name))
        self.counts[kind] += 1
        id_ = len(self.entries) - 1
        self.ids[kind, name] = id_
        return id_


SHARED = Operations()
