"""Measures how costs of Tachograph grow: `python3 -m bench.scale.curves`, some minutes. Writes `raw.json` and `report.md` to
`bench-results/curves-<time>/`. `docs/scale-one-machine.md` has the rows of the report, divided into three tables.

Each curve varies one size and keeps the others. The exponent is the slope of a line through the logarithms: 1 means that the cost
is proportional to the size. On a busy machine, processor times are valid, but wall times are not.
"""

import argparse
import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from math import log
from pathlib import Path
from statistics import linear_regression, median

from ..common.machine import load_average
from ..common.table import table
from ..store.data.devops import devops
from ..store.measure import load
from ..store.systems import Tacho
from ..store.targets import OURS
from .aims import cpu_us, series_bytes, stall_ms
from .queries.asked import heavy_request, light
from .queries.work import on_one_core

HOSTS, HOURS, SEED = 100, 24, 123
REPEATS = 9
SECONDS_A_STEP = 3.0
CLIENTS = (1, 2, 4, 8, 16)
HOST_STEPS = (12, 25, 50, 100)
HOUR_STEPS = (3, 6, 12, 24)

Curve = dict


def exponent(points: list[tuple[float, float]]) -> float:
    """The slope of the costs over the sizes, both as logarithms. Ignores costs of 0, which are below one tick of the clock."""
    points = [(size, cost) for size, cost in points if cost > 0]
    if len(points) < 2:
        return float("nan")
    return linear_regression([log(size) for size, _ in points], [log(cost) for _, cost in points]).slope


def curve(title: str, unit: str, points: list[tuple[float, float]]) -> Curve:
    print(f"  {title}: {points}", flush=True)
    return {"title": title, "unit": unit, "points": points, "exponent": exponent(points)}


def cpu_ms(system: Tacho, requests: list) -> float:
    """Processor time per request, after a request that is not measured."""
    with system.client() as client:
        client.send(requests[0])
        before = system.cpu_seconds()
        for request in requests:
            client.send(request)
        return (system.cpu_seconds() - before) * 1e3 / len(requests)


def of_hosts(system: Tacho, hosts: int) -> float:
    """Processor ms of the heavy question about the first `hosts` hosts."""
    return cpu_ms(system, [heavy_request(system, hosts=hosts)] * REPEATS)


def of_hours(system: Tacho, hours: int) -> float:
    """Processor ms of the heavy question about the first `hours` hours."""
    return cpu_ms(system, [heavy_request(system, hours=hours)] * REPEATS)


def at_once(system: Tacho, clients: int) -> tuple[float, float]:
    """Processor ms of a light question, and questions per second, with several clients without pauses."""
    request, counts, ended = system.request(light(system)), [0] * clients, threading.Event()

    def ask(nth: int) -> None:
        with system.client() as client:
            while not ended.is_set():
                client.send(request)
                counts[nth] += 1

    threads = [threading.Thread(target=ask, args=(nth,)) for nth in range(clients)]
    before, began = system.cpu_seconds(), time.perf_counter()
    for thread in threads:
        thread.start()
    ended.wait(SECONDS_A_STEP)
    ended.set()
    for thread in threads:
        thread.join()
    total = sum(counts)
    return (system.cpu_seconds() - before) * 1e3 / total, total / (time.perf_counter() - began)


def write_cost(cache: Path, folder: Path, hosts: int) -> tuple[float, float, float]:
    """Writes the data of `hosts` hosts. Returns processor seconds, resident MB and MB on disk."""
    system = Tacho(cache, folder, devops(hosts, HOURS, SEED))
    try:
        cost = load(system)
        return cost.cpu_seconds + cost.settle_cpu_seconds, cost.resident_settled / 1e6, cost.disk_bytes / 1e6
    finally:
        system.stop()
        shutil.rmtree(folder, ignore_errors=True)


