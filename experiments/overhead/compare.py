"""Compares a run with an earlier run. Which changes are larger than noise?"""

from dataclasses import dataclass
from enum import Enum
from math import isfinite

from bench.common.table import table

from .report import bounds, figure
from bench.common.statistic import Interval, ratio_interval
from .summary import Row, rows

CONFIDENCE = 0.99
"""Confidence of the intervals. Dozens of ratios are compared, so at 95 % some ratios would appear to change in every
run."""
CHANGE_MIN = 0.02
"""A smaller change is not significant, even if its interval excludes 1, because memory layout alone causes changes of
this size."""
MEASURES = (
    ("mean us", "mean_us", False),
    ("median us", "median_us", False),
    ("traces/s", "traces_per_s", True),
    ("CPU us", "cpu_us", False),
    ("B sent", "sink_bytes", False),
)
"""Name of a figure, its key, and whether more is better."""


class Change(Enum):
    NONE = "-"
    BETTER = "better"
    WORSE = "WORSE"
    UNKNOWN = "too few processes"


@dataclass(frozen=True)
class Difference:
    """`ratio` is the new value divided by the old value."""

    what: str
    measure: str
    before: float
    now: float
    ratio: Interval
    change: Change


def halves(result: dict) -> tuple[dict, dict] | None:
    """Splits a run with an earlier build of our agent into two: the results without the earlier build, and the
    results of the earlier build, relabelled as results of our agent. Returns None if the run has no earlier build."""
    experiments = result["experiments"]
    earlier = [each | {"cells": [_as_ours(cell) for cell in each["cells"] if _is_before(cell)]} for each in experiments]
    if not any(each["cells"] for each in earlier):
        return None
    own = [each | {"cells": [cell for cell in each["cells"] if not _is_before(cell)]} for each in experiments]
    return result | {"experiments": own}, result | {"experiments": earlier, "begun": f"{result['begun']}, the agent before"}


def _is_before(cell: dict) -> bool:
    return cell["setup"].startswith("before-")


def _as_ours(cell: dict) -> dict:
    return cell | {"setup": cell["setup"].replace("before-", "ours-", 1), "framework": "Tachograph"}


def differences(result: dict, before: dict) -> list[Difference]:
    """The differences for every cell that is in both runs."""
    old = {(experiment["name"], row.key): row for experiment in before["experiments"] for row in rows(experiment)}
    found = []
    for experiment in result["experiments"]:
        for row in rows(experiment):
            if earlier := old.get((experiment["name"], row.key)):
                found += _differences(experiment["name"], row, earlier)
    return found


def _differences(experiment: str, row: Row, earlier: Row) -> list[Difference]:
    what = ", ".join(text for text in (experiment, row.title, row.detail(experiment)) if text)
    found = []
    for measure, name, more_is_better in MEASURES:
        new, old = row.values(name), earlier.values(name)
        if new and old:
            ratio = ratio_interval(new, old, CONFIDENCE)
            change = judge(ratio, more_is_better)
            found.append(Difference(what, measure, earlier.middle(name), row.middle(name), ratio, change))
    return found


def judge(ratio: Interval, more_is_better: bool) -> Change:
    """A change must exceed noise and be large enough to matter. Returns `UNKNOWN` if the interval is unknown."""
    if not isfinite(ratio.high) or not ratio.low > 0:
        return Change.UNKNOWN
    if ratio.holds(1.0) or abs(ratio.value - 1) < CHANGE_MIN:
        return Change.NONE
    return Change.BETTER if (ratio.value > 1) == more_is_better else Change.WORSE


def compare(result: dict, before: dict) -> str:
    """Returns Markdown."""
    found = differences(result, before)
    if not found:
        return f"## Compared with the run of {before['begun']}\n\nThe two runs have nothing in common.\n"
    lines = [
        (
            each.what,
            each.measure,
            figure(each.before),
            figure(each.now),
            figure(each.ratio.value),
            bounds(each.ratio),
            each.change.value,
        )
        for each in found
    ]
    head = ("configuration", "", "then", "now", "ratio", f"{CONFIDENCE:.0%}", "change")
    changes = [sum(each.change is change for each in found) for change in (Change.WORSE, Change.BETTER)]
    return "\n\n".join(
        (
            f"## Compared with the run of {before['begun']}",
            *_warnings(result, before),
            f"{changes[0]} worse, {changes[1]} better of {len(found)} figures. Ratios of geometric means over processes; a "
            f"figure is better or worse if its {CONFIDENCE:.0%} interval excludes 1 and the change is at least {CHANGE_MIN:.0%}.",
            table(head, lines) + "\n",
        )
    )


def _warnings(result: dict, before: dict) -> list[str]:
    """Differences between the machines and versions, which may cause differences between the figures."""
    found = []
    for name, new, old in (
        ("the processor", result["machine"]["processor"], before["machine"]["processor"]),
        ("the cores", result["machine"]["cores"], before["machine"]["cores"]),
        ("the JVM", result["java"], before["java"]),
        *(
            (f"the version of {name}", version, before["versions"][name])
            for name, version in result["versions"].items()
            if name in before["versions"]
        ),
    ):
        if new != old:
            found.append(f"- {name}: {old} then, {new} now")
    return ["Other differences:\n\n" + "\n".join(found)] if found else []
