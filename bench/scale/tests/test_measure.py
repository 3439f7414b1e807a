"""Tests the measurement of a round and the comparison of samples, with a system in this process."""

import json
import threading
from pathlib import Path
from unittest import TestCase
from urllib.parse import parse_qs, urlsplit

from ...common.client import HttpError, Request
from ...store.dataset import Dataset
from ...store.systems import VictoriaMetrics
from ..bodies import Lines
from ..fleet import Fleet
from ..measure import Cost, Watch, check, write_round
from .test_bodies import TIME_MS, of_lines

STEP_MS = 15_000


class InProcess(VictoriaMetrics):
    """Keeps written samples. Refuses the first `refusals` writes."""

    def __init__(self, refusals: int = 0):
        super().__init__(Path("cache"), Path("run"), Dataset("none", "none", "req", [], STEP_MS))
        self.refusals = refusals
        self.kept: dict[tuple[str, str], list[tuple[float, float]]] = {}
        self.asked = ""
        self._lock = threading.Lock()

    def client(self) -> "InProcess":
        return self

    def __enter__(self) -> "InProcess":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def send(self, request: Request) -> bytes:
        with self._lock:
            return self._answer(request)

    def _answer(self, request: Request) -> bytes:
        if request.method == "GET":
            self.asked = parse_qs(urlsplit(request.path).query)["query"][0]
            rows = [
                {"metric": {"pod": pod, "path": path}, "values": values}
                for (pod, path), values in self.kept.items()
                if pod in self.asked
            ]
            return json.dumps({"data": {"result": rows}}).encode()
        if self.refusals:
            self.refusals -= 1
            raise HttpError(503, "full")
        if not request.body.startswith(b"small"):
            for (pod, path, _), (value, time_ns) in of_lines(request.body).items():
                self.kept.setdefault((pod, path), []).append((time_ns / 1e9, value))
        return b""

    def cpu_seconds(self) -> float:
        return 1.5


class Rounds(TestCase):
    def written(self, system: InProcess) -> tuple[Fleet, Watch, list]:
        fleet = Fleet(200, seed=1)
        protocol = Lines(fleet)
        watch, costs = Watch(fleet, protocol), []
        for number in range(3):
            fleet.advance()
            time_ms = TIME_MS + number * STEP_MS
            watch.note(time_ms)
            costs.append(write_round(system, protocol, protocol.round(time_ms), time_ms))
        return fleet, watch, costs

    def test_all_samples_arrive_and_refused_writes_are_repeated(self):
        system = InProcess(refusals=2)
        _, watch, costs = self.written(system)
        self.assertIsNone(watch.fault(system, STEP_MS))
        self.assertIn("[60000ms]", system.asked)
        self.assertEqual(0, system.refusals)
        self.assertTrue(all(cost.small_seconds_max > 0 and cost.cpu_seconds_at_start == 1.5 for cost in costs))
        self.assertTrue(all(cost.request_seconds_max > 0 for cost in costs))

    def test_lost_and_additional_samples_are_faults(self):
        for change in (lambda values: values.pop(), lambda values: values.append((1.0, 1.0)), lambda values: values.clear()):
            system, cost = InProcess(), Cost(0.0)
            fleet, watch, _ = self.written(system)
            change(system.kept[fleet.name(0), "/api/v1/orders/get"])
            check(system, watch, STEP_MS, "after kill -9", cost)
            self.assertEqual(1, len(cost.faults))
            self.assertIn("after kill -9: ('checkout-", cost.faults[0])

    def test_a_failed_write_is_raised(self):
        system = InProcess()
        system.send = lambda request: (_ for _ in ()).throw(HttpError(400, "bad"))
        fleet = Fleet(20, seed=1)
        protocol = Lines(fleet)
        with self.assertRaises(HttpError):
            write_round(system, protocol, protocol.round(TIME_MS), TIME_MS)
