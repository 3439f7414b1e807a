"""Samples of the process: processor time, memory, garbage collection, threads; and counts of the agent.

A value that the Java agent samples too has the same name as there, with `python_` instead of `jvm_`. Names contain the units.
Before: sender, at each `sample_interval`. After: inbox.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Callable

try:
    import resource
except ImportError:  # not a Unix
    resource = None  # type: ignore[assignment]

from .inbox import Inbox, Value
from .totals import Totals

Add = Callable[..., None]
"""(name, value, **labels)"""


class Collections:
    """Garbage collections by generation: their number, their duration in ns, and the number of collected objects."""

    def __init__(self) -> None:
        self.began = 0
        self.count = [0, 0, 0]
        self.ns = [0, 0, 0]
        self.collected = [0, 0, 0]

    def on_collection(self, phase: str, info: dict[str, int]) -> None:
        """A callback for `gc.callbacks`. It is called on the thread that collects."""
        if phase == "start":
            self.began = perf_counter_ns()
            return
        generation = info["generation"]
        self.count[generation] += 1
        self.ns[generation] += perf_counter_ns() - self.began
        self.collected[generation] += info["collected"]


class Sampler:
    def __init__(self, inbox: Inbox, totals: Totals) -> None:
        self.inbox = inbox
        self.totals = totals
        self.collections = Collections()
        self.started = time.time()
        self.series: dict[tuple[Any, ...], Any] = {}

    def install(self) -> None:
        gc.callbacks.append(self.collections.on_collection)

    def remove(self) -> None:
        if self.collections.on_collection in gc.callbacks:
            gc.callbacks.remove(self.collections.on_collection)

    def sample(self) -> None:
        self._take(self._process, _memory, self._collections, _threads, self._agent)

    def sample_agent(self) -> None:
        """Called at the end of the process."""
        self._take(self._agent)

    def _take(self, *parts: Callable[[Add], None]) -> None:
        now = time.time_ns()

        def add(name: str, value: Value, **labels: str) -> None:
            key = (name, *labels.values())
            series = self.series.get(key)
            if series is None:
                series = self.series[key] = self.inbox.series(name, labels)
            self.inbox.sample(series, value, now)

        for part in parts:
            part(add)

    def _process(self, add: Add) -> None:
        user, system = _cpu_seconds()
        add("process_cpu_seconds_total", user + system)
        add("process_cpu_user_seconds_total", user)
        add("process_cpu_system_seconds_total", system)
        add("process_uptime_seconds", time.time() - self.started)
        add("process_start_time_seconds", self.started)
        if hasattr(os, "getloadavg"):
            add("system_load_average_1m", os.getloadavg()[0])

    def _collections(self, add: Add) -> None:
        for generation in range(3):
            label = str(generation)
            add("python_gc_collection_seconds_count", self.collections.count[generation], generation=label)
            add("python_gc_collection_seconds_total", self.collections.ns[generation] / 1e9, generation=label)
            add("python_gc_objects_collected_total", self.collections.collected[generation], generation=label)

    def _agent(self, add: Add) -> None:
        totals = self.totals
        for kind in ("execution", "sample", "entry"):
            sent, dropped = {
                "execution": (totals.calls_sent, totals.calls_dropped),
                "sample": (totals.samples_sent, totals.samples_dropped),
                "entry": (totals.entries_sent, totals.entries_dropped),
            }[kind]
            add("tacho_agent_sent_total", sent, kind=kind)
            add("tacho_agent_dropped_total", dropped, kind=kind)
        add("tacho_agent_attributes_dropped_total", totals.attributes_dropped + totals.attributes_dropped_in_tracks)
        add("tacho_agent_rejected_total", totals.records_rejected)
        add("tacho_agent_sent_bytes_total", totals.bytes_sent)
        add("tacho_agent_queued_bytes", totals.bytes_queued)
        add("tacho_agent_connects_total", totals.connects)


def _cpu_seconds() -> tuple[float, float]:
    """User and system time of the process."""
    if resource is None:
        now = os.times()
        return now.user, now.system
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime, used.ru_stime


def _memory(add: Add) -> None:
    try:
        virtual, resident = Path("/proc/self/statm").read_text().split()[:2]
        page = os.sysconf("SC_PAGE_SIZE")
        add("process_resident_memory_bytes", int(resident) * page)
        add("process_virtual_memory_bytes", int(virtual) * page)
        add("process_open_fds", len(os.listdir("/proc/self/fd")))
    except (OSError, ValueError, AttributeError):
        pass  # not a Linux
    if hasattr(sys, "getallocatedblocks"):
        add("python_memory_blocks_allocated", sys.getallocatedblocks())


def _threads(add: Add) -> None:
    # Like `threading.enumerate`, but without its lock: gevent may have replaced the lock, and the sender's thread must not take a
    # lock of gevent.
    threads = list(threading._active.values())  # type: ignore[attr-defined]
    add("python_threads_current", len(threads))
    add("python_threads_daemon", sum(thread.daemon for thread in threads))
