"""What did this strand do? Follows the words of one track and turns them into parts of segments.

A part is closed with the outermost call, when it is long, or when it is a second old; the next part then carries the calls that
are open. Before: track, whose table of words this is the other side of. After: outbox.
"""

from __future__ import annotations

import re
from time import perf_counter_ns, time_ns
from typing import Optional, Union

from . import wire
from .context import Context
from .dictionary import Dictionary
from .outbox import Counts, Outbox
from .totals import Totals
from .track import ATTRIBUTE, BEGIN, CALLS_MAX, ESCAPE, FAILED, Track, Word

EVENTS_MAX = 4_096
# A part of a deep recursion is longer, or most of it would be carried calls.
EVENTS_MAX_DEEP = 60_000
ATTRIBUTE_BYTES_MAX = 262_144
AGE_MAX_NS = 1_000_000_000

# Words between two looks at the part's length.
_CHUNK_WORDS = 4_096

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)


class WallClock:
    """From `perf_counter_ns` to the time since the epoch. Read again and again, so that it follows a clock that is set."""

    def __init__(self) -> None:
        self.offset = 0
        self.update()

    def update(self) -> None:
        """Reads both clocks; keeps the reading with the least time between its two ends."""
        narrowest = None
        for _ in range(3):
            before, wall, after = perf_counter_ns(), time_ns(), perf_counter_ns()
            if narrowest is None or after - before < narrowest:
                narrowest = after - before
                self.offset = wall - (before + after) // 2


