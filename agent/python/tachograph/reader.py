"""Reads the words of one track and turns them into parts of segments.

A part is closed when the outermost call ends, when the part is long or a second old, and at a flush. If calls are open then, the
next part carries them. Before: track, which defines the words. After: outbox.
"""

from __future__ import annotations

import re
from time import perf_counter_ns, time_ns
from typing import Optional, Union

from . import wire
from .context import Context
from .dictionary import Dictionary
from .outbox import Outbox
from .totals import Totals
from .track import ATTRIBUTE, BEGIN, ESCAPE, FAILED, RENAME, Track, Word, look_within

# Events of a long part. A deep recursion permits more, up to EVENTS_MAX_DEEP, because shorter parts would consist mostly of
# carried calls.
EVENTS_MAX = 4_096
EVENTS_MAX_DEEP = 60_000
ATTRIBUTE_BYTES_MAX = 262_144
AGE_MAX_NS = 1_000_000_000

# Words between two checks of the part's length.
_CHUNK_WORDS = 4_096

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)


def _varints() -> list[bytes]:
    """The varints of one and two bytes. One look-up encodes a time difference below 8 us."""
    return [bytes((value,)) if value < 128 else bytes((value & 127 | 128, value >> 7)) for value in range(16_384)]


_VARINTS = _varints()


