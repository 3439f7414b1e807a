"""Compares this build with an earlier build in the same run, pair by pair.

A load writes the whole dataset once. The nth load of this build is paired with the nth load of the earlier build, and a query
with the same query to the earlier build. The processor time of queries is measured for a whole turn of up to ten queries, so it
is paired by turn. Other activity of the machine affects both values of a pair.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from ..common.statistic import Interval, paired_ratio_interval
from ..common.table import table
from .targets import BEFORE, OURS

CHANGE_MIN = 0.02
"""A smaller change is not significant, even if its interval excludes 1, because memory layout alone causes changes of
this size."""
LOADS = (
    ("CPU us/value, written", "cpu_seconds", 1e6, True),
    ("CPU us/value, settling", "settle_cpu_seconds", 1e6, True),
    ("bytes/value", "disk_bytes", 1.0, True),
    ("bytes/value, before settling", "disk_bytes_live", 1.0, True),
    ("MB idle", "resident_idle", 1e-6, False),
    ("MB peak", "resident_peak", 1e-6, False),
    ("MB settled", "resident_settled", 1e-6, False),
)
"""Name of a figure, its key, the factor to its unit, and whether the figure is per value."""


@dataclass(frozen=True)
class Change:
    """The medians of both builds, and the mean ratio of this build to the earlier build."""

    what: str
    pairs: int
    before: float
    now: float
    ratio: Interval

    @property
    def verdict(self) -> str:
        """Lower is better for every figure."""
        if self.ratio.holds(1.0) or abs(self.ratio.value - 1) < CHANGE_MIN:
            return "-"
        return "WORSE" if self.ratio.value > 1 else "better"


def changes(experiment: dict) -> list[Change]:
    """Empty if the run has no earlier build."""
    if not {OURS, BEFORE} <= set(experiment["loads"]):
        return []
    return [*_loads(experiment), *_queries(experiment)]


def beside(experiment: dict) -> str:
    """The changes as Markdown. Empty if the run has no earlier build."""
    found = changes(experiment)
    if not found:
        return ""
    head = ("compared with the earlier build", "pairs", "before", "now", "ratio", "95 %", "change")
    return table(
        head,
        [
            (
                each.what,
                str(each.pairs),
                f"{each.before:.4g}",
                f"{each.now:.4g}",
                f"{each.ratio.value:.3f}",
                f"{each.ratio.low:.3f}..{each.ratio.high:.3f}",
                each.verdict,
            )
            for each in found
        ],
    )


def _loads(experiment: dict) -> Iterator[Change]:
    turns = experiment["turns"]
    for what, name, unit, is_of_a_value in LOADS:
        unit /= experiment["values"] if is_of_a_value else 1
        yield _change(what, *([turn[name] * unit for turn in turns[system]] for system in (BEFORE, OURS)))


def _queries(experiment: dict) -> Iterator[Change]:
    for group, row in experiment["queries"].items():
        if row[OURS]["latencies_ms"] and row[BEFORE]["latencies_ms"]:
            cpu = (row[system]["turns_cpu_seconds"] for system in (BEFORE, OURS))
            yield _change(f"{group}, CPU ms per turn", *([seconds * 1e3 for seconds in turns] for turns in cpu))
            yield _change(f"{group}, ms", *(row[system]["latencies_ms"] for system in (BEFORE, OURS)))


def _change(what: str, before: list[float], now: list[float]) -> Change:
    pairs = min(len(before), len(now))
    return Change(what, pairs, median(before), median(now), paired_ratio_interval(now, before))
