"""Series with shapes that the other sets of `sets.py` lack, generated from a seed."""

from array import array
from collections.abc import Callable, Iterator
from itertools import accumulate
from math import floor, sin
from random import Random

from .files import Group

START_NS = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z
SECOND_NS = 1_000_000_000


def counters(count: int) -> Iterator[Group]:
    """Counters of an application and of the kernel, every 15 seconds: small, large, with decimals, and as a histogram."""
    random = Random(1)
    yield _regular(
        15,
        [
            _counter(random, count, "q", lambda: floor(random.expovariate(1 / 300))),
            _counter(random, count, "d", lambda: floor(random.expovariate(1 / 300))),
            _counter(random, count, "q", lambda: int(random.random() < 0.01)),
            _counter(random, count, "q", lambda: 1_500 * random.randrange(90_000)),
            _decimal(_counter(random, count, "q", lambda: random.randrange(1_500)), 2),
            _decimal(_counter(random, count, "q", lambda: floor(random.expovariate(1 / 4e6))), 6),
            _counter(random, count, "d", lambda: random.lognormvariate(-3, 1)),
        ],
    )
    yield _regular(15, _histogram(random, count))


def floats(count: int) -> Iterator[Group]:
    """Gauges every minute: with all digits of a double, with all digits of a single-precision float, and with few decimals."""
    random = Random(2)
    single = array("f", (20 + 5 * sin(n / 700) + random.gauss(0, 0.1) for n in range(count)))
    bytes_used = [random.randrange(1 << 20, 1 << 22) * 4_096 for _ in range(count)]
    columns = [
        [50 + 40 * sin(n / 200) + random.gauss(0, 1) for n in range(count)],
        list(accumulate((random.gauss(0, 1) for _ in range(count)))),
        [random.lognormvariate(2, 0.5) for _ in range(count)],
        [round(21 + 3 * sin(n / 500) + random.gauss(0, 0.2), 1) * 9 / 5 + 32 for n in range(count)],
        [total / max(1, seen) for total, seen in ((random.randrange(9_000), random.randrange(40)) for _ in range(count))],
        [100.0 * used / (1 << 35) for used in bytes_used],
        [random.random() for _ in range(count)],
        list(map(float, single)),
        [round(48.1 + 0.001 * n / 60 + random.gauss(0, 2e-5), 6) for n in range(count)],
        [round(random.lognormvariate(2, 0.5), 3) for n in range(count)],
        [round(level / 0.25) * 0.25 for level in (random.gauss(500, 30) for _ in range(count))],
    ]
    yield _regular(60, [array("d", column) for column in columns])


def zabbix(count: int) -> Iterator[Group]:
    """Items of hosts, every 30 or 60 seconds. Each time is late by a random number of ns, less than one second."""
    random = Random(3)
    kinds: list[Callable[[], array]] = [
        lambda: _walk(random, count, 40_000_000_000, 3e8, 4_096),
        lambda: array("Q", (floor(1.5e6 * random.lognormvariate(0, 0.8)) * 8 for _ in range(count))),
        lambda: array("Q", (int(random.random() > 0.001) for _ in range(count))),
        lambda: _walk(random, count, 300, 2, 1),
        lambda: array("d", (round(random.gauss(8, 3) ** 2 / 10, 6) for _ in range(count))),
        lambda: array("d", (round(max(0.0, random.gauss(0.4, 0.2)), 2) for _ in range(count))),
        lambda: array("d", (round(random.lognormvariate(-7, 0.4), 9) for _ in range(count))),
    ]
    for _host in range(4):
        for kind in kinds:
            delay, offset = random.choice((30, 60)), random.randrange(60)
            begin = START_NS + offset * SECOND_NS
            times = (begin + n * delay * SECOND_NS + random.randrange(SECOND_NS) for n in range(count))
            yield Group(array("q", times), [kind()])


def traffic(count: int) -> Iterator[Group]:
    """HTTP status of events, in six series. Three series have random times, in ns, us and ms. The fourth has bursts, the
    fifth has a time every 100.003 ms with noise, and the sixth a time every 15 s with gaps."""
    random = Random(4)
    gaps: list[Callable[[], int]] = [
        lambda: 1 + floor(random.expovariate(1 / 5e7)),
        lambda: 1_000 * (1 + floor(random.expovariate(1 / 5e4))),
        lambda: 1_000_000 * (1 + floor(random.expovariate(1 / 50))),
        lambda: 1_000_000 * (1 if random.random() < 0.9 else 1 + floor(random.expovariate(1 / 5_000))),
        lambda: 100_003_000 + floor(random.gauss(0, 400)),
        lambda: 15 * SECOND_NS if random.random() > 0.002 else 30 * SECOND_NS,
    ]
    for gap in gaps:
        times = array("q", accumulate((gap() for _ in range(count)), initial=START_NS))[1:]
        yield Group(times, [array("q", (random.choice((200, 200, 200, 302, 404, 500)) for _ in range(count)))])


def _regular(seconds: int, columns: list[array]) -> Group:
    count = len(columns[0])
    return Group(array("q", (START_NS + n * seconds * SECOND_NS for n in range(count))), columns)


def _counter(random: Random, count: int, kind: str, step: Callable[[], float]) -> array:
    """A sum that restarts at zero about every 20,000 values."""
    total, values = 0, array(kind)
    for _ in range(count):
        total = 0 if random.random() < 1 / 20_000 else total + step()
        values.append(total)
    return values


def _decimal(column: array, places: int) -> array:
    return array("d", (value / 10**places for value in column))


def _histogram(random: Random, count: int) -> list[array]:
    """The cumulative buckets of a histogram, as an exporter publishes them. The last bucket is the count of all
    values."""
    bounds = [0.005 * 2**n for n in range(11)]
    totals, buckets = [0] * 12, [array("q") for _ in range(12)]
    for _ in range(count):
        for _ in range(random.randrange(12)):
            seconds = random.lognormvariate(-3, 1.2)
            for place in range(next((n for n, bound in enumerate(bounds) if seconds <= bound), 11), 12):
                totals[place] += 1
        for bucket, total in zip(buckets, totals):
            bucket.append(total)
    return buckets


def _walk(random: Random, count: int, level: float, step: float, unit: int) -> array:
    values = array("Q")
    for _ in range(count):
        level = max(0.0, level + random.gauss(0, step))
        values.append(int(level / unit) * unit)
    return values
