"""Measures writing, settling and querying.

A system runs from its last load, which writes the whole dataset, until all systems have had their queries. If two builds are compared,
the systems have their queries after each load. They are queried alternately, a few queries each, so that other activity of the machine
affects all of them equally.
"""

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from queue import Empty, SimpleQueue
from statistics import median

from .bodies import kept
from .check import fault, value_error_max
from ..common.client import Client, HttpError, Request
from ..common.machine import load_average
from .questions import Question, QuestionClass, Range
from .reference import Reference
from .systems.base import NotOffered, System

QUERIES_A_TURN = 10
CLASS_SECONDS_MAX = 20
"""After this time, a system gets no more queries of the class."""
FAULTS_KEPT = 3
SERVICE_UNAVAILABLE = 503
REFUSALS_MAX = 600
PAUSE_SECONDS = 0.1
WARM_UP_SECONDS = 0.2


@dataclass
class LoadCost:
    """Cost of writing one dataset once. Sizes are in bytes. Seconds are wall time unless the name says CPU."""

    values: int
    ready_seconds: float
    resident_idle: int
    anonymous_idle: int
    """Memory without the pages of files, such as the code of the program."""
    load_average: float
    seconds: float
    cpu_seconds: float
    refused: int
    """Number of refusals with status 503."""
    resident_peak: int
    disk_bytes_live: int
    settle_seconds: float = 0.0
    settle_cpu_seconds: float = 0.0
    disk_bytes: int = 0
    resident_settled: int = 0
    anonymous_settled: int = 0


@dataclass
class QueryCost:
    """Cost of one class of queries: latencies in order, and the number of wrong or missing results."""

    latencies_ms: list[float] = field(default_factory=list)
    cpu_seconds: float = 0.0
    processes: list[tuple[float, float]] = field(default_factory=list)
    """Of each process that was asked: the median latency in ms, and the CPU seconds of a query."""
    answer_bytes: int = 0
    value_error_max: float = 0.0
    """Largest relative error of raw values in results that count as correct."""
    wrong: int = 0
    faults: list[str] = field(default_factory=list)
    not_offered: str | None = None


def load(system: System) -> LoadCost:
    """Starts the system on an empty directory, writes all data, and waits until the system has settled. Does not stop
    it."""
    files = kept(system.cache, system.bodies_name, system.bodies())
    shutil.rmtree(system.run, ignore_errors=True)
    system.run.mkdir(parents=True)
    system.stage()
    begun = time.monotonic()
    system.start()
    ready_seconds = time.monotonic() - begun
    system.prepare()
    idle = system.memory()
    before, begun = system.cpu_seconds(), time.monotonic()
    refused = _write_all(system, files)
    system.finish_writes()
    cost = LoadCost(
        values=system.dataset.values,
        ready_seconds=ready_seconds,
        resident_idle=idle.resident,
        anonymous_idle=idle.anonymous,
        load_average=load_average(),
        seconds=time.monotonic() - begun,
        cpu_seconds=system.cpu_seconds() - before,
        refused=refused,
        resident_peak=system.memory().peak,
        disk_bytes_live=system.disk_bytes_live(),
    )
    before, begun = system.cpu_seconds(), time.monotonic()
    system.settle()
    memory = system.memory()
    cost.settle_seconds, cost.settle_cpu_seconds = time.monotonic() - begun, system.cpu_seconds() - before
    cost.resident_peak = max(cost.resident_peak, memory.peak)
    cost.resident_settled, cost.anonymous_settled = memory.resident, memory.anonymous
    cost.disk_bytes = system.disk_bytes()
    return cost


Costs = dict[str, dict[str, QueryCost]]
"""Costs of queries by class and system."""


