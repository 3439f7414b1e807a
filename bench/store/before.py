"""Compares this build with an earlier build in the same run, pair by pair.

A load writes the whole dataset once, into a new process, which is then asked all queries. The nth load of this build is paired with
the nth load of the earlier build, and so are the median latency of a class of queries and its processor time. Other activity of the
machine affects both values of a pair. Queries of one process are not independent, because its memory layout affects all of them.

A table has many figures, so some 95 % intervals exclude 1 by chance alone. A change is therefore reported only if it is significant
at 5 % over all figures of the table (Bonferroni): its interval at 1 - 5 % / figures excludes 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from ..common.statistic import CONFIDENCE, Interval, paired_ratio_interval
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
    ("MB anonymous, idle", "anonymous_idle", 1e-6, False),
    ("MB peak", "resident_peak", 1e-6, False),
    ("MB anonymous, settled", "anonymous_settled", 1e-6, False),
)
"""Name of a figure, its key, the factor to its unit, and whether the figure is per value. Memory is compared without the pages of
files: the resident memory of an idle process is mostly the code of the program, as far as the kernel has mapped it."""


@dataclass(frozen=True)
class Change:
    """The medians of both builds, and the mean ratio of this build to the earlier build."""

    what: str
    pairs: int
    before: float
    now: float
    ratio: Interval
    """With the confidence that the number of figures demands."""

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
    figures = [*_loads(experiment), *_queries(experiment)]
    strict = 1 - (1 - CONFIDENCE) / len(figures)
    return [
        Change(
            what,
            min(len(before), len(now)),
            median(before),
            median(now),
            paired_ratio_interval(now, before, strict),
        )
        for what, before, now in figures
    ]


def beside(experiment: dict) -> str:
    """The changes as Markdown. Empty if the run has no earlier build."""
    found = changes(experiment)
    if not found:
        return ""
    head = ("compared with the earlier build", "pairs", "before", "now", "ratio", "interval", "change")
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


Figure = tuple[str, list[float], list[float]]
"""Its name, its values of the earlier build, and its values of this build."""


def _loads(experiment: dict) -> Iterator[Figure]:
    turns = experiment["turns"]
    for what, name, unit, is_of_a_value in LOADS:
        unit /= experiment["values"] if is_of_a_value else 1
        yield what, *([turn[name] * unit for turn in turns[system]] for system in (BEFORE, OURS))


def _queries(experiment: dict) -> Iterator[Figure]:
    for group, row in experiment["queries"].items():
        if row[OURS]["processes"] and row[BEFORE]["processes"]:
            before, now = (row[system]["processes"] for system in (BEFORE, OURS))
            yield f"{group}, CPU ms", *([seconds * 1e3 for _, seconds in processes] for processes in (before, now))
            yield f"{group}, ms", *([ms for ms, _ in processes] for processes in (before, now))
