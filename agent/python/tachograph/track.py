"""The list of events of one strand of work: a thread, a task, a request.

    words     meaning
    -id, t    enter operation `id` at time t (perf_counter_ns)
    t         the innermost open call returned at t
    ESCAPE, (what, ...)   see the constants

The strand appends words, the sender removes words at the front. An append and a removal are each one operation of the
interpreter, so no lock is needed. If the list is longer than `look`, the next call takes the slow path, which wakes the sender.
If the list is full, the call and its callees are dropped and counted. Exits are appended even to a full list, so recorded calls
are properly nested.

Before: recorder, whose wrappers append. After: reader, which removes the words when the sender calls it.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
import weakref
from _thread import allocate_lock
from time import perf_counter_ns
from types import TracebackType
from typing import Any, Optional, Union

from .context import CALLER, Context, Session
from .operations import AGGREGATE, SHARED
from .tallies import TALLIES
from .thrown import exception_text

ESCAPE = -(1 << 62)
# Values of the first element of the tuple after an ESCAPE.
BEGIN, FAILED, UNWIND, ATTRIBUTE, RENAME = range(5)
# (BEGIN, segment number, parent Context or None, thread name)    the next enter is an outermost call
# (FAILED, time, call, text of the exception or None)             this call and all open calls inside it end now, as failed
# (UNWIND, time, call)                                            this call ends now, open calls inside it end as failed
# (ATTRIBUTE, call, key, str or int)
# (RENAME, operation)                                             changes the operation of the open outermost call

# The number of a call in its segment has 24 bits. A strand compares its calls with this limit only in the slow path, so `look` is
# at most the count of calls that are left (see `look_within`).
CALLS_MAX = (1 << 24) - 16

# Stands in for the words of a strand that drops calls. Its length is above any limit.
FULL = range(sys.maxsize)

NO_CALL = -1

Word = Union[int, tuple]


class Home:
    """State shared by all tracks of the process. Replaced as a whole at the start of the agent and in a forked child."""

    def __init__(self, is_on: bool = False, buffer: int = 65_536, strands_max: int = 10_000) -> None:
        self.session = Session.draw()
        self.is_on = is_on
        self.look_half = buffer // 2
        self.look_full = buffer
        self.strands_max = strands_max
        self.segments = itertools.count(1)
        self.tracks: dict[Track, None] = {}
        self.lock = allocate_lock()
        # Calls dropped because there were too many strands; changed under the lock.
        self.strandless = 0
        # The sender's thread sleeps on this lock. This module keeps the function `allocate_lock` that it imported, so the lock
        # fits the thread even if gevent replaces the function later.
        self.waker = allocate_lock()

    def wake(self) -> None:
        """Ends the sender's sleep. Never waits."""
        with contextlib.suppress(RuntimeError):  # the sender is awake
            self.waker.release()


home = Home()


def look_within(look: int, calls: int) -> int:
    """`look`, or less if the segment has few numbers left. `calls`: count of calls of the segment so far.

    A call has at least two words. Until `look` is set again, the strand appends at most `look` words, and at most `look` more
    words while the sender removes the words that it reads. So it begins at most `look` calls.
    """
    return max(-1, min(look, CALLS_MAX - calls))


# The `look` of a track that records nothing because the agent is off.
LOOK_OFF = -2


