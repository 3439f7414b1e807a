"""Logs the number of dropped calls: at most once per minute, and at the end of the program.

Calls dropped during an outage cause no such line, because the line about the end of the outage has their number. If the program
ends during the outage, they are in the line at the end of the program. Before: outage. After: log.
"""

from __future__ import annotations

from typing import Optional

from . import messages
from .log import Log
from .totals import Totals

_REPEAT_S = 60.0
_REMEDY = "record fewer functions (include, exclude), or raise buffer, strands_max or queue"


class Drops:
    def __init__(self, totals: Totals, log: Log) -> None:
        self.totals = totals
        self.log = log
        # Number of dropped calls that the log has reported, here or in a line about an outage.
        self.told = 0
        self.told_at: Optional[float] = None

    def look(self, now: float, is_last: bool = False) -> None:
        """Called periodically while a server is connected, and at the end. `now`: seconds of any monotonic clock."""
        calls = self.totals.calls_dropped
        is_early = not is_last and self.told_at is not None and now - self.told_at < _REPEAT_S
        if calls == self.told or is_early:
            return
        self.told, self.told_at = calls, now
        self.log.say(messages.calls_dropped(calls, _REMEDY))
