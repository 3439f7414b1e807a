"""Measures times of requests, in milliseconds. Only wall times include the client."""

import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median, quantiles

from ...common.client import Client, HttpError, Request
from ...store.systems.base import System
from ...store.systems.promql import PromQL
from .asked import MINUTE_MS, heavy_request, light, panels, uses_cache

REPEATS = 200
SLIDES = 200
HEAVY_REPEATS = 9
HEAVY_CLIENTS = 4
PANEL_REPEATS = 9
BROWSER_CONNECTIONS = 6


@dataclass
class Repeated:
    """Median wall times and mean processor times of `single-groupby-5-8-1`: computed without a cache, asked again
    with a cache, and asked for an hour that begins a minute later each time (sliding)."""

    computed_ms: float
    computed_cpu_ms: float
    repeated_ms: float
    repeated_cpu_ms: float
    sliding_ms: float
    sliding_cpu_ms: float


def repeated(system: PromQL) -> Repeated:
    with system.client() as client:
        uses_cache(system, False)
        computed = _wall_and_cpu(system, client, [system.request(light(system))] * REPEATS)
        uses_cache(system, True)
        again = _wall_and_cpu(system, client, [system.request(light(system))] * REPEATS)
        slides = [system.request(light(system, nth * MINUTE_MS)) for nth in range(SLIDES)]
        sliding = _wall_and_cpu(system, client, slides)
        uses_cache(system, False)
    return Repeated(*computed, *again, *sliding)


def heavy_ms(system: PromQL) -> tuple[float, float]:
    """Median wall time of the heavy question, computed without a cache, and its mean processor time."""
    request = heavy_request(system)
    with system.client() as client:
        client.send(request)
        return _wall_and_cpu(system, client, [request] * HEAVY_REPEATS)


@dataclass
class Panels:
    """Median wall times and mean processor times of 20 panels, computed without a cache. They are asked at the same
    time, as by a browser, and one after the other."""

    panels_ms: float
    panels_cpu_ms: float
    panels_in_turn_ms: float
    panels_in_turn_cpu_ms: float


def panels_ms(system: PromQL) -> Panels:
    requests = panels(system)

    def times_with(connections: int) -> tuple[float, float]:
        before, times = system.cpu_seconds(), []
        for _ in range(PANEL_REPEATS):
            began = time.perf_counter()
            with ThreadPoolExecutor(connections) as threads:
                for done in [threads.submit(_send_all, system, requests[nth::connections]) for nth in range(connections)]:
                    done.result()
            times.append((time.perf_counter() - began) * 1e3)
        return median(times), (system.cpu_seconds() - before) * 1e3 / PANEL_REPEATS

    _send_all(system, requests)
    return Panels(*times_with(BROWSER_CONNECTIONS), *times_with(1))


def _send_all(system: PromQL, requests: list[Request]) -> None:
    with system.client() as client:
        for request in requests:
            client.send(request)


def light_p99_ms(system: PromQL, heavy_clients: int) -> float:
    """99th percentile of the times of the light question, computed without a cache, while `heavy_clients` clients
    repeat the heavy question."""
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


def _wall_and_cpu(system: System, client: Client, requests: list[Request]) -> tuple[float, float]:
    """Median time of the requests, and the mean processor time of the system, work in the background included."""
    before = system.cpu_seconds()
    wall = median(_times(client, requests))
    return wall, (system.cpu_seconds() - before) * 1e3 / len(requests)
