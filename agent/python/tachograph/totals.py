"""Counts of one session, written by the sender, read by the sampler.

Before: reader, inbox, outbox, link. After: sampler, outage, and link for PING.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Totals:
    calls_sent: int = 0
    calls_dropped_in_tracks: int = 0
    calls_dropped_in_queue: int = 0
    samples_sent: int = 0
    samples_dropped: int = 0
    entries_sent: int = 0
    entries_dropped: int = 0
    attributes_dropped: int = 0
    attributes_dropped_in_tracks: int = 0
    records_rejected: int = 0
    bytes_sent: int = 0
    bytes_queued: int = 0
    connects: int = 0

    @property
    def calls_dropped(self) -> int:
        return self.calls_dropped_in_tracks + self.calls_dropped_in_queue
