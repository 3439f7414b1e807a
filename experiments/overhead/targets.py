"""The targets, and whether they were reached. All targets are for two cores and depth 10, as the published figures
are."""

from dataclasses import dataclass
from math import isnan, nan

from bench.common.statistic import ratio_interval
from .summary import Row, by_name, find

THREADS_COST_RATIO_MAX = 1.2
GROWTH_MAX = 1.25
PUBLISHED = (
    ("collecting, no writer", "ours-collect", "kieker-collect", 0.463, 0.0447),
    ("writing", "ours-sink", "kieker-file", 1.0, 0.0447),
)
"""Figures from Kieker's own page of November 2025 (Byte Buddy, a GitHub runner), us per trace: instrumented, and
uninstrumented."""


@dataclass(frozen=True)
class Verdict:
    """`limit` is the maximum or, if `at_least` is true, the minimum."""

    aim: str
    found: float
    limit: float
    at_least: bool = False
    spoilt: str = ""
    """Reason why the target is missed with any figure, such as lost calls."""

    @property
    def outcome(self) -> str:
        if isnan(self.found):
            return "-"
        if self.spoilt:
            return f"MISSED: {self.spoilt}"
        reached = self.found >= self.limit if self.at_least else self.found <= self.limit
        return "reached" if reached else "MISSED"


def verdicts(result: dict) -> list[Verdict]:
    """One verdict for each target that this run can evaluate."""
    configurations, paced = by_name(result, "configurations"), by_name(result, "paced")
    none, off, collect, sink = (find(configurations, name) for name in ("none", "ours-off", "ours-collect", "ours-sink"))
    found = []
    if none and off:
        difference = off.middle("median_us") - none.middle("median_us")
        found.append(_verdict(off, "switched off: median above uninstrumented, us", difference, 0.01))
    if collect:
        found.append(_verdict(collect, "collecting: median us", collect.middle("median_us"), 0.80))
    if sink:
        found += [
            _verdict(sink, f"to a sink: {aim}", sink.middle(name), limit, at_least) for aim, name, limit, at_least in _SINK
        ]
    if paced_server := find(paced, "ours-server"):
        found.append(_verdict(paced_server, "to a server, paced: median us", paced_server.middle("median_us"), 0.95))
    return found + _sustained(result) + _threads(result)


_SINK = (
    ("median us", "median_us", 0.95, False),
    ("mean us", "mean_us", 1.1, False),
    ("CPU us of the whole process", "cpu_us", 1.8, False),
    ("traces/s", "traces_per_s", 900_000, True),
    ("bytes a trace", "sink_bytes", 100, False),
    ("garbage on the program's threads, bytes a trace", "app_bytes", 0.5, False),
)


def _sustained(result: dict) -> list[Verdict]:
    row = find(by_name(result, "sustained"), "ours-server")
    if row is None:
        return []
    wanted = 0.99 * row.workload["pace"]
    growth = "to a durable server, sustained: its memory in the last quarter relative to the second"
    return [
        _verdict(row, "to a durable server, sustained: traces/s", row.middle("traces_per_s"), wanted, True),
        _verdict(row, growth, row.middle("receiver_growth"), GROWTH_MAX),
    ]


def _threads(result: dict) -> list[Verdict]:
    """Compares processor time, because with more threads than cores the wall clock includes waiting."""
    rows = by_name(result, "threads")
    cores = result["machine"]["cores"]
    eight, few = find(rows, "ours-sink", threads=8), find(rows, "ours-sink", threads=cores)
    if eight is None or few is None:
        return []
    ratio = eight.middle("app_cpu_us") / few.middle("app_cpu_us")
    aim = f"8 threads on {cores} cores: CPU a trace on the program's threads, ratio"
    return [_verdict(eight, aim, ratio, THREADS_COST_RATIO_MAX)]


def _verdict(row: Row, aim: str, found: float, limit: float, at_least: bool = False) -> Verdict:
    lost = [text for text in row.faults() if text.startswith(("lost", "dropped", "the "))]
    return Verdict(aim, found, limit, at_least, lost[0] if lost else "")


def published(result: dict) -> list[tuple[str, str, float, float, float]]:
    """For each stage a row for our setup and a row for Kieker's: the stage, the setup, its ratio to uninstrumented in
    this run (by the mean), Kieker's published ratio, and the first ratio divided by the second."""
    rows = by_name(result, "configurations")
    none = find(rows, "none")
    found = []
    for stage, ours, kieker, watched_us, alone_us in PUBLISHED:
        for name in (ours, kieker):
            row = find(rows, name)
            if row and none:
                here = ratio_interval(row.values("mean_us"), none.values("mean_us")).value
                there = watched_us / alone_us
                found.append((stage, row.title, here, there, here / there if there else nan))
    return found