def measured(cache: Path, folder: Path) -> list[Curve]:
    curves = []
    written = {hosts: write_cost(cache, folder, hosts) for hosts in HOST_STEPS}
    for nth, (title, unit) in enumerate((("write", "CPU s"), ("memory after the write", "MB"), ("disk", "MB"))):
        points = [(hosts * 10, round(costs[nth], 3)) for hosts, costs in written.items()]
        curves.append(curve(f"{title}, by series", unit, points))
    system = Tacho(cache, folder, devops(HOSTS, HOURS, SEED))
    try:
        load(system)
        by: list[tuple[str, tuple[int, ...], int, Callable[[Tacho, int], float]]] = [
            ("heavy question, by series", HOST_STEPS, 10, of_hosts),
            ("heavy question, by hours of 1,000 series", HOUR_STEPS, 1, of_hours),
        ]
        for title, sizes, unit, cost in by:
            curves.append(curve(title, "CPU ms", [(size * unit, round(cost(system, size), 3)) for size in sizes]))
        asked = [(clients, at_once(system, clients)) for clients in CLIENTS]
        curves.append(curve("light question, by clients at once", "CPU ms", [(n, round(cpu, 3)) for n, (cpu, _) in asked]))
        rates = [(n, round(rate)) for n, (_, rate) in asked]
        curves.append(curve("light questions per second, by clients at once", "1/s", rates))
        curves.append(curve("heavy question, by cores", "ms", _by_cores(system)))
    finally:
        system.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return curves


def _by_cores(system: Tacho) -> list[tuple[float, float]]:
    def wall() -> float:
        times = []
        with system.client() as client:
            for _ in range(REPEATS + 1):
                began = time.perf_counter()
                client.send(heavy_request(system))
                times.append((time.perf_counter() - began) * 1e3)
        return round(median(times[1:]), 1)

    cores, all_cores = len(os.sched_getaffinity(0)), wall()
    system.stop()
    on_one_core(system.start)
    return [(1, wall()), (cores, all_cores)]


def of_runs(paths: list[Path]) -> list[Curve]:
    """Curves by active series, of runs of `bench.scale --work lines` with the same number of rounds."""
    works = [work for path in paths for work in json.loads(path.read_text())["works"] if work["work"] == "lines"]
    costs = sorted((work["series"], work["systems"][OURS]) for work in works)

    def by_series(title: str, unit: str, cost: Callable[[int, dict], float]) -> Curve:
        return curve(f"{title}, by active series", unit, [(series, round(cost(series, ours), 2)) for series, ours in costs])

    return [
        by_series("CPU of the last round", "s", lambda series, ours: cpu_us(ours, series)[-1] * series / 1e6),
        by_series("memory above idle", "MB", lambda series, ours: series_bytes(ours, series) * series / 1e6),
        by_series("disk after a stop", "MB", lambda _, ours: ours["disk_bytes_stopped"] / 1e6),
        by_series("longest write of one sample", "ms", lambda _, ours: stall_ms(ours)),
        by_series("ready after kill -9", "s", lambda _, ours: ours["ready_after_kill_seconds"]),
    ]


def report(curves: list[Curve]) -> str:
    """One table, with a row for each curve."""
    rows = [
        (
            each["title"],
            each["unit"],
            ", ".join(f"{size:,}: {cost:,}" for size, cost in each["points"]),
            f"{each['exponent']:.2f}",
        )
        for each in curves
    ]
    return table(("curve", "unit", "size: cost", "exponent"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m bench.scale.curves", description="Measures how costs grow.")
    parser.add_argument("--cache", type=Path, default=Path("bench/.cache"))
    parser.add_argument("--results", type=Path, default=Path("bench-results"))
    parser.add_argument("--runs", type=Path, nargs="*", default=[], help="raw.json of bench.scale --work lines, two or more")
    options = parser.parse_args()
    folder = options.results / time.strftime("curves-%Y%m%dT%H%M%SZ", time.gmtime())
    folder.mkdir(parents=True)
    before = load_average()
    curves = of_runs(options.runs) if options.runs else []
    curves += measured(options.cache.resolve(), options.cache.resolve() / "run-curves")
    raw = {"load_average": [before, load_average()], "curves": curves}
    (folder / "raw.json").write_text(json.dumps(raw, indent=1))
    text = f"Load average before and after: {before}, {load_average()}.\n\n{report(curves)}\n"
    (folder / "report.md").write_text(text)
    print(f"{text}\n{folder}")


if __name__ == "__main__":
    main()
