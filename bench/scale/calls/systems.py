"""The systems that take calls: Tachograph, ClickHouse (chdb) and DuckDB on Parquet."""

import json
import subprocess
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from ...common.client import Request
from ...common.install import python
from ...common.process import disk_bytes
from ...store.dataset import Dataset
from ...store.systems import Tacho
from ...store.systems.tacho import TachoBefore
from .generator import BINARY, Calls
from .questions import Question, parsed

ENVIRONMENT = "python-calls"
PACKAGES = ["chdb==4.4.0", "duckdb==2.0.1"]
WORKER = Path(__file__).with_name("worker.py")
COLUMNS = {
    "trace_id": "UUID",
    "span_id": "UInt64",
    "parent_span_id": "UInt64",
    "service": "String",
    "host": "String",
    "operation": "String",
    "kind": "String",
    "start_ns": "Int64",
    "duration_ns": "UInt64",
    "self_ns": "UInt64",
    "failed": "UInt8",
    "status": "UInt16",
    "request_id": "UUID",
    "exception": "String",
}
"""The columns of the generator with their types in ClickHouse."""


@dataclass
class Asked:
    """The cost of one answer in seconds and bytes. `value` is compared with the values of other systems."""

    wall: float
    cpu: float
    peak: int
    value: object


class CallSystem(ABC):
    """A system in the workload `calls`."""

    name: str
    title: str
    notes: tuple[str, ...] = ()

    @abstractmethod
    def start(self) -> None:
        """Returns when calls can be written."""

    @abstractmethod
    def ask(self, question: Question) -> Asked | None:
        """None if the system does not offer the question."""

    @abstractmethod
    def size(self) -> int:
        """Bytes on disk after loading."""

    @abstractmethod
    def stop(self) -> None:
        """Ends the processes."""


class TachoCalls(CallSystem):
    """A Tachograph server, which gets the calls as agents send them."""

    name, title = Tacho.name, Tacho.title
    kind = Tacho

    def __init__(self, cache: Path, folder: Path):
        self._system = self.kind(cache, folder, Dataset("scale-calls", "calls", "calls", [], 0))
        folder.mkdir(parents=True)

    def start(self) -> None:
        self._system.start()

    def load(self, calls: Calls) -> tuple[float, float, dict]:
        """Processor time of the server until all is merged, wall time until all is acknowledged, and the generator's
        figures."""
        began = time.monotonic()
        generated = calls.send(self._system.records_port)
        wall = time.monotonic() - began
        self._system.settle()
        return self._system.cpu_seconds(), wall, generated

    def memory_peak(self) -> int:
        return self._system.memory().peak

    def ask(self, question: Question) -> Asked | None:
        if question.ours is None:
            return None
        self._system.server.reset_peak()
        cpu, began = self._system.cpu_seconds(), time.monotonic()
        body = self._system.send(Request("GET", question.ours))
        wall, cpu = time.monotonic() - began, self._system.cpu_seconds() - cpu
        return Asked(wall, cpu, self.memory_peak(), question.value(parsed(body)))

    def size(self) -> int:
        return self._system.disk_bytes_live()

    def stop(self) -> None:
        self._system.stop()


class TachoCallsBefore(TachoCalls):
    """An earlier build."""

    name, title, kind = TachoBefore.name, TachoBefore.title, TachoBefore


