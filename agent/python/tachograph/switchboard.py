"""Applies the rules of the server. For a new list of rules it decides the states of all operations again, changes the code of
selected functions, and restores the code of functions that are off. Then it reports the result, and again when the result
changes.

Runs on the sender's thread, in short slices, so that the sender can empty the tracks even while a thousand rules are applied to
ten thousand operations. A new state applies to calls that begin later. Before: link. After: operations (states), imports
(functions), link (answers).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Optional

from . import wire
from .imports import Imports
from .log import Log
from .operations import AGGREGATE, NO_RULE, OFF, ON, OTHER, Operations
from .rules import Rules

# Minimum and maximum pause before a changed result is reported again. The first pause is short, because few operations are
# known when the connection is made. Each report doubles the pause. The pause is short again when the last report is 5 s old.
TELL_S = (0.2, 5.0)
# Time limit for applying rules in one round of the sender.
SLICE_S = 0.003


class Switchboard:
    def __init__(self, operations: Operations, imports: Imports, log: Log) -> None:
        self.operations = operations
        self.imports = imports
        self.log = log
        self.rules = Rules()
        # Remaining work for the current rules; None: the rules are applied.
        self.left: Optional[Iterator[None]] = None
        # Revision of the PROBES to report on; None: none has arrived on this connection.
        self.revision: Optional[int] = None
        self.told: Optional[bytes] = None
        self.told_at = 0.0
        self.pause_s = TELL_S[0]

    def connected(self) -> None:
        """Called for a new connection. The last rules stay in force. The first report follows the PROBES of the connection."""
        self.revision = None

    def take(self, revision: int, given: Sequence[tuple[int, str]]) -> None:
        """Takes a complete list of rules. Never raises."""
        self.rules = Rules(given)
        self.revision, self.told = revision, None
        for rule in self.rules.list:
            if rule.fault:
                self.log.say_once(f"rule {rule.fault}", f"a rule of the server is ignored: {rule.fault}")
        self.imports.rules = self.rules  # must be first, so that a module imported at this moment is not missed
        self.left = self._follow()

    def _follow(self) -> Iterator[None]:
        yield from self.operations.decide_all(self.rules.decide)
        yield from self.imports.follow()

    @property
    def is_deciding(self) -> bool:
        return self.left is not None

    def go_on(self) -> None:
        """Applies rules for at most `SLICE_S`. Never raises."""
        end = monotonic() + SLICE_S
        try:
            while self.left is not None:
                if next(self.left, self) is self:
                    self.left = None
                    self.log.detail(f"applied {len(self.rules.list)} rules of the server")
                elif monotonic() >= end:
                    return
        except Exception as e:  # out of memory or an internal error: states stay as they are
            self.left = None
            self.log.say_once("rules", f"the rules of the server are ignored: {type(e).__name__}: {e}")

    def answer(self, now: float) -> Optional[bytes]:
        """The body of a PROBED, if there is something to report. `now`: seconds."""
        age = now - self.told_at
        is_early = self.told is not None and (not self.operations.has_news or age < self.pause_s)
        if self.revision is None or self.is_deciding or is_early:
            return None
        self.operations.has_news = False  # must be first: changes during the count are reported next time
        body = wire.probed(self._report(self.revision))
        if body == self.told:
            return None
        self.pause_s = TELL_S[0] if self.told is None or age >= TELL_S[1] else min(TELL_S[1], 2 * self.pause_s)
        self.told, self.told_at = body, now
        return body

    def _report(self, revision: int) -> wire.Report:
        states = self.operations.states
        counts = {ON: 0, OFF: 0, AGGREGATE: 0}
        matched = [0] * len(self.rules.list)
        for id_, (_, name) in enumerate(self.operations.entries):
            decider = self.operations.deciders[id_]
            # An operation that is off without a rule is not instrumented, so it is not counted.
            if id_ and name != OTHER and (decider != NO_RULE or states[id_] != OFF):
                counts[states[id_]] += 1
                if NO_RULE < decider < len(matched):
                    matched[decider] += 1
        rules = [(count, rule.fault) for count, rule in zip(matched, self.rules.list)]
        return wire.Report(revision, counts[ON], counts[AGGREGATE], counts[OFF], rules)
