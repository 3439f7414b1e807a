"""Runs the generator of calls, an example program of `crates/lab`."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...common.install import run

BINARY = Path(os.environ.get("TACHO_CALLS", "target/release/examples/calls")).resolve()
SLICE_BYTES = 256 << 20
SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Calls:
    """The calls of one run. The same values give the same calls."""

    count: int
    seed: int
    start_s: int
    """Time from which traces start, Unix seconds."""
    hours: float

    @property
    def end_s(self) -> int:
        """All calls begin before this time."""
        return self.start_s + int(self.hours * 3_600) + 60

    def _command(self) -> list[str]:
        numbers = (self.count, self.seed, self.start_s, self.hours)
        names = ("--calls", "--seed", "--start", "--hours")
        return [str(BINARY)] + [f"{name}={number}" for name, number in zip(names, numbers)]

    def send(self, port: int) -> dict:
        """Sends the calls with the native protocol. Returns the generator's figures."""
        return json.loads(run([*self._command(), "--records", f"127.0.0.1:{port}"]))

    def slices(self) -> Iterator[bytes]:
        """The calls as lines of CSV, without the head, in pieces of about `SLICE_BYTES`."""
        with subprocess.Popen([*self._command(), "--csv"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            try:
                process.stdout.readline()
                while piece := process.stdout.read(SLICE_BYTES):
                    yield piece + (b"" if piece.endswith(b"\n") else process.stdout.readline())
            finally:
                process.kill()
