"""Measures one round of writing, the state after the rounds, and the end and start of a system."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ..common.client import HttpError
from ..store.measure import accepted
from ..store.systems.base import System
from ..store.systems.promql import PromQL, seconds
from .bodies import Lines, Remote
from .fleet import METRIC, PATHS, Fleet

CONNECTIONS = 4
SMALL_PAUSE_SECONDS = 0.02
WATCHED = 5
FAULTS_KEPT = 3


@dataclass
class RoundCost:
    """The cost of one round in one system."""

    seconds: float
    cpu_seconds_at_start: float
    """CPU time of the system from its first start to the start of this round. The difference to the figure of the
    next round is the cost of this round, with work in the background while other systems are written to."""
    refused: int
    request_seconds_max: float
    """Longest time from a request's first attempt until its acceptance."""
    small_seconds_max: float
    """The same for writes of one sample, on one more connection, with pauses of 20 ms."""


@dataclass
class Cost:
    """All figures of one system. Sizes are in bytes."""

    ready_seconds: float
    resident_idle: int = 0
    rounds: list[RoundCost] = field(default_factory=list)
    cpu_seconds_after: float = 0.0
    """CPU time from the first start until all systems have received the last round."""
    settle_cpu_seconds: float = 0.0
    resident: int = 0
    resident_peak: int = 0
    anonymous: int = 0
    disk_bytes: int = 0
    ready_after_kill_seconds: float = 0.0
    stop_seconds: float = 0.0
    disk_bytes_stopped: int = 0
    ready_after_stop_seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    """Wrong or missing samples, or a missing answer: at most `FAULTS_KEPT`."""


class Watch:
    """The expected samples of a few pods."""

    def __init__(self, fleet: Fleet, protocol: Lines | Remote):
        self._fleet, self._protocol = fleet, protocol
        self._pods = [nth * fleet.pods // WATCHED for nth in range(min(WATCHED, fleet.pods))]
        self._expected: dict[tuple[str, str], list[tuple[int, float]]] = {}
        self._last_ms = 0

    def note(self, time_ms: int) -> None:
        """Adds the samples of this round, and forgets replaced pods, because the query selects the current pods."""
        self._last_ms = time_ms
        names = {self._fleet.name(pod): pod for pod in self._pods}
        self._expected = {key: samples for key, samples in self._expected.items() if key[0] in names}
        for name, pod in names.items():
            first = pod * len(PATHS)
            for nth, path in enumerate(PATHS):
                sample = (self._protocol.time_ms(pod, time_ms), float(self._fleet.counts[first + nth]))
                self._expected.setdefault((name, path), []).append(sample)

    def fault(self, system: PromQL, step_ms: int) -> str | None:
        """The first difference between the expected samples and those of the system."""
        first_ms = min(samples[0][0] for samples in self._expected.values())
        end_ms = self._last_ms + step_ms
        pods = "|".join(sorted({name for name, _ in self._expected}))
        query = f'{METRIC}{{pod=~"{pods}"}}[{end_ms - first_ms + step_ms}ms]'
        body = system.send(system.get("/api/v1/query", query=query, time=seconds(end_ms)))
        found = {}
        for row in system.rows(body):
            key = (row["metric"].get("pod", ""), row["metric"].get("path", ""))
            found[key] = [(round(at * 1_000), float(value)) for at, value in row["values"]]
        for key, samples in self._expected.items():
            if found.get(key) != samples:
                return f"{key}: expected {samples[-3:]}, found {(found.get(key) or [])[-3:]}"
        return None


def write_round(system: System, protocol: Lines | Remote, lists: list[list[bytes]], time_ms: int) -> RoundCost:
    """Sends the lists on up to `CONNECTIONS` connections, the requests of a list in order. Raises the error of a failed
    request."""
    cost = RoundCost(0.0, system.cpu_seconds(), 0, 0.0, 0.0)
    lock = threading.Lock()

    def send_all(requests: list[bytes]) -> None:
        with system.client() as client:
            for body in requests:
                began = time.monotonic()
                refused = accepted(lambda: client.send(protocol.request(body)))
                with lock:
                    cost.refused += refused
                    cost.request_seconds_max = max(cost.request_seconds_max, time.monotonic() - began)

    began = time.monotonic()
    with SmallWrites(system, protocol, time_ms) as small:
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            for done in [threads.submit(send_all, requests) for requests in lists]:
                done.result()
        cost.seconds = time.monotonic() - began
    cost.small_seconds_max = small.seconds_max
    return cost


class SmallWrites:
    """Writes single samples on its own connection while other requests are written, to show how long a write may
    wait."""

    def __init__(self, system: System, protocol: Lines | Remote, time_ms: int):
        self._system, self._protocol, self._time_ms = system, protocol, time_ms
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._failure: Exception | None = None
        self.seconds_max = 0.0

    def __enter__(self) -> "SmallWrites":
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if kind is None and self._failure:
            raise self._failure

    def _run(self) -> None:
        try:
            with self._system.client() as client:
                number = 0
                while not self._ended.wait(SMALL_PAUSE_SECONDS if number else 0):
                    body = self._protocol.small(self._time_ms + number)
                    began = time.monotonic()
                    accepted(lambda: client.send(self._protocol.request(body)))
                    self.seconds_max = max(self.seconds_max, time.monotonic() - began)
                    number += 1
        except (OSError, HttpError) as failure:
            self._failure = failure


def measure_state(system: System, cost: Cost) -> None:
    """Memory and disk after the rounds, when the system is idle."""
    before = system.cpu_seconds()
    system.server.wait_idle()
    memory = system.memory()
    cost.settle_cpu_seconds = system.cpu_seconds() - before
    cost.resident, cost.resident_peak, cost.anonymous = memory.resident, memory.peak, memory.anonymous
    cost.disk_bytes = system.disk_bytes_live()


def timed(step: Callable[[], None]) -> float:
    began = time.monotonic()
    step()
    return time.monotonic() - began


def check(system: PromQL, watch: Watch, step_ms: int, when: str, cost: Cost) -> None:
    """Adds a fault for the first wrong or missing sample of the watched pods."""
    try:
        fault = watch.fault(system, step_ms)
    except (OSError, HttpError, ValueError, KeyError) as failure:
        fault = f"no answer: {failure}"
    if fault and len(cost.faults) < FAULTS_KEPT:
        cost.faults.append(f"{when}: {fault}")
