"""QuestDB from Maven Central: one jar, on the Java of this machine."""

import json
from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode

from ...common.client import Client, Request, free_port
from ...common.install import maven
from ..questions import Grouped, OneSeries, Outliers, Question, Range, Trend
from ..reference import Answer
from .base import System

VERSION = "9.3.4"
JAR = f"questdb-{VERSION}.jar"
SQL_AGGREGATES = {"max": "max", "mean": "avg"}


class QuestDB(System):
    name = "questdb"
    title = "QuestDB"
    notes = (
        "restarted before its settled files are measured, because it reserves space in them while it runs",
        "does not sync writes to disk by default",
    )

    @classmethod
    def install(cls, cache: Path) -> str:
        maven(cache, "org.questdb", "questdb", VERSION)
        return VERSION

    def launch(self) -> None:
        root = self.run / "data"
        (root / "conf").mkdir(parents=True, exist_ok=True)
        (root / "conf/server.conf").write_text(
            "".join(
                f"{line}\n"
                for line in (
                    f"http.bind.to=127.0.0.1:{self.port}",
                    "http.min.enabled=false",
                    f"pg.net.bind.to=127.0.0.1:{free_port()}",
                    "line.tcp.enabled=false",
                    "telemetry.enabled=false",
                    "metrics.enabled=false",
                    "cairo.wal.purge.interval=1000",
                )
            )
        )
        self.server.start(
            [
                "java",
                "-Xms512m",
                "-Xmx1g",
                "-XX:+UseParallelGC",
                "-p",
                str(self.cache / JAR),
                "-m",
                "io.questdb/io.questdb.ServerMain",
                "-d",
                str(root),
            ]
        )

    def is_ready(self, client: Client) -> bool:
        client.send(_execute("SELECT 1"))
        return True

    def settle(self) -> None:
        self.server.wait_until(self._is_applied, 300)
        self.server.wait_idle()
        self.restart()
        self.server.wait_idle()

    def data(self) -> list[Path]:
        return [self.run / "data" / "db"]

    def request(self, question: Question) -> Request:
        match question:
            case Grouped():
                columns = ",".join(f"{SQL_AGGREGATES[question.aggregate]}({field})" for field in question.fields)
                key = f"{self._key}," if question.by_frame else ""
                hosts = ",".join(f"'{host}'" for host in question.frames)
                where = _between(question) + (f" AND {self._key} IN ({hosts})" if hosts else "")
                return _execute(
                    f"SELECT timestamp,{key}{columns} FROM {self.dataset.measurement} WHERE {where} "
                    f"SAMPLE BY {question.window_ms // 60_000}m ALIGN TO CALENDAR"
                )
            case Range():
                return _execute(f"SELECT timestamp,{question.field} {self._from(question)}")
            case Trend():
                return _execute(
                    f"SELECT regr_slope({question.field},(timestamp-{question.start_ms * 1_000})/1000000.0) "
                    f"{self._from(question)}"
                )
            case Outliers():
                name = question.field
                return _execute(
                    f"SELECT approx_percentile({name},0.25,3),approx_percentile({name},0.75,3),max({name}) "
                    f"{self._from(question)}"
                )

    def answer(self, question: Question, body: bytes) -> Answer:
        answer = json.loads(body)
        rows = answer["dataset"]
        match question:
            case Grouped():
                named = 2 if question.by_frame else 1
                return {
                    (field, row[1] if question.by_frame else "", _milliseconds(row[0])): value
                    for row in rows
                    for field, value in zip(question.fields, row[named:])
                }
            case Range():
                return [_milliseconds(row[0]) for row in rows], [row[1] for row in rows]
            case _:
                return tuple(map(float, rows[0]))

    def quantiles_are_ranks(self) -> bool:
        return True

    def _is_applied(self) -> bool:
        """Whether all tables have all rows of their write-ahead logs."""
        rows = json.loads(self.send(_execute("SELECT writerTxn,sequencerTxn FROM wal_tables()")))["dataset"]
        return all(written == logged for written, logged in rows)

    def _from(self, question: OneSeries) -> str:
        tags = " AND ".join(f"{name}='{value}'" for name, value in question.identity)
        return f"FROM {self.dataset.measurement} WHERE {tags} AND {_between(question)}"

    @property
    def _key(self) -> str:
        return self.dataset.frames[0].key[0]


def _execute(query: str) -> Request:
    return Request("GET", f"/exec?{urlencode({'query': query})}")


def _between(question: Grouped | OneSeries) -> str:
    """Times are microseconds in QuestDB."""
    return f"timestamp >= {question.start_ms * 1_000} AND timestamp < {question.end_ms * 1_000}"


def _milliseconds(text: str) -> int:
    """Converts `2016-01-01T00:00:00.000000Z` to Unix milliseconds."""
    day, clock = text[:10], text[11:]
    if day not in _MIDNIGHTS:
        _MIDNIGHTS[day] = int(datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()) * 1_000
    hours, minutes, seconds = clock[:-1].split(":")
    return _MIDNIGHTS[day] + (int(hours) * 3_600 + int(minutes) * 60) * 1_000 + round(float(seconds) * 1_000)


_MIDNIGHTS: dict[str, int] = {}
