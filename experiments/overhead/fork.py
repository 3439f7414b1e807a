"""Runs one process of one cell: waits for an idle machine, starts the receiver, measures, and counts the received
calls.

Before: `run.py` selects the cell. After: `figures.py` computes the figures.
"""

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

from .figures import figures
from .idle import Others, wait_idle
from .install import JAR, JAVA
from .model import Cell, Place
from .receivers import receiver

OBSERVED_CLASS = "io.tachograph.overhead.Observed"
HEAP = ("-Xms1g", "-Xmx1g")
START_AND_END_SECONDS_MAX = 120
SPIN = "while True: pass"


class ForkFailed(Exception):
    """The process produced no figures."""


def measure(cell: Cell, cache: Path, work: Path, idle_seconds_max: float) -> dict:
    """The figures of one new process. Creates and deletes `work`."""
    idle_cores, waited = wait_idle(idle_seconds_max)
    work.mkdir(parents=True)
    try:
        others = Others()
        try:
            said, arrived = _measure(cell, cache, work)
        except (OSError, RuntimeError, TimeoutError, subprocess.TimeoutExpired) as failure:
            raise ForkFailed(str(failure)) from failure
        found = figures(cell, said, arrived)
        return found | {
            "waited_s": round(waited, 1),
            "others_cores_before": round(idle_cores, 2),
            "others_cores": round(others.cores(), 2),
        }
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _measure(cell: Cell, cache: Path, work: Path) -> tuple[dict, dict]:
    taker = receiver(cell.setup, work)
    try:
        place = Place(cache, work, taker.address)
        with load(cell.workload.load):
            said = _observe(cell, place)
        return said, taker.stop().plain()
    except BaseException:
        taker.kill()
        raise


def command(cell: Cell, place: Place) -> list[str]:
    options = cell.framework.jvm(cell.setup, place)
    return [JAVA, *HEAP, *options, "-cp", str(JAR), OBSERVED_CLASS, *cell.workload.arguments()]


def _observe(cell: Cell, place: Place) -> dict:
    # The caller's settings of frameworks must not reach the measured process.
    own = {name: value for name, value in os.environ.items() if not name.startswith(("TACHO_", "KIEKER_", "OTEL_"))}
    process = subprocess.Popen(
        command(cell, place),
        env=own | cell.framework.environment(cell.setup, place),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said, _ = process.communicate(timeout=cell.workload.seconds + START_AND_END_SECONDS_MAX)
    except subprocess.TimeoutExpired as late:
        process.kill()
        process.communicate()
        raise RuntimeError(f"did not end within {late.timeout:.0f} s, and was killed") from late
    except BaseException:
        process.kill()
        process.communicate()
        raise
    lines = [line for line in said.splitlines() if line.startswith("RESULT ")]
    if not lines or process.returncode != 0:
        raise RuntimeError(f"ended with {process.returncode}: {said.strip()[-500:]}")
    return json.loads(lines[-1].removeprefix("RESULT "))


@contextmanager
def load(processes: int):
    """Starts processes that keep one core busy each."""
    with ExitStack() as stack:
        for _ in range(processes):
            process = subprocess.Popen([sys.executable, "-c", SPIN])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield
