"""Receivers for the records of one process: the sink, a directory, a real server, or none. All except
`Nobody` report the number of received calls.

Before: `fork.py` starts the receiver, and stops it when the measured process has ended.
"""

import json
import re
import subprocess
import threading
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.common.client import Client, HttpError, Request, free_port
from bench.common.process import Server, disk_bytes

from .frameworks.ours import TACHO
from .install import JAR, JAVA
from .model import Setup, Takes

SINK_CLASS = "io.tachograph.overhead.sink.Sink"
SINK_SECONDS_MAX = 60
SERVER_SECONDS_MAX = 120
STORED = re.compile(r'^tacho_records_stored_total\{[^}]*kind="execution"[^}]*\} (\S+)', re.MULTILINE)


@dataclass(frozen=True)
class Arrived:
    """Counts of a receiver. `calls` is None if nothing counted the calls."""

    calls: int | None = None
    bytes: int = 0
    dropped: int = 0
    """Calls that the agent reported as dropped."""
    switched: int = 0
    """Methods that the agent reported as switched off or aggregated."""
    cpu_seconds: float = 0.0
    resident_peak: int = 0
    resident_settled: int = 0
    resident: tuple[int, ...] = ()
    """Resident bytes for each second. Only a server has this figure."""
    disk_bytes: int = 0
    fault: str = ""

    def plain(self) -> dict:
        return asdict(self)


class Receiver(ABC):
    """Started before the measured process, and stopped after the end of that process."""

    address = ""

    @abstractmethod
    def stop(self) -> Arrived:
        """Returns after all records that were sent have been counted."""

    @abstractmethod
    def kill(self) -> None:
        """Stops without counting. Called after a failure."""


class Nobody(Receiver):
    def stop(self) -> Arrived:
        return Arrived()

    def kill(self) -> None:
        pass


class Sink(Receiver):
    """The sink process of the Maven module."""

    def __init__(self, setup: Setup) -> None:
        self._process = subprocess.Popen(
            [JAVA, "-Xms256m", "-Xmx256m", "-cp", str(JAR), SINK_CLASS, *setup.sink],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        line = self._process.stdout.readline()
        if not line.startswith("PORT "):
            self.kill()
            raise RuntimeError(f"the sink did not start: {line!r}")
        self.address = f"127.0.0.1:{int(line.split()[1])}"

    def stop(self) -> Arrived:
        said, _ = self._process.communicate(timeout=SINK_SECONDS_MAX)
        return _said(said, is_file=False)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


class Files(Receiver):
    """A directory into which the measured process writes."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        self._arguments = [*setup.sink, str(folder)]

    def stop(self) -> Arrived:
        done = subprocess.run(
            [JAVA, "-cp", str(JAR), SINK_CLASS, *self._arguments], capture_output=True, text=True, check=False
        )
        return _said(done.stdout or done.stderr, is_file=True)

    def kill(self) -> None:
        pass


class TachoServer(Receiver):
    """`tacho serve` with an empty directory and default settings, except that it does not store its own metrics."""

    def __init__(self, folder: Path) -> None:
        self._data = folder / "data"
        self._http = free_port()
        records = free_port()
        self.address = f"127.0.0.1:{records}"
        self._server = Server(folder / "server.log")
        command = [str(TACHO), "serve", "--data", str(self._data), "--selfwatch-seconds", "0"]
        self._server.start(command + ["--http", f"127.0.0.1:{self._http}", "--records", self.address])
        self._server.wait_until(self._is_ready, SERVER_SECONDS_MAX)
        self._resident: list[int] = []
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        while not self._ended.wait(1.0):
            self._resident.append(self._server.memory().resident)

    def _stop_watching(self) -> None:
        self._ended.set()
        self._watcher.join()

    def _get(self, path: str) -> str:
        with Client(self._http) as client:
            return client.send(Request("GET", path)).decode()

    def _is_ready(self) -> bool:
        try:
            self._get("/readyz")
        except (OSError, HttpError):
            return False
        return True

    def stop(self) -> Arrived:
        self._stop_watching()
        stored = sum(float(number) for number in STORED.findall(self._get("/metrics")))
        cpu_seconds, memory = self._server.cpu_seconds(), self._server.memory()
        self._server.stop()
        return Arrived(
            calls=int(stored),
            bytes=0,
            cpu_seconds=cpu_seconds,
            resident_peak=memory.peak,
            resident_settled=memory.resident,
            resident=tuple(self._resident),
            disk_bytes=disk_bytes(self._data, reserves=frozenset({"RESERVE"})),
        )

    def kill(self) -> None:
        self._stop_watching()
        self._server.stop()


def receiver(setup: Setup, folder: Path) -> Receiver:
    """Returns the started receiver."""
    match setup.takes:
        case Takes.SINK:
            return Sink(setup)
        case Takes.FILES:
            return Files(setup, folder)
        case Takes.SERVER:
            return TachoServer(folder)
        case _:
            return Nobody()


def _said(text: str, is_file: bool) -> Arrived:
    lines = [line for line in text.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise RuntimeError(f"the sink printed no result: {text.strip()[-300:]!r}")
    found = json.loads(lines[-1].removeprefix("RESULT "))
    return Arrived(
        calls=found["calls"],
        bytes=found["bytes"],
        dropped=found["dropped"],
        switched=found["switched"],
        # The CPU time for counting files is not part of the overhead.
        cpu_seconds=0.0 if is_file else found["cpu_ns"] / 1e9,
        fault=found["fault"],
    )
