"""Measures times of requests. All times are in milliseconds and include the client."""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median, quantiles

from ...common.client import Client, HttpError, Request
from ...store.systems.promql import PromQL
from .asked import MINUTE_MS, heavy_request, light, uses_cache

REPEATS = 200
SLIDES = 25
HEAVY_REPEATS = 9
HEAVY_CLIENTS = 4


@dataclass
class Repeated:
    """Medians of `single-groupby-5-8-1`: computed, asked again, and with a range that is a minute later each time."""

    computed_ms: float
    repeated_ms: float
    sliding_ms: float


def repeated(system: PromQL) -> Repeated:
    with system.client() as client:
        uses_cache(system, False)
        computed = _median(client, [system.request(light(system))] * REPEATS)
        uses_cache(system, True)
        again = _median(client, [system.request(light(system))] * REPEATS)
        slides = [system.request(light(system, nth * MINUTE_MS)) for nth in range(SLIDES)]
        sliding = _median(client, slides)
        uses_cache(system, False)
    return Repeated(computed, again, sliding)


def heavy_ms(system: PromQL) -> tuple[float, float]:
    """Median wall time of the heavy question, computed without a cache, and its mean processor time."""
    request = heavy_request(system)
    with system.client() as client:
        client.send(request)
        before = system.cpu_seconds()
        wall = _median(client, [request] * HEAVY_REPEATS)
        return wall, (system.cpu_seconds() - before) * 1e3 / HEAVY_REPEATS


def light_p99_ms(system: PromQL, heavy_clients: int) -> float:
    """99th percentile of the times of the light question, computed without a cache, while clients repeat the heavy one."""
    ended, failures = threading.Event(), []

    def repeat() -> None:
        try:
            with system.client() as client:
                while not ended.is_set():
                    client.send(heavy_request(system))
        except (OSError, HttpError) as failure:
            failures.append(failure)

    threads = [threading.Thread(target=repeat) for _ in range(heavy_clients)]
    for thread in threads:
        thread.start()
    try:
        with system.client() as client:
            times = list(_times(client, [system.request(light(system))] * REPEATS))
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return quantiles(times, n=100)[98]


def _times(client: Client, requests: Iterable[Request]) -> Iterable[float]:
    for request in requests:
        began = time.perf_counter()
        client.send(request)
        yield (time.perf_counter() - began) * 1e3


def _median(client: Client, requests: list[Request]) -> float:
    return median(_times(client, requests))
