"""Data of `--work c` and `--work d`: generated series with the shapes of a running system.

With `--scale 1` they have a hundred days. Each shape occurs in the JMX series that Chronix published: the saw tooth of
a heap, counters that restart, levels that rarely change, queues that are mostly empty, latencies with decimals, and a
daily cycle.
"""

from array import array
from collections.abc import Callable
from math import pi, sin
from random import Random

from ..dataset import Dataset, Frame

START_MS = 1_451_606_400_000  # 2016-01-01T00:00:00Z
STEP_MS = 60_000
MINUTES_A_DAY = 1_440
SERVICES = ("checkout", "search", "billing")


def operational(days: int, seed: int) -> Dataset:
    """A frame per service, with one field per shape, every minute for `days`."""
    random = Random(seed)
    count = days * MINUTES_A_DAY
    times = array("q", range(START_MS, START_MS + count * STEP_MS, STEP_MS))
    frames = [
        Frame(
            {"service": service, "host": f"node{number}", "environment": "production"},
            ("service",),
            times,
            {name: shape(random, count) for name, shape in SHAPES.items()},
        )
        for number, service in enumerate(SERVICES)
    ]
    return Dataset(
        name=f"operational-{days}d-{seed}",
        title=f"operational shapes, {days} days at 1 min",
        measurement="ops",
        frames=frames,
        step_ms=STEP_MS,
    )


def _day(index: int) -> float:
    """The load by time of day: 0 at 6:00, 1 at 18:00."""
    return 0.5 - 0.5 * sin(2 * pi * (index % MINUTES_A_DAY) / MINUTES_A_DAY)


def _heap_bytes(random: Random, count: int) -> array:
    """A level that rises with the load and falls at each collection."""
    used, floor, values = 2e8, 2e8, array("q")
    for index in range(count):
        used += random.expovariate(1 / (5e6 + 4e7 * _day(index)))
        if used > 1.2e9:
            floor = min(6e8, floor + random.gauss(1e5, 2e6))
            used = floor
        values.append(int(used) & ~7)
    return values


def _requests(random: Random, count: int) -> array:
    """A counter; the service restarts about every twelve days."""
    total, values = 0, array("q")
    for index in range(count):
        if random.random() < 1 / (12 * MINUTES_A_DAY):
            total = 0
        total += int(random.gauss(200 + 1_800 * _day(index), 40) + 200)
        values.append(total)
    return values


def _threads(random: Random, count: int) -> array:
    """A level that rarely changes."""
    level, values = 84, array("q")
    for _ in range(count):
        if random.random() < 0.02:
            level = max(60, min(200, level + random.choice((-3, -2, -1, 1, 2, 3))))
        values.append(level)
    return values


def _queue(random: Random, count: int) -> array:
    """Zero except for bursts."""
    length, values = 0, array("q")
    for _ in range(count):
        if random.random() < 0.003:
            length += int(random.expovariate(1 / 80))
        length = length * 3 // 4
        values.append(length)
    return values


def _latency_ms(random: Random, count: int) -> array:
    """A latency with three decimals, log-normal around a level that follows the load."""
    return array("d", (round(random.lognormvariate(2.2 + 0.6 * _day(index), 0.25), 3) for index in range(count)))


def _load(random: Random, count: int) -> array:
    """A load average with two decimals, as a kernel prints it."""
    level, values = 1.0, array("d")
    for index in range(count):
        level += 0.2 * (4 * _day(index) - level) + random.gauss(0, 0.15)
        level = max(0.0, level)
        values.append(round(level, 2))
    return values


def _disk_percent(random: Random, count: int) -> array:
    """A level that rises slowly and falls back to its first value once a week: a quotient of doubles with all digits,
    as many exporters write."""
    used, capacity, values = 4.1e11, 9.6e11, array("d")
    for index in range(count):
        used = 4.1e11 if index % (7 * MINUTES_A_DAY) == 0 else used + random.expovariate(1 / 2e7)
        values.append(100.0 * int(used / 4096) * 4096 / capacity)
    return values


def _limit(_random: Random, count: int) -> array:
    """Constant, like many published series."""
    return array("q", [65_536]) * count


SHAPES: dict[str, Callable[[Random, int], array]] = {
    "heap_bytes": _heap_bytes,
    "requests_total": _requests,
    "threads": _threads,
    "queue_length": _queue,
    "latency_ms": _latency_ms,
    "load": _load,
    "disk_used_percent": _disk_percent,
    "open_files_max": _limit,
}
