"""Logs outages of the server, and the end of each outage with the number of dropped records.

At most one outage is logged per minute: an outage that begins less than a minute after the latest logged outage is logged when
that minute is over. Outages that have ended by then share one line. A new reason for which the server refuses the token is logged
immediately. Before: link. After: drops, log.
"""

from __future__ import annotations

from typing import Optional

from . import messages
from .drops import Drops
from .log import Log
from .totals import Totals

_REPEAT_S = 60.0


class Outage:
    def __init__(self, server: str, totals: Totals, log: Log) -> None:
        self.server = server
        self.totals = totals
        self.log = log
        self.drops = Drops(totals, log)
        self.is_on = False
        self.is_told = False
        # True if a connection was lost, in this outage or an earlier one.
        self.was_connected = False
        self.began_at = 0.0
        self.told_at: Optional[float] = None
        # The last refusal of the token.
        self.refusal = ""
        # Counts of calls, samples and entries: those dropped before this outage, and those dropped in outages whose end was not
        # logged.
        self.before = (0, 0, 0)
        self.lost = (0, 0, 0)
        # Ended outages that were not logged.
        self.untold = 0

    def begin(self, now: float) -> None:
        """Records dropped from now on count as dropped during the outage. `now`: seconds of any monotonic clock."""
        if not self.is_on:
            self.is_on, self.is_told, self.began_at = True, False, now
            self.before = self._dropped()

    def failed(self, now: float, was_open: bool, why: str, is_of_token: bool = False) -> None:
        """A connection, or an attempt to connect, has failed. `now`: as for `begin`. `is_of_token`: the server refuses the token.
        Such a reason is logged immediately if it is new, because it needs an action of the user."""
        self.begin(now)
        self.was_connected |= was_open
        is_news = is_of_token and why != self.refusal
        if is_news:
            self.refusal = why
        elif self.is_told or (self.told_at is not None and now - self.told_at < _REPEAT_S):
            return
        self.is_told, self.told_at = True, now
        message = messages.server_lost if self.was_connected else messages.server_unreachable
        self.log.say(message(self.server, why))

    def over(self, now: float) -> None:
        """A connection is open. `now`: as for `begin`."""
        if not self.is_on:
            self.log.detail(messages.connected(self.server))
            return
        self.is_on = False
        self.drops.told += self._dropped()[0] - self.before[0]
        lost = [total + dropped - before for total, dropped, before in zip(self.lost, self._dropped(), self.before)]
        self.lost = (lost[0], lost[1], lost[2])
        if not self.is_told:
            self.untold += 1
            self.look(now)
            return
        message = messages.reconnected_after if self.was_connected else messages.connected_after
        self.log.say(message(self.server, int(now - self.began_at), self._take_lost()))

    def look(self, now: float) -> None:
        """Called periodically: logs ended outages and dropped calls when the next line is allowed. `now`: as for `begin`."""
        if not self.is_on:
            self.drops.look(now)
        if self.untold and (self.told_at is None or now - self.told_at >= _REPEAT_S):
            self.tell_past(now)

    def tell_past(self, now: float) -> None:
        """Logs ended outages immediately, unless an outage is in progress. `now`: as for `begin`."""
        if self.is_on or not self.untold:
            return
        self.told_at = now
        often = messages.ONCE if self.untold == 1 else messages.times(self.untold)
        self.log.say(messages.reconnected(self.server, often, self._take_lost()))

    def _take_lost(self) -> str:
        """The dropped records for this line; marks all outages as logged."""
        calls, samples, entries = lost = self.lost
        self.lost, self.untold = (0, 0, 0), 0
        return messages.dropped_some(calls, samples, entries) if any(lost) else messages.DROPPED_NOTHING

    def _dropped(self) -> tuple[int, int, int]:
        return self.totals.calls_dropped, self.totals.samples_dropped, self.totals.entries_dropped
