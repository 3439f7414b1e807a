"""Tachograph, as it is built by `make build`: the journal is on, every write is answered when it is on disk."""

import os
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
    reserves = frozenset({"RESERVE"})
    notes = (
        "answers a write when it is on disk (fsync)",
        "keeps 4 MiB free for deleting on a full disk (RESERVE), which do not count",
    )

    @classmethod
    def install(cls, cache: Path) -> str:
        if cls.binary is None or not cls.binary.exists():
            raise FileNotFoundError(f"{cls.binary} is missing; make tacho builds it")
        return run([str(cls.binary), "--version"]).split()[-1]

    def launch(self) -> None:
        self.server.start(
            [
                str(self.binary),
                "serve",
                "--data",
                str(self.run / "data"),
                "--http",
                f"127.0.0.1:{self.port}",
                "--records",
                f"127.0.0.1:{free_port()}",
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
    """Another build of ours, in the same run as this one: what has changed is told pair by pair (`before.py`)."""

    name = "tacho-before"
    title = "Tachograph before"
    binary = None
    """Of `--before`; without it this system takes no part."""
