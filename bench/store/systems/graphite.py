"""Graphite from PyPI. carbon receives and writes data, whisper is the file format, graphite-web serves queries.

The files of whisper are rings of fixed slots that end at the current time. Therefore times are shifted by whole days,
so that they end at most a day before now, and shifted back in responses. Data without a constant step is not written,
because it does not fit into slots.
"""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from ...common.client import Client, Request, free_port
from ..encode.carbon_pickle import carbon_pickle
from ...common.install import python, run
from ..questions import Grouped, OneSeries, Outliers, Question, Range, Trend
from ..reference import Answer
from .base import NotOffered, System

ENVIRONMENT = "graphite"
PACKAGES = ["carbon==1.1.10", "whisper==1.1.10", "graphite-web==1.1.10", "gunicorn", "setuptools<81"]
DAY_S = 86_400
CARBON_AGGREGATES = {"max": "max", "mean": "avg"}
CARBON = """
[cache]
LINE_RECEIVER_PORT = {line_port}
LINE_RECEIVER_INTERFACE = 127.0.0.1
PICKLE_RECEIVER_PORT = {pickle_port}
PICKLE_RECEIVER_INTERFACE = 127.0.0.1
CACHE_QUERY_PORT = {cache_port}
CACHE_QUERY_INTERFACE = 127.0.0.1
STORAGE_DIR = {run}/storage
LOCAL_DATA_DIR = {run}/storage/whisper
LOG_DIR = {run}/log-carbon
PID_DIR = {run}
CONF_DIR = {run}/conf
MAX_CACHE_SIZE = inf
MAX_UPDATES_PER_SECOND = inf
MAX_CREATES_PER_MINUTE = inf
CARBON_METRIC_INTERVAL = 0
LOG_UPDATES = False
LOG_CREATES = False
LOG_CACHE_HITS = False
ENABLE_TAGS = False
"""
SETTINGS = """
SECRET_KEY = "bench"
STORAGE_DIR = "{run}/storage"
WHISPER_DIR = "{run}/storage/whisper"
CONF_DIR = "{run}/conf"
LOG_DIR = "{run}"
CARBONLINK_HOSTS = ["127.0.0.1:{cache_port}"]
MEMCACHE_HOSTS = []
TIME_ZONE = "UTC"
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": "{run}/graphite.db"}}}}
DEFAULT_CACHE_DURATION = 0
DEFAULT_CACHE_POLICY = []
"""


