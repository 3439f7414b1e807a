"""Computes the figures and faults of one process from its output and the receiver's counts. Before: `fork.py`. After:
`summary.py`."""

import os
from collections.abc import Sequence
from math import nan

from .model import Cell, Stage, Takes
from bench.common.statistic import quantile, steady_from

CALLS_BESIDE_MAX = 16
"""Allowed number of additional calls per thread: constructors and similar calls, which some frameworks record too."""
LOSS_MAX = 1e-6
STALL_FACTOR = 10
"""A trace that takes longer than this multiple of the median counts as a stall."""
SATURATED_SHARE = 0.2
"""If stalls take more than this share of the time of all traces, the writer determines the speed, not the probe."""
SWITCHED_CALLS_SHARE_MAX = 0.01
LATE_SHARE_MAX = 0.01
QUARTER_SECONDS_MIN = 5
"""If a quarter of the receiver's time has fewer seconds, the memory growth is unknown, because a server first fills its
buffers."""
CLOCK_STEP_NS = 10.0
"""Step of `System.nanoTime` on many machines. A change by one step does not count as warm-up, although the step is
more than 5 % of a trace of 80 ns."""


def figures(cell: Cell, said: dict, arrived: dict) -> dict:
    """The figures of one process. The times of `bins` are in us, those of `histogram` in ns; both are kept for
    drawings and for quantiles over all processes."""
    first = said["first_bin"]
    counts, sums = said["bin_counts"], said["bin_sums"]
    traces = sum(counts[first:])
    if traces == 0:
        raise RuntimeError("no trace ended after the warm-up")
    seconds = (said["millis"] - said["warm_up_millis"]) / 1e3
    histogram = said["histogram"]
    found = {
        "traces": traces,
        "traces_made": said["traces"],
        "mean_us": sum(sums[first:]) / traces / 1e3,
        **{name: quantile(histogram, share) / 1e3 for name, share in _QUANTILES.items()},
        "longest_us": said["longest_ns"] / 1e3,
        "traces_per_s": traces / seconds,
        "per_second": _per_second(counts, said["millis"], first),
        **_costs(said, traces, seconds),
        "stall_share": stall_share(histogram),
        "late_share": said["late"] / said["traces"],
        "steady_s": _steady_seconds(said),
        **_arrivals(cell, said, arrived),
        "bins": [[count, round(total / count / 1e3, 4) if count else None] for count, total in zip(counts, sums)],
        "bin_s": said["millis"] / 1e3 / len(counts),
        "first_bin": first,
        "histogram": histogram,
        "java": said["java"],
        "jvm": said["jvm"],
    }
    return found | {"faults": faults(cell, said, found, arrived)}


_QUANTILES = {"q1_us": 0.25, "median_us": 0.5, "q3_us": 0.75, "p95_us": 0.95, "p99_us": 0.99}


def _costs(said: dict, traces: int, seconds: float) -> dict:
    """Resources per trace, except the collections and their pauses, which are totals. `cpu_ns` and `all_bytes` of the whole
    process are read at slightly other times than those at which the measured bins begin and end. So these figures are
    scaled to the length of the bins."""
    share = seconds * 1e9 / max(1, said["wall_ns"])
    cpu = said["cpu_ns"] * share / traces / 1e3
    app_cpu = said["app_cpu_ns"] / traces / 1e3
    return {
        "cpu_us": cpu,
        "app_cpu_us": app_cpu,
        "agent_cpu_us": max(0.0, cpu - app_cpu),
        "app_bytes": said["app_bytes"] / traces,
        "all_bytes": max(0, said["all_bytes"]) * share / traces,
        "collections": said["collections"],
        "pause_ms": said["pause_ms"],
    }