class Track:
    """The events of one strand. The strand changes the fields. The sender only removes words from `events`, and sets `look`."""

    __slots__ = (
        "__weakref__", "attached", "attributes_dropped", "calls", "dropped", "ended", "events", "guard", "home", "look", "open",
        "origin", "parent", "segment", "task", "thrown", "words",
    )  # fmt: skip

    def __init__(self, of: Home, is_full: bool = False) -> None:
        self.home = of
        self.events: list[Word] = []
        # Target of the wrappers: `events`, or FULL while calls are dropped.
        self.words: Any = FULL if is_full else self.events
        self.look = -1 if is_full else of.look_half
        # Numbers in the segment: the innermost open call, NO_CALL for none; and the call that began last.
        self.open = NO_CALL
        self.calls = NO_CALL
        self.segment = 0
        self.parent: Optional[Context] = None
        # Possible parents of outermost calls: the caller of the current pool task or Strand, and the call that started the
        # thread, event loop or process.
        self.attached: Optional[Context] = None
        self.origin: Optional[Context] = None
        self.task: object = None
        self.thrown: Optional[tuple[int, type, int, int]] = None
        self.dropped = 0
        self.attributes_dropped = 0
        self.ended = False
        # Set only for a thread's own track.
        self.guard: Optional[weakref.ref[Guard]] = None

    # ---- calls ----

    def begin(self) -> None:
        """Appends the words that precede an outermost call."""
        parent = self.attached or CALLER.get() or self.origin
        number = next(self.home.segments)
        self.parent = parent
        self.segment = number
        self.calls = NO_CALL
        self.thrown = None
        self.events.append(ESCAPE)
        self.events.append((BEGIN, number, parent, threading.current_thread().name))

    def enter(self, operation: int) -> int:
        """Begins a call; the caller has checked that the list is not full. Returns the number of the call."""
        if self.open < 0:
            self.begin()
        self.open = self.calls = call = self.calls + 1
        self.events.append(-operation)
        self.events.append(perf_counter_ns())
        return call

    def leave(self, call: int, outer: int, thrown: Optional[BaseException] = None) -> bool:
        """Ends a call that may have open calls inside it. Returns False if this track must not be used any more (see
        `retire`)."""
        if self.open < call:
            return True  # the call has already ended, together with an enclosing call
        is_innermost = self.open == call
        if thrown is not None:
            self.fail(thrown, call, outer)
        elif is_innermost:
            self.events.append(perf_counter_ns())
        else:
            self.events.append(ESCAPE)
            self.events.append((UNWIND, perf_counter_ns(), call))
        self.open = outer
        return is_innermost

    def fail(self, thrown: BaseException, call: int, outer: int) -> None:
        """Ends a call with an exception. The text is recorded at the call in which the exception first appears, and again at
        the outermost call, if the exception leaves that call."""
        now = perf_counter_ns()
        if isinstance(thrown, CONTROL_FLOW):
            self.events.append(ESCAPE)
            self.events.append((UNWIND, now, call))
        else:
            same = (id(thrown), type(thrown), call, self.calls)
            text = None if self.thrown == same and outer >= 0 else exception_text(thrown)
            self.events.append(ESCAPE)
            self.events.append((FAILED, now, call, text))
            self.thrown = (id(thrown), type(thrown), outer, self.calls)
        self.open = outer

    def attribute(self, call: int, key: str, value: Union[str, int]) -> None:
        """Adds an attribute to an open call. Counts it as dropped if the list is full. No effect inside a dropped call."""
        if self.words is FULL:
            return
        if len(self.events) > self.home.look_full:
            self.attributes_dropped += 1
        else:
            self.events.append(ESCAPE)
            self.events.append((ATTRIBUTE, call, key, value))

    def context(self) -> Optional[Context]:
        """The parent for another strand or process: the innermost open call, or the parent that the next outermost call would
        have. None if there is neither."""
        if self.open < 0:
            return self.attached or CALLER.get() or self.origin
        session = self.home.session
        span = session.span(self.segment, self.open)
        root = self.parent
        if root is None:
            return Context(session.high, session.trace_low(self.segment), span, self.segment, session)
        return Context(root.trace_high, root.trace_low, span, root.segment, root.session)

    # ---- room ----

    def admit(self) -> bool:
        """The slow path of an enter. Returns True if the call can be recorded."""
        calls = self.calls if self.open >= 0 else NO_CALL  # without an open call, the call begins a new segment
        if self.words is FULL or calls >= CALLS_MAX:
            return False
        self.home.wake()
        self.look = look_within(self.home.look_full, calls)
        return len(self.events) <= self.look

    def count_dropped(self) -> None:
        if self.home.is_on:
            self.dropped += 1


CONTROL_FLOW = (StopIteration, StopAsyncIteration, GeneratorExit)


def is_failure(thrown: Optional[BaseException]) -> bool:
    return thrown is not None and not isinstance(thrown, CONTROL_FLOW)


# ---- assignment of tracks ----


# The track of all threads while the agent is off. After the start of the agent, each thread takes the slow path once and gets its
# own track.
OFF = Track(home, True)
OFF.look = LOOK_OFF


class Guard:
    """Kept by the local data of a thread, so it is collected when the thread ends."""

    __slots__ = ("__weakref__",)


LOCAL = threading.local()

# Maps a thread to the context in which it was started, until its first call is recorded.
ORIGINS: weakref.WeakKeyDictionary[threading.Thread, Context] = weakref.WeakKeyDictionary()


