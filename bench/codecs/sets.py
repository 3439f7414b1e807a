"""The measured sets. `codec_gain` adds the sets that the tests of `crates/chunk` generate."""

from array import array
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ..store.data.devops import devops
from ..store.data.operational import operational
from ..store.data.p4 import p4
from ..store.data.sampled import sampled
from ..store.dataset import Dataset
from . import generated
from .files import Group
from .packages import PACKAGES, package

COUNT = 30_000
"""Number of values of a series of `generated.py` at scale 1. A series of `zabbix` has a third of them."""
SEED = 123
SAMPLE_SECONDS = 60


def sets(cache: Path, p4_folder: Path | None, logs: list[Path], scale: float) -> dict[str, Callable[[], Iterable[Group | str]]]:
    """By name of a set: the function that creates its groups of series, or its texts for log files."""
    count = max(100, int(COUNT * scale))
    hosts, days = max(1, round(20 * scale)), max(1, round(50 * scale))
    found: dict[str, Callable[[], Iterable[Group | str]]] = {
        "devops": lambda: groups(devops(hosts, 24, SEED)),
        "shapes": lambda: groups(operational(days, SEED)),
        "proc": lambda: groups(sampled(cache, SAMPLE_SECONDS)),
        "counters": lambda: generated.counters(count),
        "floats": lambda: generated.floats(count),
        "zabbix": lambda: generated.zabbix(count // 3),
        "events": lambda: generated.traffic(count),
    }
    found |= {name: lambda name=name: package(cache, name) for name in PACKAGES}
    if p4_folder:
        found["p4"] = lambda: groups(p4(p4_folder))
    if logs:
        found["files"] = lambda: (log.read_text(errors="replace") for log in logs)
    return found


def groups(dataset: Dataset) -> Iterator[Group]:
    """Frames with the same times share a group, because the store groups series that are written together."""
    shared: dict[bytes, Group] = {}
    for frame in dataset.frames:
        same = shared.setdefault(frame.times_ms.tobytes(), Group(array("q", (ms * 1_000_000 for ms in frame.times_ms)), []))
        same.columns.extend(frame.columns.values())
    yield from shared.values()
