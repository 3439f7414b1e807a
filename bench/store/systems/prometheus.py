"""Prometheus from Debian, written by remote write. Prometheus accepts it only with an option (see `launch`)."""

from collections.abc import Iterator
from pathlib import Path

from ...common.client import Client, Request
from ..encode.remote_write import remote_write
from ...common.install import debian
from ...common.process import disk_bytes
from .promql import PromQL, remote_write_request

PACKAGE = "prometheus"


class Prometheus(PromQL):
    name = "prometheus"
    title = "Prometheus"
    wire = "remote write"
    writers = 1
    notes = (
        "written by remote write, in requests with as many rows as those of the other systems",
        "written by one writer, because samples of a series must arrive in order",
        "its write-ahead log is not synced for each write",
        "settled bytes are those of a snapshot; the data directory also has a log and an open head",
    )

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._snapshot = self.run / "data" / "snapshots"

    @classmethod
    def install(cls, cache: Path) -> str:
        return debian(cache, PACKAGE)

    def launch(self) -> None:
        configuration = self.run / "prometheus.yml"
        configuration.write_text("{}\n")
        self.server.start(
            [
                str(self.cache / PACKAGE / "usr/bin/prometheus"),
                f"--config.file={configuration}",
                f"--storage.tsdb.path={self.run / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--web.enable-remote-write-receiver",
                "--web.enable-admin-api",
                "--storage.tsdb.retention.time=100y",
                "--log.level=warn",
            ]
        )

    def is_ready(self, client: Client) -> bool:
        client.send(Request("GET", "/-/ready"))
        return True

    def settle(self) -> None:
        self.server.wait_idle()
        self.send(Request("POST", "/api/v1/admin/tsdb/snapshot"))

    def disk_bytes(self) -> int:
        return disk_bytes(self._snapshot)

    def data(self) -> list[Path]:
        return [self.run / "data"]

    @property
    def bodies_name(self) -> str:
        return f"{self.dataset.name}/remote-write"

    def bodies(self) -> Iterator[bytes]:
        return remote_write(self.dataset)

    def write_request(self, body: bytes) -> Request:
        return remote_write_request(body)
