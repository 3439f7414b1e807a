"""Identities of calls: sessions, trace and span ids, and the W3C traceparent header.

Only the session is random. The ids of its calls are derived from the session and from counters (docs/format/wire.md, segment).
Before: track, which reads the context of its open call. After: reader, which writes the context as a parent.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextvars import ContextVar
from typing import Optional

MASK64 = (1 << 64) - 1

# Value of `segment` for a context whose trace began in another process or session.
REMOTE = -1

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?", re.ASCII | re.DOTALL)


def mix64(value: int) -> int:
    """The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), as `tacho_model::mix64`."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK64
    return value ^ value >> 31


class Session:
    """The identity of one run of a process. `id`: 16 bytes; `secret`: 16 bytes from which `id` is derived, used only in HELLO."""

    __slots__ = ("high", "id", "low", "secret")

    def __init__(self, id_: bytes, secret: Optional[bytes] = None) -> None:
        self.id = id_
        self.secret = secret
        self.high = int.from_bytes(id_[:8], "big")
        self.low = int.from_bytes(id_[8:], "big")

    @classmethod
    def draw(cls) -> Session:
        return cls.of(os.urandom(16))

    @classmethod
    def of(cls, secret: bytes) -> Session:
        """Derives the session from a secret. Session ids are public; without the secret, others cannot send as this process."""
        return cls(b"tach" + hashlib.sha256(b"tachograph session" + secret).digest()[:12], secret)

    def span(self, segment: int, call: int) -> int:
        """Id of a call, 64 bits."""
        return mix64(self.low + (segment << 24) + call & MASK64)

    def trace_low(self, segment: int) -> int:
        """Second half of the id of a trace that begins with `segment`; the first half is `high`."""
        return self.span(segment, 0)


class Context:
    """A reference to a call, as the parent of calls on other threads or tasks or in other processes. Immutable.

    `segment`: number of the segment of `session` that began the trace, REMOTE if it began elsewhere.
    """

    __slots__ = ("segment", "session", "span", "trace_high", "trace_low")

    def __init__(self, trace_high: int, trace_low: int, span: int, segment: int, session: Optional[Session]) -> None:
        self.trace_high = trace_high
        self.trace_low = trace_low
        self.span = span
        self.segment = segment
        self.session = session

    @property
    def traceparent(self) -> str:
        """The header to send. Always with the sampled flag: this agent records all traces."""
        return f"00-{self.trace_high:016x}{self.trace_low:016x}-{self.span:016x}-01"

    def is_of(self, session: Session) -> bool:
        """True if the trace began in this session. False in a process that was forked after the trace began."""
        return self.segment != REMOTE and self.session is session


def parse_traceparent(header: Optional[str]) -> Optional[Context]:
    """Parses a `traceparent` (W3C Trace Context, level 1). Returns None for None and for a header that the recommendation calls
    invalid.

    The flags are ignored, also the sampled flag: this agent records all traces.
    """
    match = _TRACEPARENT.fullmatch(header) if header else None
    if match is None:
        return None
    version, trace, span, more = match.groups()
    if version == "ff" or (version == "00" and more is not None):
        return None
    high, low, parent = int(trace[:16], 16), int(trace[16:], 16), int(span, 16)
    if not high | low or not parent:
        return None
    return Context(high, low, parent, REMOTE, None)


# The parent of calls that have no caller on their own strand (the work of a thread, task or request, see track). It is set where
# a task is created, and inside the outermost coroutine or span of a task. So all code that copies the context (asyncio, anyio,
# copy_context) passes the parent on.
CALLER: ContextVar[Optional[Context]] = ContextVar("tachograph_caller", default=None)
