"""Packs records into numbered DATA frames. Keeps the frames until the server has them on disk.

The memory is bounded. If `is_full`, callers add no record and count its content as dropped. Before: reader, sender.
After: link.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from . import wire
from .dictionary import Dictionary
from .totals import Totals

# A frame is closed when it reaches this size; a single record may be larger.
FRAME_BYTES = 65_536

# Memory of a frame in the queue in addition to its content, in bytes.
_FRAME_OVERHEAD = 200


@dataclass
class Counts:
    calls: int = 0
    samples: int = 0
    entries: int = 0


@dataclass
class Sent:
    """A frame to send, possibly again. `dictionary_size`: bytes of the dictionary that must be sent before the frame."""

    seq: int
    frame: bytes
    dictionary_size: int
    counts: Counts


class Outbox:
    def __init__(self, dictionary: Dictionary, bytes_max: int) -> None:
        self.dictionary = dictionary
        self.bytes_max = bytes_max
        self.unacknowledged: deque[Sent] = deque()
        self.waiting: deque[Sent] = deque()
        self.seq = 0
        self.base = 0
        self.body = bytearray()
        self.counts = Counts()
        self.bytes = 0

    @property
    def is_full(self) -> bool:
        return self.bytes + len(self.body) >= self.bytes_max

    def begin(self, at: int) -> int:
        """Called before a record is added. `at`: time of the record, ns since the epoch. Returns the base for times in the
        record."""
        if not self.body:
            self.seq += 1
            self.base = at
            self.body = wire.data_head(self.seq, at)
            self.counts = Counts()
        return self.base

    def put(self, tag: int, content: bytes, calls: int = 0, samples: int = 0, entries: int = 0) -> None:
        """Adds a record, after `begin`. `calls`, `samples`, `entries`: the numbers to count as dropped if the frame is
        dropped."""
        wire.put_record(self.body, tag, content)
        self.counts.calls += calls
        self.counts.samples += samples
        self.counts.entries += entries
        if len(self.body) >= FRAME_BYTES:
            self.close()

    def close(self) -> None:
        """Closes the current frame, so that it can be sent."""
        if self.body:
            frame = wire.frame(wire.DATA, bytes(self.body))
            self.waiting.append(Sent(self.seq, frame, self.dictionary.size, self.counts))
            self.bytes += len(frame) + _FRAME_OVERHEAD
            self.body = bytearray()

    def acknowledge(self, up_to: int) -> None:
        """All frames up to this number are on the disk of the server. If such a frame is still waiting, it was sent on an
        earlier connection."""
        for frames in (self.unacknowledged, self.waiting):
            while frames and frames[0].seq <= up_to:
                self.bytes -= len(frames.popleft().frame) + _FRAME_OVERHEAD

    def has_all(self, up_to: int) -> bool:
        """True if every frame up to this number is acknowledged."""
        return all(not frames or frames[0].seq > up_to for frames in (self.unacknowledged, self.waiting))

    def sent(self) -> None:
        """The first waiting frame is being sent."""
        self.unacknowledged.append(self.waiting.popleft())

    def rewind(self) -> None:
        """The connection is lost: all unacknowledged frames are sent again."""
        while self.unacknowledged:
            self.waiting.appendleft(self.unacknowledged.pop())

    def discard(self, totals: Totals) -> None:
        """Drops and counts all closed frames, because the server refuses at least one of them permanently."""
        self.rewind()
        for lost in self.waiting:
            totals.calls_dropped_in_queue += lost.counts.calls
            totals.samples_dropped += lost.counts.samples
            totals.entries_dropped += lost.counts.entries
        self.acknowledge(wire.MASK64)
