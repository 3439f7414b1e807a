"""A run: builds and fetches everything, measures the processes one after the other, and writes the report."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from bench.common.machine import load_average, machine

from .compare import compare, halves
from .fork import ForkFailed, measure
from .frameworks import FRAMEWORKS
from .frameworks.ours import TACHO, TachographBefore
from .install import JAVA, build, versions
from .model import Cell, Experiment, Takes
from .options import Options
from .plan import START_AND_END_SECONDS, estimate_seconds, order, plan
from .plot import plots
from .report import report

RAW = "raw.json"


def run(options: Options) -> int:
    """Returns the exit code: 1 if the result has faults as in `has_faults`. A missed target is not a fault."""
    if options.report:
        return _publish(options.report, json.loads((options.report / RAW).read_text()), options.compare)
    TachographBefore.agent = options.before_agent
    build()
    experiments = plan(options.full, options.experiments, options.only, options.forks, options.seconds)
    used = {cell.framework.name: cell.framework for experiment in experiments for cell in experiment.cells}
    found, not_measured = versions(tuple(used.values()), options.cache)
    for name, reason in not_measured.items():
        print(f"{name} is not measured: {reason}", flush=True)
    if not TACHO.exists() and any(_needs_server(cell) for experiment in experiments for cell in experiment.cells):
        not_measured["ours-server"] = f"{TACHO} is missing; run make tacho"
        print(f"ours-server is not measured: {not_measured['ours-server']}", flush=True)
    result = _head(options, found, not_measured)
    experiments = [_without(experiment, not_measured) for experiment in experiments]
    folder = options.results / f"probe-{result['begun']}"
    folder.mkdir(parents=True)
    _measure_all(options, experiments, result, folder)
    return _publish(folder, result, options.compare)


def _needs_server(cell: Cell) -> bool:
    return cell.setup.takes is Takes.SERVER


def _without(experiment: Experiment, not_measured: dict[str, str]) -> Experiment:
    cells = (cell for cell in experiment.cells if not {cell.framework.name, cell.setup.name} & set(not_measured))
    return replace(experiment, cells=tuple(cells))


def _head(options: Options, found: dict[str, str], not_measured: dict[str, str]) -> dict:
    java = subprocess.run([JAVA, "-version"], capture_output=True, text=True, check=True).stderr.splitlines()
    return {
        "begun": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
        "machine": machine(),
        "java": java[0],
        "load_average_before": load_average(),
        "options": {name: str(value) if isinstance(value, Path) else value for name, value in asdict(options).items()},
        "versions": found,
        "not_measured": not_measured,
        "notes": {framework.title: framework.notes for framework in FRAMEWORKS if framework.name in found},
        "experiments": [],
    }


def _measure_all(options: Options, experiments: list[Experiment], result: dict, folder: Path) -> None:
    """Saves the results after each experiment and after an interruption."""
    progress = Progress(experiments)
    work = options.results / f".probe-{os.getpid()}"
    try:
        for experiment in experiments:
            outcome = {
                "name": experiment.name,
                "title": experiment.title,
                "cells": [cell.plain() | {"forks": [], "failures": []} for cell in experiment.cells],
            }
            result["experiments"].append(outcome)
            try:
                _measure_experiment(options, experiment, outcome, work, progress)
            finally:
                (folder / RAW).write_text(json.dumps(result))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _measure_experiment(options: Options, experiment: Experiment, outcome: dict, work: Path, progress: "Progress") -> None:
    for turn, (fork, cell) in enumerate(order(experiment, options.seed)):
        entry = outcome["cells"][experiment.cells.index(cell)]
        progress.begin(experiment, cell, fork)
        try:
            found = measure(cell, options.cache, work / f"{experiment.name}-{turn}", options.idle_wait)
        except ForkFailed as failure:
            entry["failures"].append(str(failure))
            progress.end(f"FAILED: {failure}")
            continue
        entry["forks"].append(found | {"turn": turn})
        text = f"median {found['median_us']:.3f} us, mean {found['mean_us']:.3f} us"
        progress.end("; ".join([text, *found["faults"]]))


class Progress:
    """Prints a line on standard error for each finished process, and on a terminal also for the running process."""

    def __init__(self, experiments: Iterable[Experiment]) -> None:
        experiments = list(experiments)
        self._all = sum(experiment.forks * len(experiment.cells) for experiment in experiments)
        self._seconds = estimate_seconds(experiments)
        self._done, self._estimated = 0, 0.0
        self._line = ""
        print(f"{self._all} processes, about {self._seconds / 60:.0f} minutes", file=sys.stderr, flush=True)

    def begin(self, experiment: Experiment, cell: Cell, fork: int) -> None:
        self._done += 1
        self._line = f"[{self._done}/{self._all}] {label(experiment.name, cell)} {fork + 1}/{experiment.forks}"
        if sys.stderr.isatty():
            left = max(0.0, self._seconds - self._estimated) / 60
            print(f"{self._line} ... about {left:.0f} min left", end="\r", file=sys.stderr, flush=True)
        self._estimated += cell.workload.seconds + START_AND_END_SECONDS

    def end(self, text: str) -> None:
        clear = "\x1b[2K" if sys.stderr.isatty() else ""
        print(f"{clear}{self._line}: {text}", file=sys.stderr, flush=True)


def label(experiment: str, cell: Cell) -> str:
    """Experiment, setup, and the part of the workload that the experiment varies."""
    load = cell.workload
    varied = {"threads": f" x{load.threads}", "depth": f" depth {load.depth}", "method-time": f" {load.method_us:g} us"}
    return f"{experiment} {cell.setup.name}{varied.get(experiment, '')}"


def _publish(folder: Path, result: dict, before: Path | None) -> int:
    """Writes the report and the drawings next to the raw figures. Returns the exit code."""
    text = report(result)
    if before:
        text += "\n" + compare(result, json.loads((before / RAW).read_text()))
    if both := halves(result):
        text += "\n" + compare(*both)
    (folder / "report.md").write_text(text)
    for name, drawing in plots(result).items():
        (folder / f"{name}.svg").write_text(drawing)
    print(f"{text}\n{folder}")
    return 1 if has_faults(result) else 0


def has_faults(result: dict) -> bool:
    """Whether a process failed, or whether our agent lost calls, sent too many or undecodable calls, or did not switch the
    method. In a setup with `is_lossy` and without `switches`, only failed processes count."""
    cells = [cell for experiment in result["experiments"] for cell in experiment["cells"]]
    return any(cell["failures"] for cell in cells) or any(
        text.startswith(("lost", "the sink", "the agent")) or "more calls arrived" in text or "was switched" in text
        for cell in cells
        if cell["setup"].startswith("ours") and not (cell["is_lossy"] and not cell["switches"])
        for fork in cell["forks"]
        for text in fork["faults"]
    )