def here() -> Track:
    try:
        track = LOCAL.track
    except AttributeError:
        return new_thread_track()
    if track.home is not home:
        return new_thread_track()
    return track


def new_thread_track() -> Track:
    """Creates the thread's own track. While the agent is off, all threads share `OFF`."""
    track = Track(home) if home.is_on else OFF
    if home.is_on:
        guard = LOCAL.guard = Guard()
        track.guard = weakref.ref(guard)
        track.origin = ORIGINS.pop(threading.current_thread(), None) if ORIGINS else None
        home.tracks[track] = None
    LOCAL.track = track
    return track


def new_strand() -> Track:
    """A separate track for work that overlaps other work. Must be ended by `end_strand`."""
    if home.is_on and len(home.tracks) < home.strands_max:
        track = Track(home)
        home.tracks[track] = None
        return track
    if home.is_on:
        with home.lock:
            home.strandless += 1
    return Track(home, True)


def end_strand(track: Track) -> None:
    track.ended = True
    if track.dropped and track not in track.home.tracks:
        with track.home.lock:
            track.home.strandless += track.dropped


def retire(track: Track) -> None:
    """Called when a call has ended before calls inside it. The wrappers of these inner calls still write to this track, so
    further calls are recorded on a new track."""
    fresh = Track(track.home)
    fresh.attached, fresh.origin, fresh.task = track.attached, track.origin, track.task
    if LOCAL.__dict__.get("track") is track:
        LOCAL.track = fresh
        fresh.guard = track.guard
        track.home.tracks[fresh] = None
    track.ended = True


class Strand:
    """One call on its own track. It may end on another thread, and overlap other calls.

    If `parent` is None, a call with `is_root` has no parent; the parent of other calls is `Track.context` of the current track.
    Work inside the call is recorded on its track with `with strand:`, one step at a time.
    """

    __slots__ = ("before", "begun", "call", "is_open", "operation", "track")

    def __init__(self, operation: int, parent: Optional[Context] = None, is_root: bool = False) -> None:
        self.is_open = True
        self.operation = operation
        # Start of a counted call, as `perf_counter_ns`; 0 for other calls. Calls inside a counted call have its caller as
        # their parent.
        self.begun = perf_counter_ns() if SHARED.states[operation] == AGGREGATE else 0
        caller = parent if is_root else parent or here().context()
        self.track = track = new_strand()
        self.call = NO_CALL
        self.before: Optional[Track] = None
        track.attached = caller
        if track.words is FULL or self.begun:
            return
        token = CALLER.set(None) if is_root else None
        try:
            self.call = track.enter(operation)
        finally:
            if token is not None:
                CALLER.reset(token)

    def __enter__(self) -> Strand:
        self.before = here()
        LOCAL.track = self.track
        return self

    def __exit__(self, _type: Optional[type], _thrown: Optional[BaseException], _traceback: Optional[TracebackType]) -> None:
        self.track = LOCAL.track  # the track may have been retired
        LOCAL.track = self.before
        self.before = None

    def context(self) -> Optional[Context]:
        return self.track.context()

    def attribute(self, key: str, value: Union[str, int]) -> None:
        if self.is_open and self.call >= 0:
            self.track.attribute(self.call, key, value)

    def rename(self, operation: int) -> None:
        """Changes the operation of the call. Parts that were already sent have the earlier operation; the server uses the
        operation in the last part."""
        if self.is_open and operation != self.operation:
            self.operation = operation
            if self.call >= 0 and self.track.open >= self.call:
                self.track.events.append(ESCAPE)
                self.track.events.append((RENAME, operation))

    def end(self, thrown: Optional[BaseException] = None, is_failed: bool = False) -> None:
        """Ends the call; further ends have no effect. `is_failed`: failed without an exception, for example with status 500."""
        if not self.is_open:
            return
        self.is_open = False
        track = self.track
        if self.begun:
            TALLIES.add(self.operation, perf_counter_ns() - self.begun, is_failed or is_failure(thrown))
        if self.call >= 0 and track.open >= self.call:
            if thrown is None and is_failed:
                track.events.append(ESCAPE)
                track.events.append((FAILED, perf_counter_ns(), self.call, None))
                track.open = NO_CALL
            else:
                track.leave(self.call, NO_CALL, thrown)
        end_strand(track)


def operation(kind: int, name: str) -> int:
    return SHARED.id(kind, name)
