"""The order of a run. For a workload with rounds (README.md has the table of workloads), all systems start. Each round is
written to one system after the other. Then the systems settle. Then each system is killed and started, gets one more round, is
stopped and started again. The watched samples are compared after the rounds and after both starts."""

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ..common.client import HttpError
from ..common.machine import load_average
from ..store.dataset import Dataset
from ..store.measure import rotated
from ..store.run import begin
from ..store.systems import Prometheus
from ..store.targets import BEFORE, OURS
from ..store.systems.base import System
from . import queries
from .calls.systems import PEERS
from .calls.work import CallsWork
from .bodies import Lines, Remote
from .fleet import MEASUREMENT, Fleet
from .measure import Cost, Watch, check, measure_state, timed, write_round
from .options import STEP_SECONDS, SYSTEMS, Options
from .report import report

STEP_MS = STEP_SECONDS * 1_000
QUERIES = "queries"
FAILURES = (OSError, HttpError, RuntimeError)


def run(options: Options) -> int:
    """The exit code is 1 if a system failed, or Tachograph lost samples, gave wrong answers or failed to answer a question.
    Missed aims are not failures."""
    result, folder = begin(options, SYSTEMS, "scale")
    result["works"] = []
    runs = options.cache / f"run-{os.getpid()}"
    kinds = [system for system in SYSTEMS if system.name in result["versions"]]
    try:
        for name in (work for work in options.work if work != QUERIES):
            result["works"].append(_work(options, name, runs / name, kinds))
            (folder / "raw.json").write_text(json.dumps(result, indent=1))
        if QUERIES in options.work:
            promql = [kind for kind in kinds if kind not in PEERS]
            result["queries"] = queries.run(options.hosts, options.seed, options.cache, runs / QUERIES, promql)
            (folder / "raw.json").write_text(json.dumps(result, indent=1))
    finally:
        shutil.rmtree(runs, ignore_errors=True)
    text = report(result)
    (folder / "report.md").write_text(text)
    print(f"{text}\n{folder}")
    failed = result.get("queries", {}).get("failed")
    return 1 if failed or any(work["failed"] or _has_faults(work) for work in result["works"]) else 0


def _work(options: Options, name: str, folder: Path, kinds: list) -> dict:
    if name == "calls":
        return CallsWork(options.cache, folder, [kind.name for kind in kinds], options.calls, options.seed).run()
    return Work(options, name, folder, [kind for kind in kinds if kind not in PEERS]).run()


def _has_faults(work: dict) -> bool:
    """Faults of peers do not count: VictoriaMetrics acknowledges from memory and may lose the last seconds in a crash, and
    some questions need more memory than a peer gets."""
    if work["work"] == "calls":
        return any(asked["wrong"] or {OURS, BEFORE} & set(asked["failed"]) for asked in work["questions"].values())
    return any(cost["faults"] for name, cost in work["systems"].items() if name in (OURS, BEFORE))


class Work:
    """Writes one fleet to all systems."""

    def __init__(self, options: Options, name: str, folder: Path, kinds: list[type[System]]):
        self._name, self._folder, self._rounds = name, folder, options.rounds
        self._fleet = Fleet(options.series, options.seed, options.churn if name == "churn" else 0.0)
        self._protocol = Lines(self._fleet) if name == "lines" else Remote(self._fleet, STEP_MS, options.seed)
        self._watch = Watch(self._fleet, self._protocol)
        # All rounds are in the past, also the round after the kill.
        now_ms = int(time.time()) // STEP_SECONDS * STEP_MS
        self._time_ms = now_ms - (options.rounds + 2) * STEP_MS
        dataset = Dataset(f"scale-{name}", name, MEASUREMENT, [], STEP_MS)
        taking = [kind for kind in kinds if name != "lines" or kind is not Prometheus]
        self._systems = [kind(options.cache, folder / kind.name, dataset) for kind in taking]
        self._costs: dict[str, Cost] = {}
        self._failed: dict[str, str] = {}

    def run(self) -> dict:
        print(f"{self._name}: {self._fleet.series:,} series, {self._rounds} rounds", flush=True)
        try:
            self._each(self._start)
            for number in range(self._rounds):
                self._round(number)
            self._each(lambda system, cost: setattr(cost, "cpu_seconds_after", system.cpu_seconds()))
            self._each(measure_state)
            self._each(lambda system, cost: check(system, self._watch, STEP_MS, "after the rounds", cost))
            self._each(self._kill)
            self._round(self._rounds, noted=False)
            self._each(self._stop)
        finally:
            for system in self._systems:
                system.stop()
            shutil.rmtree(self._folder, ignore_errors=True)
        return {
            "work": self._name,
            "series": self._fleet.series,
            "series_ever": self._fleet.series_ever,
            "rounds": self._rounds,
            "systems": {name: asdict(cost) for name, cost in self._costs.items()},
            "failed": self._failed,
            "load_average_after": load_average(),
        }

    def _each(self, step: Callable[[System, Cost], object], turn: int = 0) -> None:
        """A step for each system. A system that fails takes no further part."""
        for system in rotated(self._systems, turn):
            try:
                step(system, self._costs.setdefault(system.name, Cost(0.0)))
            except FAILURES as failure:
                self._failed[system.name] = str(failure)
                self._costs.pop(system.name, None)
                print(f"  {system.title}: failed: {failure}", flush=True)
                system.stop()
                self._systems.remove(system)

    def _start(self, system: System, cost: Cost) -> None:
        system.run.mkdir(parents=True)
        cost.ready_seconds = timed(system.start)
        cost.resident_idle = system.memory().resident

    def _round(self, number: int, noted: bool = True) -> None:
        """Writes the next round to all systems. `noted` is true for measured rounds."""
        self._time_ms += STEP_MS
        self._fleet.advance()
        self._watch.note(self._time_ms)
        lists = self._protocol.round(self._time_ms)

        def write(system: System, cost: Cost) -> None:
            done = write_round(system, self._protocol, lists, self._time_ms)
            if noted:
                cost.rounds.append(done)

        self._each(write, number)

    def _kill(self, system: System, cost: Cost) -> None:
        system.kill()
        cost.ready_after_kill_seconds = timed(system.start)
        check(system, self._watch, STEP_MS, "after kill -9", cost)

    def _stop(self, system: System, cost: Cost) -> None:
        cost.stop_seconds = timed(system.stop)
        cost.disk_bytes_stopped = system.disk_bytes_live()
        cost.ready_after_stop_seconds = timed(system.start)
        check(system, self._watch, STEP_MS, "after a stop", cost)
        print(f"  {system.title}: {cost.resident / 1e6:.0f} MB, {cost.disk_bytes_stopped / 1e6:.0f} MB on disk", flush=True)
