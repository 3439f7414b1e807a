"""The known operations and their states. A name becomes a number once; calls carry the number.

Ids count from 1. The number of names is bounded; further names of a kind become its operation `(other)`. Before: recorder and
probes. After: dictionary, which assigns an operation its wire id.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Callable

METHOD, HTTP_SERVER, HTTP_CLIENT, DATABASE, CONNECTION_WAIT, TASK = 1, 2, 3, 4, 5, 6
OTHER = "(other)"

# States of an operation. A call only checks whether the state of its operation is 0.
ON, OFF, AGGREGATE = 0, 1, 2

NO_RULE = -1

# Limit on names of all kinds together; a large, fully instrumented program has fewer functions.
COUNT_MAX = 262_144
# Limit on names of each kind except method. These names come from data, so they have no natural bound.
DYNAMIC_MAX = 8_192

Decide = Callable[[int, str, int, int], tuple[int, int]]
"""Arguments: kind, name, number of characters of the module's name or 0, state without rules. Result: the rule that decides,
and the state."""


def _own(_kind: int, _name: str, _module_chars: int, own: int) -> tuple[int, int]:
    return NO_RULE, own


class Operations:
    def __init__(self, count_max: int = COUNT_MAX, dynamic_max: int = DYNAMIC_MAX) -> None:
        self.count_max = count_max
        self.dynamic_max = dynamic_max
        self.ids: dict[tuple[int, str], int] = {}
        self.counts = [0] * (TASK + 1)
        # (kind, name) by id; id 0 is unused.
        self.entries: list[tuple[int, str]] = [(0, "")]
        # These lists have one element per id: the current state, the rule that decides it, the state without rules, and the
        # length of the module's name at the beginning of the name.
        self.states = [ON]
        self.deciders = [NO_RULE]
        self.own = [ON]
        self.module_chars = [0]
        # The state of new operations, by kind, for the kinds whose names come from data.
        self.kinds = [ON] * (TASK + 1)
        self.decide: Decide = _own
        # True if operations or decisions were added since the last report to the server. The switchboard sets it to false.
        self.has_news = True
        self.lock = threading.Lock()
        self.other = [0] + [self._add(kind, OTHER) for kind in range(METHOD, TASK + 1)]

    def id(self, kind: int, name: str) -> int:
        """Never fails. Takes no lock for a known name or for a new name beyond a bound."""
        known = self.ids.get((kind, name))
        if known is not None:
            return known
        if self._is_full(kind):
            return self.other[kind]
        with self.lock:
            return self.ids.get((kind, name)) or self._add(kind, name)

    def function(self, kind: int, name: str, module_chars: int, own: int = ON) -> int:
        """Id of a function. Its name begins with the `module_chars` characters of its module's name; 0: the program has chosen
        the name. `own`: its state without rules."""
        if (kind, name) not in self.ids and not self._is_full(kind):
            with self.lock:
                if (kind, name) not in self.ids:
                    return self._add(kind, name, module_chars, own)
        id_ = self.id(kind, name)
        if own == ON and self.own[id_] != ON:
            self.own[id_] = ON
            self._decide(id_)
        return id_

    def _is_full(self, kind: int) -> bool:
        return len(self.entries) > self.count_max or (kind != METHOD and self.counts[kind] > self.dynamic_max)

    def _add(self, kind: int, name: str, module_chars: int = 0, own: int = ON) -> int:
        rule, state = self.decide(kind, name, module_chars, own)
        self.states.append(state)
        self.deciders.append(rule)
        self.own.append(own)
        self.module_chars.append(module_chars)
        self.entries.append((kind, name))
        self.counts[kind] += 1
        id_ = len(self.entries) - 1
        self.ids[kind, name] = id_
        self.has_news = True
        return id_

    # ---- rules ----

    def decide_all(self, decide: Decide) -> Iterator[None]:
        """From now on `decide` determines the state of operations. New operations are decided at once, known operations one per
        step."""
        with self.lock:  # `known` includes each operation that another thread has decided with the previous function
            self.decide = decide
            known = len(self.entries)
        for id_ in self.other[METHOD:]:
            self._decide(id_)
        self.kinds = [ON, *(self.states[self.other[kind]] for kind in range(METHOD, TASK + 1))]
        for id_ in range(1, known):
            self._decide(id_)
            yield

    def _decide(self, id_: int) -> None:
        kind, name = self.entries[id_]
        self.deciders[id_], self.states[id_] = self.decide(kind, name, self.module_chars[id_], self.own[id_])
        self.has_news = True


SHARED = Operations()