def _arrivals(cell: Cell, said: dict, arrived: dict) -> dict:
    """Calls made, arrived and lost; bytes and receiver's CPU time per trace; memory of the receiver. All include the
    warm-up."""
    made = said["traces"] * cell.workload.depth
    calls = arrived["calls"]
    counts = calls is not None and not cell.setup.switches
    return {
        "calls_made": made,
        "calls_arrived": calls,
        "loss_share": max(0, made - calls) / made if counts else None,
        "told_dropped_share": max(arrived["dropped"], said["dropped"], 0) / made,
        "sink_bytes": arrived["bytes"] * cell.workload.depth / calls if counts and calls and arrived["bytes"] else None,
        "disk_bytes": arrived["disk_bytes"] * cell.workload.depth / calls if counts and calls else None,
        "receiver_cpu_us": arrived["cpu_seconds"] * 1e6 / said["traces"] if arrived["cpu_seconds"] else None,
        "receiver_resident_peak": arrived["resident_peak"] or None,
        "receiver_resident_settled": arrived["resident_settled"] or None,
        "receiver_growth": _growth(arrived["resident"]),
    }


def _growth(resident: Sequence[int]) -> float | None:
    """Peak memory of the last quarter of the time relative to that of the second quarter; None if a quarter is too
    short."""
    quarter = len(resident) // 4
    return max(resident[-quarter:]) / max(resident[quarter : 2 * quarter]) if quarter >= QUARTER_SECONDS_MIN else None


def faults(cell: Cell, said: dict, found: dict, arrived: dict) -> list[str]:
    """Reasons why the figures may be misleading. The texts are short, for the lists of the report."""
    texts = []
    if arrived["fault"]:
        texts.append(f"the sink could not continue reading: {arrived['fault']}")
    if found["loss_share"] is not None and found["loss_share"] > LOSS_MAX:
        texts.append(f"lost {found['loss_share'] * 100:.3g} % of the calls")
    elif cell.setup.takes is Takes.NOBODY and found["told_dropped_share"] > LOSS_MAX:
        texts.append(f"dropped {found['told_dropped_share'] * 100:.3g} % of the calls")
    if arrived["calls"] is not None and arrived["calls"] > found["calls_made"] + CALLS_BESIDE_MAX * cell.workload.threads:
        texts.append(f"{arrived['calls'] - found['calls_made']} more calls arrived than were made")
    if cell.setup.switches and not arrived["switched"]:
        texts.append("the agent did not switch the method")
    elif cell.setup.switches and arrived["calls"] > SWITCHED_CALLS_SHARE_MAX * found["calls_made"]:
        texts.append(f"{arrived['calls']} calls were recorded although the method was switched")
    if found["stall_share"] > SATURATED_SHARE and _waits_for_nothing_else(cell):
        texts.append(f"saturated: {found['stall_share'] * 100:.0f} % of the time in stalls")
    if found["steady_s"] is None or found["steady_s"] > said["warm_up_millis"] / 1e3:
        texts.append("not steady after the warm-up")
    if found["late_share"] > LATE_SHARE_MAX:
        texts.append(f"{found['late_share'] * 100:.0f} % of the traces began late")
    return texts


def _waits_for_nothing_else(cell: Cell) -> bool:
    """Whether the setup has a writer, and no thread waits for a core. Only then the writer causes the stalls."""
    load = cell.workload
    return cell.setup.stage is Stage.W and load.load == 0 and load.threads <= (os.cpu_count() or 1)


def stall_share(histogram: list) -> float:
    """Share of the time in traces that take more than ten times the median."""
    limit = STALL_FACTOR * max(1.0, quantile(histogram, 0.5))
    total = sum(value * count for value, count in histogram)
    return sum(value * count for value, count in histogram if value > limit) / total if total else 0.0


def _per_second(counts: list[int], millis: int, first: int) -> list[float]:
    bins_a_second = len(counts) * 1e3 / millis
    seconds, start = [], float(first)
    while start + bins_a_second <= len(counts) + 1e-9:
        seconds.append(float(sum(counts[round(start) : round(start + bins_a_second)])))
        start += bins_a_second
    return seconds


def _steady_seconds(said: dict) -> float | None:
    """Uses the medians of the bins, so that single long calls do not count as warm-up."""
    medians = [float(value) if count else nan for value, count in zip(said["bin_medians"], said["bin_counts"])]
    found = steady_from(medians, CLOCK_STEP_NS)
    return None if found is None else found * said["millis"] / 1e3 / len(medians)
