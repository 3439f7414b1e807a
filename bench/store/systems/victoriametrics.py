"""VictoriaMetrics from Debian, single node."""

from pathlib import Path

from ...common.client import Client, Request
from ...common.install import debian
from ..questions import Outliers
from .promql import PLACE, QUARTILES_AND_MAXIMUM, PromQL

PACKAGE = "victoria-metrics"


class VictoriaMetrics(PromQL):
    name = "victoriametrics"
    title = "VictoriaMetrics"
    notes = (
        "acknowledges a write from memory: a crash may lose the data of the last seconds",
        "queried with nocache=1: results are computed, not cached",
    )
    extra_parameters = {"nocache": "1"}
    raw_by_export = True
    keeps_names = True

    @classmethod
    def install(cls, cache: Path) -> str:
        return debian(cache, PACKAGE)

    def launch(self) -> None:
        self.server.start(
            [
                str(self.cache / PACKAGE / "usr/bin/victoria-metrics"),
                f"-storageDataPath={self.run / 'data'}",
                f"-httpListenAddr=127.0.0.1:{self.port}",
                "-retentionPeriod=100y",
                "-search.latencyOffset=0s",
                "-loggerLevel=WARN",
            ]
        )

    def is_ready(self, client: Client) -> bool:
        client.send(Request("GET", "/health"))
        return True

    def settle(self) -> None:
        self.send(Request("GET", "/internal/force_flush"))
        self.send(Request("GET", "/internal/force_merge"))
        self.server.wait_idle()
        self.send(Request("GET", "/internal/force_flush"))

    def data(self) -> list[Path]:
        return [self.run / "data" / part for part in ("data", "indexdb", "metadata")]

    def quantiles(self, question: Outliers) -> str:
        return f'quantiles_over_time("{PLACE}",{",".join(QUARTILES_AND_MAXIMUM)},{self.selector(question)})'
