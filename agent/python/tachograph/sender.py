"""The agent's thread: a loop that reads the tracks (the lists of events), fills frames, steps the connection and sleeps.

It sleeps 50 ms under low load and less when tracks fill quickly; a half-full track wakes it.
Before: track, inbox, sampler. After: link.
"""

from __future__ import annotations

import math
from _thread import allocate_lock, get_ident, start_new_thread
from time import monotonic, perf_counter_ns
from typing import Any, Callable, Optional

from .dictionary import Dictionary
from .inbox import Inbox
from .link import Link, State
from .log import Log
from .outbox import Outbox
from .reader import TrackReader, WallClock
from .sampler import Sampler
from .tallies import TALLIES
from .totals import Totals
from .track import Home, Track

_SLEEP_S = (0.001, 0.05)
_SLEEP_BUSY_S = 0.002
_FAULT_S = 1.0
_SAMPLES_FIRST_S = 1.0
# If a track has more than `_WORDS_MANY` words, the next sleep is shorter. If all tracks have fewer than `_WORDS_FEW`, the next
# sleep is longer.
_WORDS_MANY, _WORDS_FEW = 8_192, 1_024
# Longest wait for the sender to stop, before a fork or at the end of the program.
_PAUSE_S = 1.0


class Flush:
    """A wait for the acknowledgement of all records so far. `seq`: number of the last frame with such records; None if it is not
    known yet. `is_last`: the program ends. Then the agent's own counts are sent, too, and the wait ends early if no connection
    can open before the time `until`.
    """

    def __init__(self, is_last: bool, until: float) -> None:
        self.is_last = is_last
        self.until = until
        self.seq: Optional[int] = None
        self.done = allocate_lock()
        self.done.acquire()
        self.is_acknowledged = False


