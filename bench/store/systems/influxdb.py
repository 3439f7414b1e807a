"""InfluxDB 1.x from Debian, with the recommended index for many series (tsi1)."""

import json
from pathlib import Path
from urllib.parse import quote, urlencode

from ...common.client import Client, Request, free_port
from ...common.install import debian
from ..questions import Grouped, OneSeries, Outliers, Question, Range, Trend
from ..reference import Answer
from .base import NotOffered, System

PACKAGE = "influxdb"
CONFIGURATION = """
reporting-disabled = true
bind-address = "127.0.0.1:{rpc}"
[meta]
  dir = "{run}/meta"
[data]
  dir = "{run}/data"
  wal-dir = "{run}/wal"
  index-version = "tsi1"
  cache-snapshot-write-cold-duration = "2s"
  compact-full-write-cold-duration = "5s"
  query-log-enabled = false
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
[subscriber]
  enabled = false
[logging]
  level = "warn"
"""
COLD_SECONDS = 15
"""Seconds without writes after which all data is fully compacted. Longer than the cold durations in the
configuration."""


class InfluxDB(System):
    name = "influxdb"
    title = "InfluxDB"
    notes = ("quantiles are nearest ranks", "has no linear regression")

    @classmethod
    def install(cls, cache: Path) -> str:
        return debian(cache, PACKAGE)

    def launch(self) -> None:
        configuration = self.run / "influxdb.conf"
        configuration.write_text(CONFIGURATION.format(run=self.run, port=self.port, rpc=free_port()))
        self.server.start([str(self.cache / PACKAGE / "usr/bin/influxd"), "-config", str(configuration)])

    def is_ready(self, client: Client) -> bool:
        client.send(Request("GET", "/ping"))
        return True

    def prepare(self) -> None:
        self.send(Request("POST", f"/query?q={quote('CREATE DATABASE bench')}"))

    def settle(self) -> None:
        self.server.wait_idle(quiet_seconds=COLD_SECONDS)

    def data(self) -> list[Path]:
        return [self.run / part for part in ("data", "wal", "meta")]

    def write_request(self, body: bytes) -> Request:
        return Request("POST", "/write?db=bench", body)

    def quantiles_are_ranks(self) -> bool:
        return True

    def request(self, question: Question) -> Request:
        match question:
            case Grouped():
                columns = ",".join(f'{question.aggregate}("{field}")' for field in question.fields)
                hosts = " OR ".join(f"\"{self._key}\"='{host}'" for host in question.frames)
                where = f"{_between(question)}" + (f" AND ({hosts})" if hosts else "")
                tag = f',"{self._key}"' if question.by_frame else ""
                source = f"FROM {self.dataset.measurement} WHERE {where}"
                query = f"SELECT {columns} {source} GROUP BY time({question.window_ms}ms){tag}"
            case Range():
                query = f'SELECT "{question.field}" {self._from(question)}'
            case Outliers():
                name = f'"{question.field}"'
                query = f"SELECT percentile({name},25),percentile({name},75),max({name}) {self._from(question)}"
            case Trend():
                raise NotOffered("linear regression")
        return Request("GET", f"/query?{urlencode({'db': 'bench', 'epoch': 'ms', 'q': query})}")

    def answer(self, question: Question, body: bytes) -> Answer:
        answer = json.loads(body)["results"][0]
        if "error" in answer:
            raise ValueError(answer["error"])
        series = answer.get("series", [])
        match question:
            case Grouped():
                return {
                    (field, row.get("tags", {}).get(self._key, ""), values[0]): value
                    for row in series
                    for values in row["values"]
                    for field, value in zip(question.fields, values[1:])
                    if value is not None
                }
            case Range():
                rows = series[0]["values"] if series else []
                return [row[0] for row in rows], [row[1] for row in rows]
            case _:
                return tuple(map(float, series[0]["values"][0][1:]))

    def _from(self, question: OneSeries) -> str:
        tags = " AND ".join(f"\"{name}\"='{value}'" for name, value in question.identity)
        return f"FROM {self.dataset.measurement} WHERE {tags} AND {_between(question)}"

    @property
    def _key(self) -> str:
        return self.dataset.frames[0].key[0]


def _between(question: Grouped | OneSeries) -> str:
    return f"time >= {question.start_ms}ms AND time < {question.end_ms}ms"
