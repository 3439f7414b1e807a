"""The aims for many series, and whether they are reached. Peers are those of the same run."""

from math import nan
from statistics import fmean

from .calls import report as calls_report
from ..store.targets import BEFORE, OURS, Verdict, compare

CPU_RATIO_MAX = 0.5
CPU_GROWTH_MAX = 1.1
MEMORY_RATIO_MAX = 0.7
DISK_RATIO_MAX = 0.7
READY_SECONDS_MAX = 2.0
START_SECONDS_MAX = 1.0
STALL_MS_MAX = 250.0
MEMORY_BYTES_A_SERIES_MAX = 250.0
MANY_SERIES = 10_000_000
MANY_MEMORY_MB_MAX = 4_096.0


def cpu_us(cost: dict, series: int) -> list[float]:
    """Processor time per sample in us, by round, including work in the background until the next round."""
    at = [each["cpu_seconds_at_start"] for each in cost["rounds"]] + [cost["cpu_seconds_after"]]
    return [(after - before) / series * 1e6 for before, after in zip(at, at[1:])]


def series_bytes(cost: dict, series: int) -> float:
    """Memory of an active series, without the memory of an empty system."""
    return (cost["resident"] - cost["resident_idle"]) / series


def stall_ms(cost: dict) -> float:
    return max(each["small_seconds_max"] for each in cost["rounds"]) * 1e3


def verdicts(work: dict) -> list[Verdict]:
    """For all aims that this workload measures. Empty without Tachograph."""
    if work["work"] == "calls":
        return calls_report.verdicts(work)
    systems = {name: cost for name, cost in work["systems"].items() if name != BEFORE}
    if OURS not in systems:
        return []
    series = work["series"]

    def figures(name: str, unit: float = 1.0) -> dict[str, float]:
        return {system: cost[name] * unit for system, cost in systems.items()}

    ours = systems[OURS]
    found = [
        _worst_round({name: cpu_us(cost, series) for name, cost in systems.items()}),
        _growth(cpu_us(ours, series)),
        compare("memory after the rounds, MB", figures("resident", 1e-6), ratio_max=MEMORY_RATIO_MAX),
        compare(
            "memory above idle, bytes per series",
            {name: series_bytes(cost, series) for name, cost in systems.items()},
            limit=MEMORY_BYTES_A_SERIES_MAX,
        ),
        compare("disk after a stop, MB", figures("disk_bytes_stopped", 1e-6), ratio_max=DISK_RATIO_MAX),
        compare("ready after kill -9, s", figures("ready_after_kill_seconds"), limit=READY_SECONDS_MAX),
        compare("ready after a stop, s", figures("ready_after_stop_seconds"), limit=START_SECONDS_MAX),
        compare("longest write of one sample, ms", {n: stall_ms(c) for n, c in systems.items()}, limit=STALL_MS_MAX),
    ]
    if series >= MANY_SERIES:
        found.append(compare("10 million series, peak MB", figures("resident_peak", 1e-6), limit=MANY_MEMORY_MB_MAX))
    return [Verdict(v.aim, v.ours, v.limit, v.best, v.peer, wrong=bool(ours["faults"])) for v in found]


def not_measured(works: list[dict]) -> list[str]:
    """The aims that these workloads do not measure, each with options to measure it; not the aims of `--work queries`."""
    missing = []
    if all(work.get("series", 0) < MANY_SERIES for work in works):
        missing.append(f"10 million active series within 4 GB: --work lines --series {MANY_SERIES} --rounds 3")
    for name, aim in (("lines", "line protocol"), ("remote", "remote write"), ("churn", "churn of series"), ("calls", "calls")):
        if name not in {work["work"] for work in works}:
            missing.append(f"{aim}: --work {name}")
    return missing


def _worst_round(by_system: dict[str, list[float]]) -> Verdict:
    """The round in which Tachograph takes the most processor time compared with the best peer."""
    rounds = [dict(zip(by_system, figures)) for figures in zip(*by_system.values())]
    each = [
        compare(f"CPU us per sample, worst round ({number})", figures, ratio_max=CPU_RATIO_MAX)
        for number, figures in enumerate(rounds, 1)
    ]
    return max(each, key=lambda verdict: verdict.ours / verdict.best if verdict.best > 0 else verdict.ours)


def _growth(rounds: list[float]) -> Verdict:
    """The cost of the last quarter of the rounds compared with the second quarter."""
    quarter = len(rounds) // 4
    growth = fmean(rounds[-quarter:]) / fmean(rounds[quarter : 2 * quarter]) if quarter else nan
    limit = CPU_GROWTH_MAX if quarter else nan
    return Verdict("CPU per sample, last quarter / second quarter of the rounds", growth, limit, nan, "none")
