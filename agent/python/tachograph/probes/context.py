"""Carries the caller over to threads, pool tasks, asyncio tasks and event loops.

| from | to | how |
|---|---|---|
| `Thread.start` | the thread | the starting call is the parent of all outermost calls of the thread |
| `ThreadPoolExecutor.submit` | the task | the submitting call is attached while the task runs |
| `loop.create_task` | the task | the context of the task contains the caller |
| `loop.run_forever` | callbacks | they get their own track, so that tasks do not mix with the call that runs the loop |

Before: the program. After: track, a list of events.
"""

from __future__ import annotations

import concurrent.futures.thread
import contextlib
import functools
import threading
import types
from typing import Any, Callable

from ..config import Settings
from ..context import CALLER, Context
from ..log import Log
from ..track import LOCAL, ORIGINS, end_strand, here, new_strand
from .late import when_imported

# Set while a pool creates a thread. The current call is not the caller of this thread, because the thread outlives
# the call.
_pools = threading.local()


def install(_settings: Settings, _log: Log) -> None:
    _replace(threading.Thread, "start", _thread_start)
    _replace(concurrent.futures.thread.ThreadPoolExecutor, "submit", _submit)
    when_imported("asyncio.base_events", _watch_loops)


def _replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(make(original)))


def _thread_start(original: Callable[[Any], None]) -> Callable[[Any], None]:
    def start(self: threading.Thread) -> None:
        if not getattr(_pools, "is_on", False):
            caller = here().context()
            if caller is not None:
                with contextlib.suppress(Exception):  # a subclass that is not hashable
                    ORIGINS[self] = caller
        original(self)

    return start


def _submit(original: Callable[..., Any]) -> Callable[..., Any]:
    def submit(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        caller = here().context()
        before = getattr(_pools, "is_on", False)
        _pools.is_on = True
        try:
            if caller is None:
                return original(self, fn, *args, **kwargs)
            return original(self, _run_attached, caller, fn, args, kwargs)
        finally:
            _pools.is_on = before

    return submit


def _run_attached(caller: Context, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    own = here()
    before, own.attached = own.attached, caller
    try:
        return fn(*args, **kwargs)
    finally:
        own.attached = before


def _watch_loops(module: types.ModuleType) -> None:
    _replace(module.BaseEventLoop, "create_task", _create_task)
    _replace(module.BaseEventLoop, "run_forever", _run_forever)


def _create_task(original: Callable[..., Any]) -> Callable[..., Any]:
    def create_task(self: Any, *args: Any, **kwargs: Any) -> Any:
        caller = here().context()
        if caller is None:
            return original(self, *args, **kwargs)
        token = CALLER.set(caller)
        try:
            return original(self, *args, **kwargs)
        finally:
            CALLER.reset(token)

    return create_task


def _run_forever(original: Callable[..., Any]) -> Callable[..., Any]:
    def run_forever(self: Any) -> None:
        outer = here()
        if outer.open < 0:
            original(self)
            return
        loops = new_strand()
        loops.origin = outer.context()
        LOCAL.track = loops
        try:
            original(self)
        finally:
            LOCAL.track = outer
            end_strand(loops)

    return run_forever