class WallClock:
    """Converts `perf_counter_ns` to time since the epoch. The offset is measured repeatedly, so that it follows changes of the
    wall clock."""

    def __init__(self) -> None:
        self.offset = 0
        self.update()

    def update(self) -> None:
        """Measures the offset. It reads both clocks several times, and uses the reading that took the shortest time."""
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
        # Fields of the segment. A time of `perf_counter_ns` plus `offset` is ns since the epoch. All parts have the same offset,
        # so that durations ignore changes of the wall clock.
        self.head = wire.Head()
        self.offset = 0
        self.calls = 0
        # For each open call: operation (negative), number, time of its enter.
        self.open: list[tuple[int, int, int]] = []
        # Fields of the current part.
        self.events = bytearray()
        self.event_count = 0
        self.start = 0
        # Time of the last event of the segment. It is kept when a part is closed.
        self.last = 0
        self.attributes = bytearray()
        self.attribute_count = 0

    def read(self, now: int) -> int:
        """Takes all available words. `now`: perf_counter_ns. Returns how many words `track.events` had."""
        words = self.track.events
        rest = total = len(words)
        while rest > 0:
            count = min(rest, _CHUNK_WORDS)
            last = words[count - 1]
            if last.__class__ is int and last < 0:
                count -= 1  # the chunk ends between the two words of an event; the strand may not have appended the second yet
                if not count:
                    break
            chunk = words[:count]
            del words[:count]
            rest -= count
            owed = len(self.open) + self._exits + self._handled
            try:
                self._take(self._after_fault(chunk) if self.is_broken else chunk)
                self._close_if_long()
            except Exception:
                self._spoil(owed + _entered(chunk))
        self.track.look = look_within(self.track.home.look_half, self.calls)
        if self.event_count and now - self.start > AGE_MAX_NS:
            self.close_part()
        return total

    def _take(self, chunk: list[Word]) -> None:
        """The sender's hot loop: `wire.put_enter` and `wire.put_exit` are inlined."""
        events, count, last, calls = self.events, self.event_count, self.last, self.calls
        open_, operations = self.open, self.dictionary.operation_bytes
        varints = _VARINTS
        words = iter(chunk)
        for word in words:
            if word >= 0:
                if not count:
                    last = self._begin_part(word, calls)
                value = word - last << 1
                last = word
                count += 1
                if value < 16_384:
                    events += varints[value]
                else:
                    wire.put_varint(events, value)
                open_.pop()
                if not open_:
                    self.event_count, self.last, self.calls = count, last, calls
                    self.close_part()
                    events, count = self.events, 0
            elif word != ESCAPE:
                time = next(words)
                if not count:
                    last = self._begin_part(time, calls)
                value = time - last << 1 | 1
                last = time
                count += 1
                if value < 16_384:
                    events += varints[value]
                else:
                    wire.put_varint(events, value)
                try:
                    events += operations[-word]
                except (IndexError, TypeError):
                    events += self.dictionary.operation(-word)
                open_.append((word, calls, time))
                calls += 1
            else:
                self.event_count, self.last, self.calls = count, last, calls
                self._escape(next(words))
                events, count, last, calls = self.events, self.event_count, self.last, self.calls
        self.event_count, self.last, self.calls = count, last, calls

    def _begin_part(self, time: int, calls: int) -> int:
        """Called before the first event of a part is added: lists the calls that the part carries. `time`: time of this event, so
        its difference is 0. `calls`: number of the first call that the part may enter. Returns `time`."""
        self.start = time
        head = self.head
        head.first_call = calls
        if head.part:
            head.carried = [
                (wire.Body(self.dictionary.operation(-word)).varint(), number, max(0, time - began))
                for word, number, began in self.open
            ]
        return time

    @property
    def _exits(self) -> int:
        """Number of calls that end in the part, and that are lost if it is discarded."""
        return self.event_count - (self.calls - self.head.first_call) if self.event_count else 0

    # ---- rare cases ----

    def _escape(self, what: tuple) -> None:
        kind = what[0]
        if kind == BEGIN:
            self._begin_segment(*what[1:])
        elif kind == ATTRIBUTE:
            self._attribute(*what[1:])
        elif kind == RENAME:
            self._rename(what[1])
        elif any(number == what[2] for _, number, _ in self.open):
            self._end(what)

    def _rename(self, operation: int) -> None:
        """Changes the operation of the outermost call: the first carried call, or else the call that the first event of the
        segment enters."""
        if not self.open:
            return
        _, number, began = self.open[0]
        self.open[0] = (-operation, number, began)
        if not self.event_count:
            return
        name = self.dictionary.operation(operation)
        if self.head.part:
            _, number, age = self.head.carried[0]
            self.head.carried = [(wire.Body(name).varint(), number, age), *self.head.carried[1:]]
        else:
            before = wire.Body(bytes(self.events[:20]))  # the time of the event, and its previous operation
            before.varint()
            start = before.at
            before.varint()
            self.events[start : before.at] = name

    def _begin_segment(self, number: int, parent: Optional[Context], thread: str) -> None:
        if self.open:
            self.finish()
        is_ours = parent is not None and parent.is_of(self.track.home.session)
        head = self.head
        head.segment = number
        head.thread = self.dictionary.text(thread)
        head.trace = None if parent is None or is_ours else (parent.trace_high << 64 | parent.trace_low).to_bytes(16, "big")
        head.trace_of = parent.segment if is_ours and parent is not None else None
        head.parent = None if parent is None else parent.span.to_bytes(8, "big")
        head.part = 0
        head.carried = ()
        self.offset = self.clock.offset
        self.calls = 0

    def _end(self, what: tuple) -> None:
        """Handles FAILED or UNWIND of an open call. Open calls inside it got no exit before, so they end as failed."""
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
        self.open.pop()

    def _attribute(self, call: int, key: str, value: Union[str, int]) -> None:
        is_open = any(number == call for _, number, _ in reversed(self.open))
        # A part must have an event. So before the first event, a part that is full of attributes cannot be closed.
        is_full = len(self.attributes) >= ATTRIBUTE_BYTES_MAX and not self.event_count
        if not is_open or is_full or self.attribute_count >= wire.SEGMENT_ATTRIBUTES_MAX:
            self.totals.attributes_dropped += 1
            return
        if len(self.attributes) >= ATTRIBUTE_BYTES_MAX and self.event_count:
            self.close_part()
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
        """Passes the part to the outbox, or drops it and counts its ended calls. No effect on a part without events."""
        if not self.event_count:
            return
        exits, outbox = self._exits, self.outbox
        if outbox.is_full or len(self.head.carried) > wire.SEGMENT_CARRIED_MAX:
            self.totals.calls_dropped_in_queue += exits
        else:
            start = self.start + self.offset
            base = outbox.begin(start)
            content = wire.segment(self.head, start - base, self.events, self.event_count, self.attributes, self.attribute_count)
            outbox.put(wire.TAG_SEGMENT, content, exits)
            self.totals.calls_sent += exits
        self.head.part += 1
        self.events = bytearray()
        self.event_count = 0
        if self.attribute_count:
            self.attributes = bytearray()
            self.attribute_count = 0

    def finish(self) -> None:
        """Called when the strand has ended, or begins a new segment. Open calls get no exit event any more, so they end as
        failed, at the time of the last event of the segment."""
        while self.open:
            self._event(self.last, is_failed=True)
        self.close_part()

    @property
    def _handled(self) -> int:
        return self.totals.calls_sent + self.totals.calls_dropped_in_queue

    def _spoil(self, owed: int) -> None:
        """After an unexpected error (out of memory): drops and counts the current calls, but keeps the track.

        `owed`: the value that `_handled` gets when all these calls are counted.
        """
        self.totals.calls_dropped_in_queue += owed - self._handled
        self.is_broken = True
        self.open.clear()
        self.events = bytearray()
        self.attributes = bytearray()
        self.event_count = self.attribute_count = 0

    def _after_fault(self, chunk: list[Word]) -> list[Word]:
        """The words of the chunk from the next BEGIN on; none if it has no BEGIN. Calls entered before are counted as dropped."""
        for at, word in enumerate(chunk):
            if isinstance(word, tuple) and word[0] == BEGIN:
                self.is_broken = False
                self.totals.calls_dropped_in_queue += _entered(chunk[:at])
                return chunk[at - 1 :] if at else [ESCAPE, *chunk]
        self.totals.calls_dropped_in_queue += _entered(chunk)
        return []


def _entered(words: list[Word]) -> int:
    return sum(word.__class__ is int and ESCAPE < word < 0 for word in words)
