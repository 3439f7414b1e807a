"""How does a program follow the rules of the server? A new list decides every operation anew, functions that it names are
wrapped, those that it switches off are what they were; what came of it is answered at once, and again when it has changed.

All on the sender's thread, in slices: a thousand rules for ten thousand operations do not keep it from emptying the tracks. A
call that is open ends as it was entered. Before: link. After: operations (states), imports (functions), link (answers).
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

# An answer that has changed is given again so long after the one before, at the earliest: soon while a program starts, since it
# has called little when the connection is made, then twice as long after each, and soon again where the last is 5 s old.
TELL_S = (0.2, 5.0)
# How long deciding may keep the sender in one of its rounds.
SLICE_S = 0.003


class Switchboard:
    def __init__(self, operations: Operations, imports: Imports, log: Log) -> None:
        self.operations = operations
        self.imports = imports
        self.log = log
        self.rules = Rules()
        # What the rules at hand have left to do; None: they are followed.
        self.left: Optional[Iterator[None]] = None
        # Of the PROBES to be answered; None: nobody has asked on this connection.
        self.revision: Optional[int] = None
        self.told: Optional[bytes] = None
        self.told_at = 0.0
        self.pause_s = TELL_S[0]

    def connected(self) -> None:
        """A new connection: who is there is answered when it has asked. The rules hold on."""
        self.revision = None

    def take(self, revision: int, given: Sequence[tuple[int, str]]) -> None:
        """A list came: it is the whole one. Never raises."""
        self.rules = Rules(given)
        self.revision, self.told = revision, None
        for rule in self.rules.list:
            if rule.fault:
                self.log.say_once(f"rule {rule.fault}", f"a rule of the server is left out: {rule.fault}")
        self.imports.rules = self.rules  # first: a module that is imported meanwhile is not missed
        self.left = self._follow()

    def _follow(self) -> Iterator[None]:
        yield from self.operations.decide_all(self.rules.decide)
        yield from self.imports.follow()

    @property
    def is_deciding(self) -> bool:
        return self.left is not None

    def go_on(self) -> None:
        """Decides for a slice of time. Never raises."""
        end = monotonic() + SLICE_S
        try:
            while self.left is not None:
                if next(self.left, self) is self:
                    self.left = None
                    self.log.detail(f"follows {len(self.rules.list)} rules of the server")
                elif monotonic() >= end:
                    return
        except Exception as e:  # no memory, or a fault of ours: what is switched stays as it is
            self.left = None
            self.log.say_once("rules", f"the rules of the server are not followed: {type(e).__name__}: {e}")

    def answer(self, now: float) -> Optional[bytes]:
        """The body of a PROBED, if there is something to be told. `now`: seconds."""
        age = now - self.told_at
        is_early = self.told is not None and (not self.operations.has_news or age < self.pause_s)
        if self.revision is None or self.is_deciding or is_early:
            return None
        self.operations.has_news = False  # first: what comes while this is counted is looked at again
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
            # What is off of itself is not watched at all.
            if id_ and name != OTHER and (decider != NO_RULE or states[id_] != OFF):
                counts[states[id_]] += 1
                if NO_RULE < decider < len(matched):
                    matched[decider] += 1
        rules = [(count, rule.fault) for count, rule in zip(matched, self.rules.list)]
        return wire.Report(revision, counts[ON], counts[AGGREGATE], counts[OFF], rules)
