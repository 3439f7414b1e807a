"""The order of the workload `calls`. Tachograph gets all calls with the native protocol. Then the peers get the same
calls, slice by slice. Then each question is asked several times, of the systems alternately."""

import shutil
import time
from math import isnan
from pathlib import Path
from statistics import median

from ...common.client import HttpError
from ...common.machine import load_average
from ...store.measure import rotated
from ...store.targets import BEFORE, OURS
from .generator import Calls
from .questions import Question, questions
from .systems import PEERS, Asked, CallSystem, Peer, TachoCalls, TachoCallsBefore

HOURS = 24.0
TIMES = 3
FAILURES = (OSError, HttpError, RuntimeError, ValueError, KeyError)


class CallsWork:
    """Writes one set of calls to all systems."""

    def __init__(self, cache: Path, folder: Path, names: list[str], count: int, seed: int):
        # All calls are in the past.
        start = (int(time.time()) // 3_600 - int(HOURS) - 2) * 3_600
        self._calls = Calls(count, seed, start, HOURS)
        self._folder = folder
        kinds = (TachoCalls, TachoCallsBefore, *PEERS)
        self._systems: list[CallSystem] = [kind(cache, folder / kind.name) for kind in kinds if kind.name in names]
        self._loads: dict[str, dict] = {}
        self._failed: dict[str, str] = {}
        self._generated: dict = {}

    def run(self) -> dict:
        print(f"calls: {self._calls.count:,} calls of {HOURS:g} h", flush=True)
        answers: dict[str, dict] = {}
        try:
            for system in list(self._systems):
                self._try(system, system.start)
            for system in [system for system in self._systems if isinstance(system, TachoCalls)]:
                self._try(system, lambda system=system: self._send(system))
            self._load_peers()
            if self._generated:
                named = self._generated["named"]
                for turn, question in enumerate(questions(self._calls, named[len(named) // 2])):
                    answers[question.name] = self._ask(question, turn)
        finally:
            for system in self._systems:
                system.stop()
            shutil.rmtree(self._folder, ignore_errors=True)
        return {
            "work": "calls",
            "calls": self._generated.get("calls", 0),
            "traces": self._generated.get("traces", 0),
            "hours": HOURS,
            "loads": self._loads,
            "questions": answers,
            "failed": self._failed,
            "load_average_after": load_average(),
        }

    def _try(self, system: CallSystem, step) -> None:
        """A system that fails takes no further part."""
        try:
            step()
        except FAILURES as failure:
            print(f"  {system.title}: failed: {failure}", flush=True)
            self._failed[system.name] = str(failure)
            system.stop()
            self._systems.remove(system)

    def _send(self, system: TachoCalls) -> None:
        cpu, wall, self._generated = system.load(self._calls)
        self._loads[system.name] = _load(cpu, wall, system.size(), system.memory_peak())

    def _load_peers(self) -> None:
        peers = [system for system in self._systems if isinstance(system, Peer)]
        costs = {peer.name: [0.0, 0.0, 0] for peer in peers}
        file = self._folder / "slice.csv"

        def run(peer: Peer, statement: str) -> None:
            answer = peer.run(statement)
            cost = costs[peer.name]
            costs[peer.name] = [cost[0] + answer["cpu"], cost[1] + answer["wall"], max(cost[2], answer["peak"])]

        def finish(peer: Peer) -> None:
            for statement in peer.finish():
                run(peer, statement)
            cpu, wall, peak = costs[peer.name]
            self._loads[peer.name] = _load(cpu, wall, peer.size(), peak)

        for number, lines in enumerate(self._calls.slices() if peers else ()):
            file.write_bytes(lines)
            for peer in [peer for peer in peers if peer in self._systems]:
                self._try(peer, lambda peer=peer: run(peer, peer.take(file, number)))
        file.unlink(missing_ok=True)
        for peer in [peer for peer in peers if peer in self._systems]:
            self._try(peer, lambda peer=peer: finish(peer))

    def _ask(self, question: Question, turn: int) -> dict:
        answers: dict[str, list[Asked]] = {}
        failed: dict[str, str] = {}
        for time_number in range(TIMES):
            for system in rotated(self._systems, turn + time_number):
                if system.name in failed:
                    continue
                try:
                    if asked := system.ask(question):
                        answers.setdefault(system.name, []).append(asked)
                except FAILURES as failure:
                    failed[system.name] = str(failure)
        values = {name: asked[0].value for name, asked in answers.items()}
        known = [value for name, value in values.items() if name not in (OURS, BEFORE) and not _is_nan(value)]
        ours = values.get(OURS)
        # An empty answer measures nothing.
        is_empty = OURS in values and not ours
        wrong = is_empty or bool(known) and OURS in values and not _is_nan(ours) and all(ours != value for value in known)
        if wrong:
            print(f"  {question.name}: {str(ours)[:200]} instead of {str(known[:1])[:200]}", flush=True)
        return {
            "limit_ms": question.limit_ms,
            "is_offered": question.ours is not None,
            "wrong": wrong,
            "failed": failed,
            "costs": {name: _cost(asked) for name, asked in answers.items()},
        }


def _load(cpu: float, wall: float, size: int, peak: int) -> dict:
    return {"cpu_seconds": cpu, "wall_seconds": wall, "bytes": size, "peak": peak}


def _cost(asked: list[Asked]) -> dict:
    return {
        "wall_ms": median(each.wall for each in asked) * 1e3,
        "first_ms": asked[0].wall * 1e3,
        "cpu_ms": median(each.cpu for each in asked) * 1e3,
        "peak": max(each.peak for each in asked),
    }


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and isnan(value)
