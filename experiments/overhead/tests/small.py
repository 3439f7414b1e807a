"""Results for tests: the output of a process, the figures of a process, and the result of a run."""

from pathlib import Path

from ..figures import figures
from ..frameworks import FRAMEWORKS
from ..model import Cell, Workload

MACHINE = {"processor": "p", "cores": 2, "memory_bytes": 2**30, "system": "s"}
BINS = 1_000
ARRIVED = {
    "calls": None,
    "bytes": 0,
    "dropped": 0,
    "switched": 0,
    "cpu_seconds": 0.0,
    "resident_peak": 0,
    "resident_settled": 0,
    "resident": (),
    "disk_bytes": 0,
    "fault": "",
}


def cell(setup: str, **workload: float) -> Cell:
    """By default a process runs for ten seconds, and the last five seconds are measured."""
    for framework in FRAMEWORKS:
        for each in framework.setups:
            if each.name == setup:
                return Cell(framework, each, Workload(**{"seconds": 10.0, "warm_up_seconds": 5.0} | workload))
    raise KeyError(setup)


def said(time_ns: int = 1_000, **changes: object) -> dict:
    """A process with 100 traces of the same duration in each bin, so that the process is steady from the start."""
    return {
        "millis": 10_000,
        "warm_up_millis": 5_000,
        "first_bin": 500,
        "traces": 100 * BINS,
        "late": 0,
        "dropped": -1,
        "longest_ns": time_ns,
        "wall_ns": 5_000_000_000,
        "cpu_ns": 200_000_000,
        "app_cpu_ns": 100_000_000,
        "app_bytes": 0,
        "all_bytes": 50_000,
        "collections": 0,
        "pause_ms": 0,
        "bin_counts": [100] * BINS,
        "bin_sums": [100 * time_ns] * BINS,
        "bin_medians": [time_ns] * BINS,
        "histogram": [[time_ns, 50_000]],
        "java": "17",
        "jvm": "vm",
        **changes,
    }


def fork(of: Cell, time_ns: int = 1_000, arrived: dict | None = None, **changes: object) -> dict:
    """The figures of one process on an idle machine. By default all calls arrived at the sink, or none if
    the setup switches the method."""
    everything = {"calls": 100 * BINS * of.workload.depth, "bytes": 5_300_000} if of.setup.sink else {}
    if of.setup.switches:
        everything = {"calls": 0, "switched": 1}
    seen = ARRIVED | everything | (arrived or {})
    found = figures(of, said(time_ns, **changes), seen)
    return found | {"turn": 0, "waited_s": 0.5, "others_cores_before": 0.0, "others_cores": 0.0}


def entry(of: Cell, forks: list[dict], failures: tuple[str, ...] = ()) -> dict:
    return of.plain() | {"forks": forks, "failures": list(failures)}


def result(**experiments: list[dict]) -> dict:
    """A result with these cells, by name of the experiment."""
    return {
        "begun": "now",
        "machine": MACHINE,
        "java": "openjdk 17",
        "load_average_before": 0.1,
        "options": {},
        "versions": {"none": "-", "ours": "0.1.0", "kieker": "2.0.2"},
        "not_measured": {},
        "notes": {"Tachograph": ["a note"]},
        "experiments": [
            {"name": name.replace("_", "-"), "title": name, "cells": cells} for name, cells in experiments.items()
        ],
    }


def typical() -> dict:
    """The program without an agent and three configurations of each of two frameworks, with three processes each; and two of
    these setups at three depths, with one process each."""
    times = {
        "none": 88,
        "ours-off": 90,
        "ours-collect": 700,
        "ours-sink": 900,
        "kieker-off": 104,
        "kieker-collect": 1_500,
        "kieker-tcp": 4_460,
    }
    cells = [entry(cell(name), [fork(cell(name), time + number) for number in (-1, 0, 1)]) for name, time in times.items()]
    depths = [
        entry(cell(name, depth=depth), [fork(cell(name, depth=depth), per_call * depth + 20)])
        for name, per_call in (("none", 1), ("ours-sink", 90))
        for depth in (1, 10, 100)
    ]
    return result(configurations=cells, depth=depths)


NOWHERE = Path("/nowhere")