def ask(systems: list[System], reference: Reference, classes: list[QuestionClass], costs: Costs) -> None:
    """Adds the costs of the present process of each system."""
    for group in classes:
        row = costs.setdefault(group.name, {})
        for system in systems:
            row.setdefault(system.name, QueryCost())
        offering = [system for system in systems if _offers(system, group, row[system.name])]
        processes = max((len(cost.processes) for cost in row.values()), default=0)
        earlier = {system.name: (len(row[system.name].latencies_ms), row[system.name].cpu_seconds) for system in offering}
        for turn in range(0, len(group.questions), QUERIES_A_TURN):
            questions = group.questions[turn : turn + QUERIES_A_TURN]
            # Another system is first for each turn, and for each process.
            for system in rotated(offering, turn // QUERIES_A_TURN + processes):
                cost = row[system.name]
                if sum(cost.latencies_ms[earlier[system.name][0] :]) < CLASS_SECONDS_MAX * 1_000:
                    _ask_some(system, reference, questions, cost)
        for system in offering:
            cost, (count, cpu_seconds) = row[system.name], earlier[system.name]
            if own := cost.latencies_ms[count:]:
                cost.processes.append((median(own), (cost.cpu_seconds - cpu_seconds) / len(own)))


def _write_all(system: System, files: list[Path]) -> int:
    """Distributes files over `system.writers` connections, each file to the next free connection. Returns the number of
    refusals.

    Raises the first failure.
    """
    waiting: SimpleQueue[Path] = SimpleQueue()
    for file in files:
        waiting.put(file)
    refused: list[int] = []
    failures: list[Exception] = []

    def write() -> None:
        try:
            with system.client() as client:
                while not failures:
                    body = waiting.get_nowait().read_bytes()
                    refused.append(accepted(lambda: system.write(client, body)))
        except Empty:
            pass
        except (OSError, HttpError) as failure:
            failures.append(failure)

    writers = [threading.Thread(target=write) for _ in range(system.writers)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    if failures:
        raise failures[0]
    return sum(refused)


def accepted(write: Callable[[], None]) -> int:
    """Repeats the write while the system refuses it with status 503. Returns the number of refusals. Raises TimeoutError
    after `REFUSALS_MAX` refusals."""
    for refused in range(REFUSALS_MAX):
        try:
            write()
            return refused
        except HttpError as failure:
            if failure.status != SERVICE_UNAVAILABLE:
                raise
            time.sleep(PAUSE_SECONDS)
    raise TimeoutError(f"the write was refused {REFUSALS_MAX} times")


def _offers(system: System, group: QuestionClass, cost: QueryCost) -> bool:
    """Whether the language of the system can express the queries of the class."""
    try:
        for question in group.questions[:QUERIES_A_TURN]:
            system.request(question)
    except NotOffered as reason:
        cost.not_offered = str(reason)
    return cost.not_offered is None


def _warm_up(client: Client, requests: list[Request]) -> None:
    """Sends each request at least once, for `WARM_UP_SECONDS` together, directly before they are timed. The first runs mostly read code into memory, and a
    system that was idle for a moment has given memory back and has cold caches. So a system that waits longer for its turn than
    another one would look slower."""
    begun = time.monotonic()
    for nth, request in enumerate(cycle(requests)):
        if nth >= len(requests) and time.monotonic() - begun > WARM_UP_SECONDS:
            return
        try:
            client.send(request)
        except (OSError, HttpError):
            return  # the timed queries report the error


def _ask_some(system: System, reference: Reference, questions: list[Question], cost: QueryCost) -> None:
    requests = [system.request(question) for question in questions]
    bodies: list[bytes | None] = []
    with system.client() as client:
        _warm_up(client, requests)
        before = system.cpu_seconds()
        for request in requests:
            begun = time.perf_counter_ns()
            try:
                bodies.append(client.send(request))
            except (OSError, HttpError) as failure:
                bodies.append(None)
                _note(cost, str(failure))
            cost.latencies_ms.append((time.perf_counter_ns() - begun) / 1e6)
        cost.cpu_seconds += system.cpu_seconds() - before
    for question, body in zip(questions, bodies):
        if body is not None:
            cost.answer_bytes += len(body)
            _check(system, reference, question, body, cost)


def _check(system: System, reference: Reference, question: Question, body: bytes, cost: QueryCost) -> None:
    try:
        answer = system.answer(question, body)
        wrong = fault(reference, question, answer, system.quantiles_are_ranks())
        if wrong is None and isinstance(question, Range):
            cost.value_error_max = max(cost.value_error_max, value_error_max(reference.answer(question), answer))
    except (ValueError, KeyError, IndexError, TypeError) as failure:
        wrong = f"unreadable result: {failure!r}; {body[:200]!r}"
    if wrong:
        _note(cost, f"{question}: {wrong}")


def _note(cost: QueryCost, text: str) -> None:
    cost.wrong += 1
    if len(cost.faults) < FAULTS_KEPT:
        cost.faults.append(text)


def rotated(systems: list[System], turn: int) -> list[System]:
    """The same cyclic order, begun one system later in each turn."""
    at = turn % len(systems) if systems else 0
    return systems[at:] + systems[:at]
