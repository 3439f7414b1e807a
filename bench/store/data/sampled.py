"""Data of `--work b`: series of this machine, read from /proc ten times a second during preparation.

The series are short, and a machine that runs benchmarks is not typical. Tables call them *sampled here*.
"""

import json
import time
from array import array
from collections.abc import Iterator
from pathlib import Path

from ..dataset import Dataset, Frame

PERIOD_S = 0.1
Reading = dict[tuple[str, str], float]


def sampled(cache: Path, seconds: int) -> Dataset:
    """The recording in `cache`. If there is no recording of this length, records for `seconds`."""
    file = cache / f"sampled-{seconds}s.json"
    if not file.exists():
        print(f"sampling /proc for {seconds} s", flush=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(_record(seconds)))
    recording = json.loads(file.read_text())
    frames = [
        Frame(
            {"source": source, "instance": "localhost"},
            ("source",),
            array("q", recording["times_ms"]),
            {name: _column(values) for name, values in fields.items()},
        )
        for source, fields in recording["sources"].items()
    ]
    name = f"sampled-{seconds}s-{recording['times_ms'][0]}"
    return Dataset(name=name, title=f"sampled here, {seconds} s of /proc at 10 Hz", measurement="proc", frames=frames)


def _record(seconds: int) -> dict:
    times, readings = [], []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        begun = time.monotonic()
        times.append(time.time_ns() // 1_000_000)
        readings.append(dict(_read()))
        time.sleep(max(0.0, PERIOD_S - (time.monotonic() - begun)))
    sources: dict[str, dict[str, list[float]]] = {}
    for source, name in set.intersection(*(set(reading) for reading in readings)):
        sources.setdefault(source, {})[name] = [reading[source, name] for reading in readings]
    return {
        "times_ms": times,
        "sources": {source: dict(sorted(fields.items())) for source, fields in sorted(sources.items())},
    }


def _read() -> Iterator[tuple[tuple[str, str], float]]:
    """((source, field), number) for each value. A field has its name in /proc. The load averages have no names there; their
    fields are load1, load5 and load15. The fields of all other values without a name are f0, f1, ..."""
    for line in _lines("meminfo"):
        name, number, *_ = line.replace("(", "_").replace(")", "").replace(":", "").split()
        yield ("meminfo", name), int(number)
    for line in _lines("vmstat"):
        name, number = line.split()
        yield ("vmstat", name), int(number)
    for line in _lines("stat"):
        name, *numbers = line.split()
        if name.startswith("cpu"):
            yield from (((f"stat-{name}", f"f{index}"), int(number)) for index, number in enumerate(numbers))
        elif len(numbers) == 1:
            yield ("stat", name), int(numbers[0])
    for minutes, number in zip((1, 5, 15), _lines("loadavg")[0].split()):
        yield ("loadavg", f"load{minutes}"), float(number)
    for line in _lines("net/dev")[2:]:
        name, _, numbers = line.partition(":")
        yield from (((f"net-{name.strip()}", f"f{index}"), int(number)) for index, number in enumerate(numbers.split()))
    for line in _lines("diskstats"):
        _, _, name, *numbers = line.split()
        if not name.startswith(("loop", "ram")):
            yield from (((f"disk-{name}", f"f{index}"), int(number)) for index, number in enumerate(numbers))


def _lines(name: str) -> list[str]:
    return (Path("/proc") / name).read_text().splitlines()


def _column(values: list[float]) -> array:
    return array("q", values) if all(isinstance(value, int) for value in values) else array("d", values)
