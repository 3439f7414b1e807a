"""The plan of a run: experiments, their cells, the repetitions, and the order."""

import os
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from .frameworks import FRAMEWORKS
from .frameworks.ours import before
from .model import Cell, Experiment, Framework, Setup, Workload

CORES = os.cpu_count() or 1
PACE = 100_000
SUSTAINED_PACE, SUSTAINED_SECONDS = 400_000, 60.0
START_AND_END_SECONDS = 3.5
"""Seconds of a process in addition to its workload, to estimate the duration of a run."""

BESIDE = ("none", "ours-sink", "kieker-tcp")
"""Setups that are measured when a workload is varied."""


@dataclass(frozen=True)
class Size:

    forks: int
    forks_varied: int
    seconds: float
    depths: tuple[int, ...]
    method_us: tuple[float, ...]
    omitted: tuple[str, ...]


SHORT = Size(3, 2, 5.0, (1, 10, 50, 100), (0.0, 10.0, 100.0), ("kieker-aspectj-file",))
FULL = Size(10, 10, 20.0, (1, 2, 5, 10, 20, 50, 100), (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0), ())


def plan(
    full: bool, names: Iterable[str], only: Iterable[str], forks: int | None, seconds: float | None
) -> list[Experiment]:
    """The experiments to run. An experiment in which only `none` would be measured is omitted."""
    size = FULL if full else SHORT
    if seconds:
        size = replace(size, seconds=seconds)
    if forks:
        size = replace(size, forks=forks, forks_varied=forks)
    wanted, chosen = set(names), set(only)
    everything = (_MAKERS[name](size) for name in EXPERIMENTS if name in wanted)
    kept = (
        replace(experiment, cells=tuple(cell for cell in experiment.cells if cell.setup.name in chosen))
        for experiment in everything
    )
    return [experiment for experiment in kept if any(cell.setup.name != "none" for cell in experiment.cells)]


def order(experiment: Experiment, seed: int) -> Iterator[tuple[int, Cell]]:
    """Each cell once in random order, then each cell once in another order, until all forks are done."""
    for fork in range(experiment.forks):
        cells = list(experiment.cells)
        random.Random(f"{seed}/{experiment.name}/{fork}").shuffle(cells)
        for cell in cells:
            yield fork, cell


def estimate_seconds(experiments: Iterable[Experiment]) -> float:
    return sum(
        experiment.forks * (cell.workload.seconds + START_AND_END_SECONDS)
        for experiment in experiments
        for cell in experiment.cells
    )


def _configurations(size: Size) -> Experiment:
    setups = (setup.name for framework in FRAMEWORKS for setup in framework.setups)
    cells = _cells((name for name in setups if name not in size.omitted), [_base(size)])
    return Experiment("configurations", "Response time by configuration", size.forks, cells)


def _paced(size: Size) -> Experiment:
    names = ("none", "ours-sink", "ours-server", "kieker-tcp", "otel-otlp")
    cells = _cells(names, [replace(_base(size), pace=PACE)])
    return Experiment("paced", f"Paced at {PACE:,} traces a second", size.forks, cells)


def _threads(size: Size) -> Experiment:
    workloads = [replace(_base(size), threads=threads) for threads in sorted({1, CORES, 8})]
    return Experiment("threads", "Several threads", size.forks, _cells(BESIDE, workloads))


def _busy(size: Size) -> Experiment:
    cells = _cells((*BESIDE, "otel-otlp"), [replace(_base(size), load=CORES)])
    return Experiment("busy", f"All cores kept busy by {CORES} other processes", size.forks, cells)


def _depth(size: Size) -> Experiment:
    workloads = [replace(_base(size), depth=depth) for depth in size.depths]
    return Experiment("depth", "Depth of the trace", size.forks_varied, _cells(BESIDE, workloads))


def _method_time(size: Size) -> Experiment:
    workloads = [replace(_base(size), method_us=time) for time in size.method_us]
    return Experiment("method-time", "Time of the method itself", size.forks_varied, _cells(BESIDE, workloads))


def _sustained(size: Size) -> Experiment:
    seconds = min(SUSTAINED_SECONDS, 12 * size.seconds)
    workload = Workload(seconds, seconds / 6, pace=SUSTAINED_PACE)
    title = f"{SUSTAINED_PACE:,} traces a second for {seconds:g} s to a durable server"
    return Experiment("sustained", title, max(1, size.forks // 3), _cells(("ours-server",), [workload]))


_MAKERS = {
    "configurations": _configurations,
    "paced": _paced,
    "threads": _threads,
    "busy": _busy,
    "depth": _depth,
    "method-time": _method_time,
    "sustained": _sustained,
}
EXPERIMENTS = tuple(_MAKERS)


def _base(size: Size) -> Workload:
    return Workload(size.seconds, size.seconds / 2)


def _cells(names: Iterable[str], workloads: Iterable[Workload]) -> tuple[Cell, ...]:
    names = tuple(dict.fromkeys(each for name in names for each in (name, before(name))))
    known = {setup.name: (framework, setup) for framework in FRAMEWORKS for setup in framework.setups}
    pairs: list[tuple[Framework, Setup]] = [known[name] for name in names]
    return tuple(Cell(framework, setup, workload) for workload in workloads for framework, setup in pairs)