class Sender:
    def __init__(self, home: Home, inbox: Inbox, outbox: Outbox, link: Link, log: Log) -> None:
        self.home = home
        self.inbox = inbox
        self.outbox = outbox
        self.dictionary: Dictionary = outbox.dictionary
        self.link = link
        self.totals: Totals = link.totals
        self.log = log
        self.clock = WallClock()
        self.readers: dict[Track, TrackReader] = {}
        self.sampler: Optional[Sampler] = None
        self.sample_interval_s = 5.0
        self.sample_at = 0.0
        # Interval of the reports of counted operations, and the time of the next report.
        self.tally_interval_s = 5.0
        self.tally_at = monotonic()
        # Called once, when the program has had time to import its modules.
        self.report: Callable[[], None] = lambda: None
        self.report_at = math.inf
        # Id of the thread that should run, and a lock that this thread holds. A thread ends if `done` is not its lock.
        self.thread: Optional[int] = None
        self.done: Any = None
        self.flushes: list[Flush] = []
        self.sleep_s = _SLEEP_S[1]
        self.fullest = 0
        # Calls and attributes that were dropped in tracks that no longer exist.
        self.dropped_before = 0
        self.attributes_dropped_before = 0
        self.inbox_dropped_seen = (0, 0)

    def sample_with(self, sampler: Sampler, interval_s: float) -> None:
        """Sets the sampler and its interval. The first samples are taken after the interval, but after one second at most."""
        self.sampler = sampler
        self.sample_interval_s = interval_s
        self.sample_at = monotonic() + min(_SAMPLES_FIRST_S, self.sample_interval_s)

    def report_with(self, report: Callable[[], None], after_s: float) -> None:
        self.report = report
        self.report_at = monotonic() + after_s

    # ---- from other threads ----

    def start(self) -> None:
        # This is not a thread of `threading`. The list of threads in that module belongs to the program, and would lose this
        # thread when gevent replaces the module.
        done = self.done = allocate_lock()
        done.acquire()
        self.thread = start_new_thread(self._run, (done,))

    def rest(self) -> None:
        """Ends the thread, so that a fork finds no unfinished work. `start` continues the work."""
        done, self.done, self.thread = self.done, None, None
        if done is not None:
            self.home.wake()
            done.acquire(timeout=_PAUSE_S)

    @property
    def has_news(self) -> bool:
        """True if there may be records that the server has not acknowledged, or counts of aggregated operations that were not
        reported."""
        waits = self.readers or self.outbox.bytes or self.inbox.samples or self.inbox.entries
        return bool(waits) or any(track.events for track in list(self.home.tracks)) or TALLIES.has_news

    def flush(self, wait_s: float, is_last: bool = False) -> bool:
        """Sends all records so far, including open calls, and waits until they are acknowledged. True if they were acknowledged
        in time."""
        if self.thread is None or self.thread == get_ident():
            return False
        flush = Flush(is_last, monotonic() + wait_s)
        self.flushes.append(flush)
        self.home.wake()
        return flush.done.acquire(timeout=wait_s) and flush.is_acknowledged

    # ---- the thread ----

    def _run(self, done: Any) -> None:
        while self.done is done:
            pause = _FAULT_S
            try:
                self.step()
                pause = self._pause()
            except Exception as e:  # must not affect the program
                self.log.say_once(f"sender {type(e)}", f"the sender failed and continues: {type(e).__name__}: {e}")
            self.home.waker.acquire(timeout=pause)
        done.release()

    def step(self) -> None:
        """One round. Tests call it without the thread."""
        self.clock.update()
        flushes = list(self.flushes)
        self.fullest = 0
        now = perf_counter_ns()
        for track in list(self.home.tracks):
            self._read(track, now)
        if self.sampler is not None and monotonic() >= self.sample_at:
            self.sample_at = max(self.sample_at + self.sample_interval_s, monotonic())
            self.sampler.sample()
        if monotonic() >= self.tally_at:
            self.tally_at = monotonic() + self.tally_interval_s
            TALLIES.sample(self.inbox)
        if monotonic() >= self.report_at:
            self.report_at = math.inf
            self.report()
        self.inbox.empty_into(self.outbox, self.totals)
        self._count()
        for flush in flushes:
            if flush.seq is None:
                for reader in self.readers.values():
                    reader.close_part()
                if flush.is_last and self.sampler is not None:
                    self.sampler.sample_agent()  # last, because it counts the other samples
                    self.inbox.empty_into(self.outbox, self.totals)
                self.outbox.close()
                flush.seq = self.outbox.seq
                self.link.ping_soon()
        self.outbox.close()
        self.totals.bytes_queued = self.outbox.bytes
        self.link.is_ending = any(flush.is_last for flush in flushes)
        self.link.step()
        for flush in flushes:
            self._end_flush(flush)

    def _read(self, track: Track, now: int) -> None:
        reader = self.readers.get(track)
        if reader is None:
            if not track.events and not track.ended:
                return  # a strand without words needs no reader yet
            reader = self.readers[track] = TrackReader(track, self.outbox, self.clock, self.totals)
        # Must be read before the words: if the strand has ended, all its words are in the list.
        has_ended = track.ended or (track.guard is not None and track.guard() is None)
        self.fullest = max(self.fullest, reader.read(now))
        if has_ended and not track.events:
            reader.finish()
            del self.readers[track]
            self.home.tracks.pop(track, None)
            self.dropped_before += track.dropped
            self.attributes_dropped_before += track.attributes_dropped

    def _count(self) -> None:
        tracks = list(self.home.tracks)
        self.totals.calls_dropped_in_tracks = self.home.strandless + self.dropped_before + sum(track.dropped for track in tracks)
        attributes = self.attributes_dropped_before + sum(track.attributes_dropped for track in tracks)
        self.totals.attributes_dropped_in_tracks = attributes
        dropped = self.inbox.samples_dropped, self.inbox.entries_dropped
        self.totals.samples_dropped += dropped[0] - self.inbox_dropped_seen[0]
        self.totals.entries_dropped += dropped[1] - self.inbox_dropped_seen[1]
        self.inbox_dropped_seen = dropped

    def _end_flush(self, flush: Flush) -> None:
        link = self.link
        is_open = link.state is State.OPEN
        is_hopeless = flush.is_last and not link.may_open(flush.until)
        flush.is_acknowledged = is_open and self.outbox.has_all(flush.seq or 0) and not link.is_busy
        if is_hopeless or flush.is_acknowledged:
            self.totals.bytes_queued = self.outbox.bytes
            self.flushes.remove(flush)
            flush.done.release()

    def _pause(self) -> float:
        """The time to sleep: shorter while tracks fill quickly or other work is pending."""
        if self.fullest > _WORDS_MANY:
            self.sleep_s = max(_SLEEP_S[0], self.sleep_s / 4)
        elif self.fullest < _WORDS_FEW:
            self.sleep_s = min(_SLEEP_S[1], self.sleep_s * 2)
        is_sending = self.link.state is State.OPEN and bool(self.outbox.waiting)
        is_hurried = bool(self.flushes) or self.link.is_busy or self.link.is_deciding or is_sending
        return min(self.sleep_s, _SLEEP_BUSY_S) if is_hurried else self.sleep_s
