"""Summarises the processes of a cell in one row of figures.

Before: `figures.py`. After: `report.py`, `plot.py`, `targets.py`, `compare.py`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan
from statistics import fmean, median

from bench.common.statistic import Interval, Line, mean_interval, merge, quantile, ratio_interval, regression

VARIED = ("threads", "depth", "method_us")


@dataclass(frozen=True)
class Row:
    """A cell of a result, and the figures of its processes. Times are in us per trace."""

    cell: dict

    @property
    def setup(self) -> str:
        return self.cell["setup"]

    @property
    def workload(self) -> dict:
        return self.cell["workload"]

    @property
    def title(self) -> str:
        """Framework and setup. `detail` has the part of the workload that is varied."""
        return self.cell["title"] if self.setup == "none" else f"{self.cell['framework']}, {self.cell['title']}"

    @property
    def forks(self) -> list[dict]:
        return self.cell["forks"]

    @property
    def key(self) -> tuple:
        """Rows of different runs are comparable if their keys are equal. The duration of the processes may differ."""
        load = self.workload
        return (self.setup, *(load[name] for name in VARIED), load["pace"], load["load"])

    def detail(self, experiment: str) -> str:
        load = self.workload
        details = {
            "threads": f"{load['threads']} thread{'s' if load['threads'] > 1 else ''}",
            "depth": f"depth {load['depth']}",
            "method-time": f"{load['method_us']:g} us",
        }
        return details.get(experiment, "")

    def values(self, name: str) -> list[float]:
        """The figure of each process that has it."""
        return [fork[name] for fork in self.forks if fork.get(name) is not None]

    def mean(self, name: str) -> Interval:
        """Mean over the processes, with an interval of 95 % confidence."""
        return mean_interval(self.values(name))

    def middle(self, name: str) -> float:
        """Median of the processes; nan if no process has the figure."""
        values = self.values(name)
        return median(values) if values else nan

    def quantile_us(self, share: float) -> float:
        """Quantile in us of the traces of all processes together."""
        return quantile(merge([fork["histogram"] for fork in self.forks]), share) / 1e3

    def per_second(self) -> list[float]:
        """Traces in each whole second of each process."""
        return [count for fork in self.forks for count in fork["per_second"]]

    def faults(self) -> list[str]:
        """One text for each kind of fault. If only some processes have the fault, the text includes their number. If
        processes failed, the reason of the first failure follows."""
        texts: dict[str, list[str]] = {}
        for fork in self.forks:
            for text in fork["faults"]:
                texts.setdefault(_kind(text), []).append(text)
        count = len(self.forks)
        found = [
            text[len(text) // 2] + (f" ({len(text)} of {count})" if len(text) < count else "") for text in texts.values()
        ]
        return found + [f"FAILED: {failure}" for failure in self.cell["failures"][:1]]


def rows(experiment: dict) -> list[Row]:
    return [Row(cell) for cell in experiment["cells"] if cell["forks"]]


def by_name(result: dict, name: str) -> list[Row]:
    """Rows of the experiment with this name; empty if the experiment was not run."""
    return [row for experiment in result["experiments"] if experiment["name"] == name for row in rows(experiment)]


def find(all_rows: Iterable[Row], setup: str, **workload: float) -> Row | None:
    for row in all_rows:
        if row.setup == setup and all(row.workload[name] == value for name, value in workload.items()):
            return row
    return None


def unwatched(row: Row, all_rows: Sequence[Row]) -> Row | None:
    """The row of the program without an agent, under the same workload."""
    same = {name: row.workload[name] for name in (*VARIED, "pace", "load")}
    return find(all_rows, "none", **same)


def ratio(row: Row, to: Row, name: str) -> Interval:
    return ratio_interval(row.values(name), to.values(name))


def linearity(all_rows: Sequence[Row], setup: str) -> Line:
    """Median time of a trace as a function of its depth, one point per process."""
    return regression(
        [(float(row.workload["depth"]), fork["median_us"]) for row in all_rows if row.setup == setup for fork in row.forks]
    )


def stages(all_rows: Sequence[Row], name: str = "mean_us") -> list[tuple[str, dict[str, float]]]:
    """For each setup that writes records: the time of a trace without a framework (T), and the time that each of the stages
    I, C and W of `model.py` adds. Omitted are setups that switch the method, and all setups of a
    framework for which stage I or stage C was not measured.

    The added time of a stage is never below 0, because noise must not be drawn as a gain.
    """
    none = find(all_rows, "none")
    found = []
    for row in all_rows:
        if none is None or row.cell["stage"] != "T+I+C+W" or row.cell["switches"]:
            continue
        same = [other for other in all_rows if other.cell["framework"] == row.cell["framework"]]
        off, collect = (next((other for other in same if other.cell["stage"] == stage), None) for stage in ("T+I", "T+I+C"))
        if off is None or collect is None:
            continue
        levels = [fmean(other.values(name)) for other in (none, off, collect, row)]
        steps = [levels[0], *(max(0.0, later - earlier) for earlier, later in zip(levels, levels[1:]))]
        found.append((row.title, dict(zip("TICW", steps))))
    return found


def _kind(text: str) -> str:
    """The text of a fault without its numbers."""
    return "".join(letter for letter in text if not letter.isdigit() and letter not in ".+-e%")
