"""The targets, and whether they are reached: comparisons with a figure, or with the best peer of the same run."""

from dataclasses import dataclass, replace
from math import isnan, nan
from statistics import median

OURS = "tacho"
BEFORE = "tacho-before"
"""An earlier build of Tachograph, which is not a peer."""
CPU_US_A_VALUE_MAX = 0.15
BYTES_A_VALUE_MAX = {"a": 0.285, "b": 0.20}
QUERY_RATIO_MAX = 0.5
MEMORY_RATIO_MAX = 1.0


@dataclass(frozen=True)
class Verdict:
    """`best` is the figure of the best peer, nan without a peer."""

    aim: str
    ours: float
    limit: float
    best: float
    peer: str
    wrong: bool = False
    """Whether Tachograph returned wrong results, so that the target is not reached."""

    @property
    def reached(self) -> bool:
        return not self.wrong and self.ours <= self.limit

    @property
    def ratio(self) -> float:
        return self.ours / self.best if self.best else nan


def verdicts(experiment: dict) -> list[Verdict]:
    """For all targets that this experiment measures. Empty without Tachograph."""
    if OURS not in experiment["loads"]:
        return []
    peers = experiment | {"loads": _without_before(experiment["loads"])}
    queries = (_query_verdict(name, _without_before(row)) for name, row in experiment["queries"].items())
    return _load_verdicts(peers) + [verdict for verdict in queries if verdict]


def _without_before(row: dict) -> dict:
    return {name: cost for name, cost in row.items() if name != BEFORE}


def _load_verdicts(experiment: dict) -> list[Verdict]:
    loads, values, work = experiment["loads"], experiment["values"], experiment["work"]
    verdicts = []
    if work == "a":
        written, settling = (_figures(loads, name, 1e6 / values) for name in ("cpu_seconds", "settle_cpu_seconds"))
        both = {name: written[name] + settling[name] for name in written}
        verdicts.append(compare("CPU us per value, written", written, limit=CPU_US_A_VALUE_MAX))
        verdicts.append(compare("CPU us per value, written and settled", both, limit=CPU_US_A_VALUE_MAX))
    if work == "a" or "P4" in experiment["title"]:
        figures = _figures(loads, "disk_bytes", 1 / values)
        verdicts.append(compare("bytes per value, settled", figures, limit=BYTES_A_VALUE_MAX[work]))
    for name, aim in (("resident_peak", "peak memory, MB"), ("resident_settled", "memory after settling, MB")):
        verdicts.append(compare(aim, _figures(loads, name, 1e-6), ratio_max=MEMORY_RATIO_MAX))
    return verdicts


def _query_verdict(name: str, row: dict) -> Verdict | None:
    """None if Tachograph has no figure, or no peer has one. Peers with wrong results are ignored."""
    measured = {system: cost for system, cost in row.items() if cost["latencies_ms"]}
    figures = {
        system: median(cost["latencies_ms"]) for system, cost in measured.items() if system == OURS or not cost["wrong"]
    }
    if OURS not in figures or len(figures) == 1:
        return None
    verdict = compare(f"{name}, median ms", figures, ratio_max=QUERY_RATIO_MAX)
    return replace(verdict, wrong=row[OURS]["wrong"] > 0)


def compare(aim: str, figures: dict[str, float], limit: float = nan, ratio_max: float = nan) -> Verdict:
    """Compares a figure of Tachograph with a limit, or with a share of the best peer's figure."""
    best, peer = min(((figure, name) for name, figure in figures.items() if name != OURS), default=(nan, "none"))
    return Verdict(aim, figures[OURS], best * ratio_max if isnan(limit) else limit, best, peer)


def _figures(loads: dict, name: str, unit: float) -> dict[str, float]:
    return {system: cost[name] * unit for system, cost in loads.items()}
