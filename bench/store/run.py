"""The order of a run. For each dataset, the systems load it one after the other, then they are queried alternately, then
they stop."""

import json
import os
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from statistics import median_low

from .chronix import chronix_cost
from ..common.client import HttpError
from ..common.machine import QUIET_LOAD_MAX, load_average, machine
from .measure import Costs, ask, load, rotated
from .options import Options
from .plan import Experiment, plan
from .plot import plots
from .reference import Reference
from .report import report
from .systems import SYSTEMS, TachoBefore
from .systems.base import NotOffered, System

CODEC_WORKS = ("a", "b")
CODEC_VALUES_MAX = 20_000_000
"""Limit on values for the method of Chronix in Python, which would otherwise take longer than all other steps
together."""


def begin(options, systems: tuple[type[System], ...], name: str) -> tuple[dict, Path]:
    """Installs the systems. Returns the description of the run and the new folder for its results, `NAME-TIME`. `options`
    needs `only`, `before`, `cache` and `results`."""
    TachoBefore.binary = options.before
    begun = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    load = load_average()
    if load > QUIET_LOAD_MAX:
        print(f"load average {load}: wall times of this run are disturbed", flush=True)
    description = {
        "begun": begun,
        "machine": machine(),
        "load_average_before": load,
        "options": plain(options),
        "versions": install(systems, options.only, options.cache),
        "notes": {system.name: system.notes for system in systems},
    }
    folder = options.results / f"{name}-{begun}"
    folder.mkdir(parents=True)
    return description, folder


def run(options: Options) -> int:
    """The exit code is 1 if a system failed or returned wrong results. Missed targets are not failures."""
    result, folder = begin(options, SYSTEMS, "store")
    result["experiments"] = []
    runs = options.cache / f"run-{os.getpid()}"
    try:
        for experiment in plan(options):
            result["experiments"].append(_experiment(options, runs, list(result["versions"]), experiment))
            (folder / "raw.json").write_text(json.dumps(result, indent=1))
    finally:
        shutil.rmtree(runs, ignore_errors=True)
    text = report(result)
    (folder / "report.md").write_text(text)
    for name, drawing in plots(result).items():
        (folder / f"{name}.svg").write_text(drawing)
    print(f"{text}\n{folder}")
    return 1 if _has_faults(result) else 0


def install(systems: tuple[type[System], ...], only: tuple[str, ...], cache: Path) -> dict[str, str]:
    """Installs the systems named in `only`, and returns their versions. A system that cannot be installed is reported and
    skipped."""
    versions = {}
    for system in systems:
        if system.name not in only:
            continue
        try:
            versions[system.name] = system.install(cache)
        except (RuntimeError, OSError) as failure:
            print(f"{system.title} is skipped: {failure}", flush=True)
    return versions


def _experiment(options: Options, runs: Path, names: list[str], experiment: Experiment) -> dict:
    dataset = experiment.dataset
    print(f"({experiment.work}) {dataset.title}: {dataset.values:,} values of {dataset.series:,} series", flush=True)
    outcome = {
        "work": experiment.work,
        "title": dataset.title,
        "values": dataset.values,
        "series": dataset.series,
        "loads": {},
        "turns": {},
        "not_measured": {},
        "wires": {},
        "chronix": None,
        "queries": {},
    }
    systems: list[System] = []
    try:
        for kind in (system for system in SYSTEMS if system.name in names):
            try:
                system = kind(options.cache, runs / experiment.work / kind.name, dataset)
            except NotOffered as reason:
                outcome["not_measured"][kind.name] = str(reason)
                continue
            systems.append(system)
            outcome["wires"][kind.name] = system.wire
            if not _load(system, outcome):
                systems.remove(system)
        costs: Costs = {}
        reference = Reference(dataset)
        for turn in range(1, options.loads):
            # Two builds are compared process by process. Queries of one process are not independent of each other.
            if options.before:
                ask(systems, reference, experiment.classes, costs)
            for system in rotated(systems, turn):
                system.stop()
                if not _load(system, outcome):
                    systems.remove(system)
                    for row in costs.values():
                        row.pop(system.name, None)
        if experiment.work in CODEC_WORKS and dataset.values <= CODEC_VALUES_MAX:
            outcome["chronix"] = asdict(chronix_cost(dataset))
        ask(systems, reference, experiment.classes, costs)
        outcome["queries"] = {name: {system: asdict(cost) for system, cost in row.items()} for name, row in costs.items()}
        outcome["load_average_after"] = load_average()
    finally:
        for system in systems:
            system.stop()
        shutil.rmtree(runs / experiment.work, ignore_errors=True)
    return outcome


def _load(system: System, outcome: dict) -> bool:
    """Loads the dataset once. Returns whether the system can be queried. A failure becomes part of the result, in place of
    the figures of earlier loads, because the report expects queries of each loaded system."""
    try:
        cost = load(system)
    except (OSError, HttpError, RuntimeError) as failure:
        outcome["not_measured"][system.name] = f"failed: {failure}"
        outcome["loads"].pop(system.name, None)
        outcome["turns"].pop(system.name, None)
        print(f"  {system.title}: failed: {failure}", flush=True)
        system.stop()
        return False
    turns = outcome["turns"].setdefault(system.name, [])
    turns.append(asdict(cost))
    outcome["loads"][system.name] = {name: median_low(turn[name] for turn in turns) for name in turns[0]}
    cpu_us, size = cost.cpu_seconds / cost.values * 1e6, cost.disk_bytes / cost.values
    print(f"  {system.title}: {cpu_us:.3f} us CPU and {size:.3f} bytes per value", flush=True)
    return True


def _has_faults(result: dict) -> bool:
    return any(
        text.startswith("failed") for experiment in result["experiments"] for text in experiment["not_measured"].values()
    ) or any(
        cost["wrong"]
        for experiment in result["experiments"]
        for row in experiment["queries"].values()
        for cost in row.values()
    )


def plain(options: object) -> dict:
    """The fields of the data class `options`, as values that JSON can represent."""
    return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(options).items()}