class Peer(CallSystem):
    """A system in a Python package, in its own process."""

    quantile: str
    """Expression for a quantile of the durations; `{}` stands for its share, such as 0.99."""

    def __init__(self, cache: Path, folder: Path):
        self._python = cache / ENVIRONMENT / "bin/python"
        self._folder = folder
        self._process: subprocess.Popen | None = None
        folder.mkdir(parents=True)

    @classmethod
    def install(cls, cache: Path) -> str:
        """Installs the packages of all peers. Returns the version of this peer."""
        if not BINARY.exists():
            raise FileNotFoundError(f"{BINARY} is missing; make bench-scale builds it")
        python(cache, ENVIRONMENT, PACKAGES)
        return next(package for package in PACKAGES if package.startswith(cls.name)).partition("==")[2]

    @abstractmethod
    def prepare(self) -> list[str]:
        """Statements before the first slice."""

    @abstractmethod
    def take(self, file: Path, number: int) -> str:
        """The statement that loads a slice of CSV."""

    @abstractmethod
    def finish(self) -> list[str]:
        """Statements after the last slice."""

    @property
    @abstractmethod
    def spans(self) -> str:
        """The table in queries."""

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._python), str(WORKER), self.name, str(self._folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        for statement in self.prepare():
            self.run(statement)

    def run(self, statement: str) -> dict:
        """The answer to one statement. Raises RuntimeError."""
        self._process.stdin.write(json.dumps(statement) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"failure": f"the process ended with {self._process.wait()}"}
        if failure := answer.get("failure"):
            raise RuntimeError(failure)
        return answer

    def ask(self, question: Question) -> Asked | None:
        quantiles = {f"p{percent}": self.quantile.format(percent / 100) for percent in (50, 95, 99)}
        answer = self.run(question.sql.format(spans=self.spans, **quantiles))
        return Asked(answer["wall"], answer["cpu"], answer["peak"], question.peer_value(answer["rows"]))

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None


class ClickHouse(Peer):
    """ClickHouse as a library (chdb), with a table that suits these questions."""

    name, title = "chdb", "ClickHouse (chdb)"
    notes = (
        "one table in the order (service, operation, start), LowCardinality texts, ZSTD, Delta for times, bloom filters "
        "for trace and request ids; self time is a column, which the system need not compute; loads CSV; does not sync",
    )
    quantile = "quantileTDigest({})(duration_ns)"
    spans = "bench.spans"

    def prepare(self) -> list[str]:
        low = "LowCardinality(String)"
        types = {"service": low, "host": low, "operation": low, "kind": low, "exception": low}
        codecs = {"start_ns": "Delta, ZSTD(1)", "duration_ns": "T64, ZSTD(1)", "self_ns": "T64, ZSTD(1)"}
        columns = [f"{name} {types.get(name, kind)} CODEC({codecs.get(name, 'ZSTD(1)')})" for name, kind in COLUMNS.items()]
        filters = [f"INDEX of_{name} {name} TYPE bloom_filter(0.001) GRANULARITY 1" for name in ("trace_id", "request_id")]
        table = f"CREATE TABLE {self.spans} ({', '.join(columns + filters)}) ENGINE = MergeTree"
        return ["CREATE DATABASE bench", f"{table} ORDER BY (service, operation, start_ns)"]

    def take(self, file: Path, number: int) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        rows = f"SELECT * FROM file('{file}', CSV, '{columns}')"
        return f"INSERT INTO {self.spans} {rows} SETTINGS input_format_csv_empty_as_default = 1"

    def finish(self) -> list[str]:
        return [f"OPTIMIZE TABLE {self.spans} FINAL"]

    def size(self) -> int:
        rows = self.run("SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'bench'")["rows"]
        return int(rows[0][0])


class DuckDb(Peer):
    """DuckDB on Parquet files."""

    name, title = "duckdb", "DuckDB on Parquet"
    notes = (
        "one Parquet file per slice of about 1.5 million calls, sorted by service, operation and start, zstd; self time is a "
        "column; loads CSV; does not sync",
    )
    quantile = "approx_quantile(duration_ns, {})"
    TYPES = {
        "UInt64": "UBIGINT",
        "Int64": "BIGINT",
        "UInt8": "UTINYINT",
        "UInt16": "USMALLINT",
        "String": "VARCHAR",
        "UUID": "UUID",
    }

    @property
    def spans(self) -> str:
        return f"read_parquet('{self._parquet}/*.parquet')"

    @property
    def _parquet(self) -> Path:
        return self._folder / "parquet"

    def prepare(self) -> list[str]:
        self._parquet.mkdir()
        return []

    def take(self, file: Path, number: int) -> str:
        columns = ", ".join(f"'{name}': '{self.TYPES[kind]}'" for name, kind in COLUMNS.items())
        rows = f"SELECT * FROM read_csv('{file}', header = false, columns = {{{columns}}})"
        return (
            f"COPY ({rows} ORDER BY service, operation, start_ns) "
            f"TO '{self._parquet}/{number:06}.parquet' (FORMAT parquet, COMPRESSION zstd)"
        )

    def finish(self) -> list[str]:
        return []

    def size(self) -> int:
        return disk_bytes(self._parquet)


PEERS = (ClickHouse, DuckDb)