class Graphite(System):
    name = "graphite"
    title = "Graphite"
    wire = "carbon pickle"
    notes = (
        "written with carbon's pickle protocol, which has no response: the time of writing ends after 5 s without work",
        "keeps one number per slot; a slot is as long as the step of the data",
        "processes: carbon-cache, and gunicorn with one worker for graphite-web",
    )

    def __init__(self, *arguments):
        super().__init__(*arguments)
        if self.dataset.step_ms == 0:
            raise NotOffered("data without a constant step")
        self._pickle_port, self._line_port, self._cache_port = free_port(), free_port(), free_port()
        last_s = self.dataset.end_ms // 1_000
        self._shift_s = (int(time.time()) - last_s - 1) // DAY_S * DAY_S

    @classmethod
    def install(cls, cache: Path) -> str:
        python(cache, ENVIRONMENT, PACKAGES)
        return PACKAGES[0].partition("==")[2]

    def launch(self) -> None:
        self._configure()
        home = self.cache.resolve() / ENVIRONMENT
        environment = {
            "PYTHONPATH": f"{self.run}/conf:{home}/webapp:{home}/lib",
            "GRAPHITE_SETTINGS_MODULE": "bench_settings",
            "DJANGO_SETTINGS_MODULE": "graphite.settings",
            "GRAPHITE_ROOT": str(home),
        }
        interpreter = str(home / "bin/python")
        run([interpreter, "-m", "django", "migrate", "--run-syncdb", "-v", "0"], environment=environment)
        self.server.start(
            [interpreter, str(home / "bin/carbon-cache.py"), f"--config={self.run}/conf/carbon.conf", "--nodaemon", "start"],
            environment,
        )
        self.server.start(
            [
                interpreter,
                str(home / "bin/gunicorn"),
                "-w",
                "1",
                "--timeout",
                "300",
                "--keep-alive",
                "60",
                "-b",
                f"127.0.0.1:{self.port}",
                "graphite.wsgi",
            ],
            environment,
        )

    def _configure(self) -> None:
        conf = self.run / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        (self.run / "storage/whisper").mkdir(parents=True, exist_ok=True)
        ports = {"line_port": self._line_port, "pickle_port": self._pickle_port, "cache_port": self._cache_port}
        (conf / "carbon.conf").write_text(CARBON.format(run=self.run, **ports))
        (conf / "bench_settings.py").write_text(SETTINGS.format(run=self.run, **ports))
        step_s = self.dataset.step_ms // 1_000
        kept_s = int(time.time()) - (self.dataset.start_ms // 1_000 + self._shift_s) + 3_600
        (conf / "storage-schemas.conf").write_text(f"[all]\npattern = .*\nretentions = {step_s}s:{kept_s // step_s}\n")

    def is_ready(self, client: Client) -> bool:
        client.send(Request("GET", "/metrics/find?query=*"))
        with socket.create_connection(("127.0.0.1", self._pickle_port), timeout=1):
            return True

    @property
    def bodies_name(self) -> str:
        return f"{self.dataset.name}/pickle-{self._shift_s}"

    def bodies(self) -> Iterator[bytes]:
        return carbon_pickle(self.dataset, self._shift_s)

    def write(self, client: Client, body: bytes) -> None:
        with socket.create_connection(("127.0.0.1", self._pickle_port)) as carbon:
            carbon.sendall(body)

    def finish_writes(self) -> None:
        self.server.wait_idle(quiet_seconds=5.0)

    def settle(self) -> None:
        self.server.wait_idle()

    def data(self) -> list[Path]:
        return [self.run / "storage/whisper"]

    def quantiles_are_ranks(self) -> bool:
        return True

    def request(self, question: Question) -> Request:
        between = 0  # the bounds of all other queries are already between slots
        match question:
            case Grouped():
                between = self.dataset.step_ms // 2
                targets = [self._grouped(question, field) for field in question.fields]
            case Range():
                targets = [self._path(question)]
            case Outliers():
                targets = [f"nPercentile({self._path(question)},{place})" for place in (25, 75, 100)]
            case Trend():
                targets = [f"linearRegression({self._path(question)})"]
        start, end = ((moment - between) // 1_000 + self._shift_s for moment in (question.start_ms, question.end_ms))
        parameters = [("target", target) for target in targets] + [
            ("from", start),
            ("until", end),
            ("format", "json"),
            ("noCache", "1"),
        ]
        return Request("GET", f"/render?{urlencode(parameters)}")

    def answer(self, question: Question, body: bytes) -> Answer:
        answer = json.loads(body)
        rows = [
            [(self._milliseconds(second), value) for value, second in row["datapoints"] if value is not None]
            for row in answer
        ]
        match question:
            case Grouped():
                names = [row["target"] for row in answer]
                return {
                    (question.fields[0], name, time_ms) if question.by_frame else (name, "", time_ms): value
                    for name, points in zip(names, rows)
                    for time_ms, value in points
                }
            case Range():
                points = rows[0] if rows else []
                return [time_ms for time_ms, _ in points], [value for _, value in points]
            case Outliers():
                return tuple(points[0][1] for points in rows)
            case Trend():
                (first_ms, first), (last_ms, last) = rows[0][0], rows[0][-1]
                return ((last - first) / ((last_ms - first_ms) / 1_000),)

    def _grouped(self, question: Grouped, field: str) -> str:
        frames = f"{{{','.join(question.frames)}}}" if question.frames else "*"
        path = f"{self.dataset.measurement}.{frames}.{field}"
        window = f"'{question.window_ms // 60_000}min'"
        if question.by_frame:
            return f"aliasByNode(summarize({path},{window},'{CARBON_AGGREGATES[question.aggregate]}'),1)"
        return f"alias(summarize(maxSeries({path}),{window},'{CARBON_AGGREGATES[question.aggregate]}'),'{field}')"

    def _path(self, question: OneSeries) -> str:
        return ".".join((self.dataset.measurement, *(value for _, value in question.identity), question.field))

    def _milliseconds(self, second: int) -> int:
        return (second - self._shift_s) * 1_000
