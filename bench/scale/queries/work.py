"""The order of the workload `queries`: one system after the other gets the data of all hosts and all questions, and stops."""

import os
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ...common.client import HttpError
from ...common.machine import load_average
from ...store.data.devops import devops
from ...store.measure import load
from ...store.systems import Prometheus
from ...store.systems.base import System
from ...store.systems.promql import PromQL
from .measure import HEAVY_CLIENTS, heavy_ms, light_p99_ms, panels_ms, repeated

HOSTS, HOSTS_FULL = 100, 1_000
HOURS = 24.0
FAILURES = (OSError, HttpError, RuntimeError)


def run(hosts: int, seed: int, cache: Path, folder: Path, kinds: list[type[System]]) -> dict:
    """Measures all `kinds` except Prometheus, which has no line protocol and no cache."""
    dataset = devops(hosts, HOURS, seed)
    print(f"queries: {dataset.title}", flush=True)
    costs, failed = {}, {}
    for kind in kinds:
        if kind is Prometheus:
            continue
        system = kind(cache, folder / kind.name, dataset)
        try:
            costs[system.name] = _measured(system)
            print(f"  {system.title}: {costs[system.name]}", flush=True)
        except FAILURES as failure:
            failed[system.name] = str(failure)
            print(f"  {system.title}: failed: {failure}", flush=True)
        finally:
            system.stop()
            shutil.rmtree(system.run, ignore_errors=True)
    return {"title": dataset.title, "systems": costs, "failed": failed, "load_average_after": load_average()}


def _measured(system: PromQL) -> dict:
    cores = os.sched_getaffinity(0)
    figures = {"cores": len(cores), "values_per_second": _values_per_second(system)}
    figures |= asdict(repeated(system))
    figures |= asdict(panels_ms(system))
    figures["heavy_ms"], figures["heavy_cpu_ms"] = heavy_ms(system)
    figures["light_alone_ms_p99"] = light_p99_ms(system, 0)
    figures["light_beside_ms_p99"] = light_p99_ms(system, HEAVY_CLIENTS)
    system.stop()
    start = system.start
    system.start = lambda: on_one_core(start)
    system.start()
    figures["heavy_one_core_ms"], _ = heavy_ms(system)
    system.stop()
    figures["values_per_second_one_core"] = _values_per_second(system)
    return figures


def _values_per_second(system: PromQL) -> float:
    """Writes all data into an empty directory, from several connections."""
    cost = load(system)
    return cost.values / cost.seconds


def on_one_core(start: Callable[[], None]) -> None:
    """Calls `start`, whose processes inherit one core from this process. The clients keep all cores."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        start()
    finally:
        os.sched_setaffinity(0, cores)
