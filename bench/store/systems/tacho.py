"""Tachograph, as built by `make build`. The journal is on; a write is acknowledged when it is on disk."""

import os
import shutil
from pathlib import Path

from ...common.client import Client, Request, free_port
from ...common.install import run
from .promql import PromQL

BINARY = Path(os.environ.get("TACHO", "target/release/tacho")).resolve()


class Tacho(PromQL):
    name = "tacho"
    title = "Tachograph"
    binary: Path | None = BINARY
    keeps_names = True
    extra_parameters = {"cache": "false"}
    reserves = frozenset({"RESERVE"})
    notes = (
        "acknowledges a write when it is on disk (fsync)",
        "queried with cache=false: results are computed, not cached",
        "the 4 MiB that it reserves for deletion on a full disk (RESERVE) are not counted",
    )

    @classmethod
    def install(cls, cache: Path) -> str:
        if cls.binary is None or not cls.binary.exists():
            raise FileNotFoundError(f"{cls.binary} is missing; make tacho builds it")
        return run([str(cls.binary), "--version"]).split()[-1]

    records_port: int
    """The port of the native protocol, after `launch`."""

    def stage(self) -> None:
        """Copies the program. Its resident memory, and its speed while its code is cold, depend on how the kernel has cached its
        file. Two builds can be compared only if both files are equally new."""
        program = self.run / "tacho"
        shutil.copy(self.binary, program)
        with program.open("rb") as file:
            os.fsync(file.fileno())

    def launch(self) -> None:
        self.records_port = free_port()
        staged = self.run / "tacho"
        self.server.start(
            [
                str(staged if staged.exists() else self.binary),
                "serve",
                "--data",
                str(self.run / "data"),
                "--http",
                f"127.0.0.1:{self.port}",
                "--records",
                f"127.0.0.1:{self.records_port}",
                "--selfwatch-seconds",
                "0",
            ]
        )

    def is_ready(self, client: Client) -> bool:
        client.send(Request("GET", "/readyz"))
        return True

    def settle(self) -> None:
        self.send(Request("POST", "/api/flush"))
        self.send(Request("POST", "/api/v1/admin/merge"))
        self.server.wait_idle()

    def data(self) -> list[Path]:
        return [self.run / "data"]


class TachoBefore(Tacho):
    """An earlier build in the same run."""

    name = "tacho-before"
    title = "Tachograph before"
    binary = None
    """The path given by `--before`. Without the option, this system does not run."""