class TrackReader:
    def __init__(self, track: Track, outbox: Outbox, clock: WallClock, totals: Totals) -> None:
        self.track = track
        self.outbox = outbox
        self.dictionary: Dictionary = outbox.dictionary
        self.clock = clock
        self.totals = totals
        self.is_broken = False
        # Of the segment. `offset`: perf_counter_ns to epoch, the same for all its parts, so durations do not see a clock that is
        # set.
        self.segment = 0
        self.parent: Optional[Context] = None
        self.thread = ""
        self.offset = 0
        self.calls = 0
        # Of each open call: operation (negative), number, time of the enter.
        self.open: list[tuple[int, int, int]] = []
        # Of the part.
        self.part = 0
        self.events = bytearray()
        self.event_count = 0
        self.exits = 0
        self.start = 0
        self.last = 0
        self.first_call = 0
        self.carried: list[tuple[int, int, int]] = []
        self.attributes = bytearray()
        self.attribute_count = 0

    def read(self, now: int) -> int:
        """Takes everything that is there. `now`: perf_counter_ns. Answers how many words that was."""
        words = self.track.events
        rest = total = len(words)
        while rest > 0:
            count = min(rest, _CHUNK_WORDS)
            last = words[count - 1]
            if last.__class__ is int and last < 0:
                count -= 1  # what belongs to it comes next, or is on its way
                if not count:
                    break
            chunk = words[:count]
            del words[:count]
            rest -= count
            try:
                self._take(self._after_fault(chunk) if self.is_broken else chunk)
                self._close_if_long()
            except Exception:
                self._spoil()
        self.track.look = self.track.home.look_half if self.calls < CALLS_MAX else -1
        if self.event_count and now - self.start > AGE_MAX_NS:
            self.close_part()
        return total

    def _take(self, chunk: list[Word]) -> None:
        """The sender's hot loop: what `wire.put_enter` and `wire.put_exit` do is written out."""
        events, count, last, exits, calls = self.events, self.event_count, self.last, self.exits, self.calls
        open_, append, operations = self.open, self.events.append, self.dictionary.operation_bytes
        words = iter(chunk)
        for word in words:
            if word >= 0:
                if not count:
                    last = self._begin_part(word, calls)
                value = word - last << 1
                last = word
                open_.pop()
                exits += 1
            elif word != ESCAPE:
                time = next(words)
                if not count:
                    last = self._begin_part(time, calls)
                value = time - last << 1 | 1
                last = time
                open_.append((word, calls, time))
                calls += 1
            else:
                self.event_count, self.last, self.exits, self.calls = count, last, exits, calls
                self._escape(next(words))
                events, count, last, exits, calls = self.events, self.event_count, self.last, self.exits, self.calls
                append = events.append
                continue
            count += 1
            if value < 128:
                append(value)
            elif value < 16_384:
                append(value & 127 | 128)
                append(value >> 7)
            elif value < 2_097_152:
                append(value & 127 | 128)
                append(value >> 7 & 127 | 128)
                append(value >> 14)
            else:
                wire.put_varint(events, value)
            if value & 1:
                try:
                    events += operations[-word]
                except (IndexError, TypeError):
                    events += self.dictionary.operation(-word)
            elif not open_:
                self.event_count, self.last, self.exits, self.calls = count, last, exits, calls
                self.close_part()
                events, count, exits = self.events, 0, 0
                append = events.append
        self.event_count, self.last, self.exits, self.calls = count, last, exits, calls

    def _begin_part(self, time: int, calls: int) -> int:
        """Before the first event of a part: what it carries. Answers the time that the first difference is taken to."""
        self.start = time
        self.first_call = calls
        if self.part:
            self.carried = [
                (wire.Body(self.dictionary.operation(-word)).varint(), number, max(0, time - began))
                for word, number, began in self.open
            ]
        return time

    # ---- what happens seldom ----

    def _escape(self, what: tuple) -> None:
        kind = what[0]
        if kind == BEGIN:
            self.finish()
            _, self.segment, self.parent, self.thread = what
            self.offset = self.clock.offset
            self.calls = self.part = 0
        elif kind == ATTRIBUTE:
            self._attribute(*what[1:])
        elif any(number == what[2] for _, number, _ in self.open):
            self._end(what)

    def _end(self, what: tuple) -> None:
        """FAILED or UNWIND of a call that is open: what is open inside it has lost its exit, and failed."""
        kind, time, call, *text = what
        while self.open[-1][1] > call:
            self._event(time, is_failed=True)
        if text and text[0] is not None:
            self._attribute(call, "exception", text[0])
        self._event(time, is_failed=kind == FAILED)
        if not self.open:
            self.close_part()

    def _event(self, time: int, is_failed: bool) -> None:
        if not self.event_count:
            self.last = self._begin_part(time, self.calls)
        put = wire.put_failed if is_failed else wire.put_exit
        put(self.events, max(0, time - self.last))
        self.last = max(self.last, time)
        self.event_count += 1
        self.exits += 1
        self.open.pop()

    def _attribute(self, call: int, key: str, value: Union[str, int]) -> None:
        is_open = any(number == call for _, number, _ in reversed(self.open))
        if not is_open or self.attribute_count >= wire.SEGMENT_ATTRIBUTES_MAX:
            self.totals.attributes_dropped += 1
            return
        self.attribute_count += 1
        key_id = self.dictionary.text(key)
        if isinstance(value, int):
            wire.put_attribute_integer(self.attributes, call, key_id, value)
        elif _UUID.fullmatch(value):
            wire.put_attribute_uuid(self.attributes, call, key_id, bytes.fromhex(value.replace("-", "")))
        elif self.dictionary.value(value):
            wire.put_attribute_text(self.attributes, call, key_id, self.dictionary.value(value))
        else:
            wire.put_attribute_string(self.attributes, call, key_id, wire.cut(value, wire.ATTRIBUTE_BYTES_MAX))

    def _close_if_long(self) -> None:
        is_long = self.event_count >= min(EVENTS_MAX_DEEP, max(EVENTS_MAX, 2 * len(self.open)))
        if is_long or len(self.attributes) >= ATTRIBUTE_BYTES_MAX:
            self.close_part()

    def close_part(self) -> None:
        """Hands the part to the outbox and begins the next one."""
        if self.event_count and self.outbox.is_full:
            self.totals.calls_dropped_in_queue += self.exits
        elif self.event_count:
            self._hand_over()
            self.totals.calls_sent += self.exits
        if self.event_count:
            self.part += 1
            self.events = bytearray()
            self.attributes = bytearray()
            self.event_count = self.exits = self.attribute_count = 0
            self.carried = []

    def _hand_over(self) -> None:
        parent, session = self.parent, self.track.home.session
        is_ours = parent is not None and parent.is_of(session)
        head = wire.Head(
            segment=self.segment,
            thread=self.dictionary.text(self.thread),
            trace=None if parent is None or is_ours else (parent.trace_high << 64 | parent.trace_low).to_bytes(16, "big"),
            trace_of=parent.segment if parent is not None and is_ours else None,
            parent=None if parent is None else parent.span.to_bytes(8, "big"),
            part=self.part,
            first_call=self.first_call,
            carried=tuple(self.carried),
        )
        start = self.start + self.offset
        base = self.outbox.begin(start)
        content = wire.segment(head, start - base, self.events, self.event_count, self.attributes, self.attribute_count)
        self.outbox.put(wire.TAG_SEGMENT, content, Counts(calls=self.exits))

    def finish(self) -> None:
        """The strand has ended. Calls that are open will never exit: they end, as failed, when the last event happened."""
        while self.open:
            self._event(self.last if self.event_count else self.open[-1][2], is_failed=True)
        self.close_part()

    def _spoil(self) -> None:
        """Something that must not happen did (no memory): the rest of the segment is thrown away and counted, the track is not."""
        self.totals.calls_dropped_in_queue += self.exits + len(self.open)
        self.is_broken = True
        self.open.clear()
        self.events = bytearray()
        self.attributes = bytearray()
        self.event_count = self.exits = self.attribute_count = 0

    def _after_fault(self, chunk: list[Word]) -> list[Word]:
        """What comes with the next segment."""
        for at, word in enumerate(chunk):
            if isinstance(word, tuple) and word[0] == BEGIN:
                self.is_broken = False
                return chunk[at - 1 :] if at else [ESCAPE, *chunk]
        return []
