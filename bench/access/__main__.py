"""Measures the cost of TLS and tokens for the server: CPU time per query, per write and per frame of the native
protocol.

Four servers run side by side: with neither TLS nor a token, with a token, with TLS, and with both. In each round, each
kind of request is sent to one server after the other; the order of the servers is random. In a round, all requests of a
kind to a server use one connection, except the queries that each open a new connection. CPU time is user and system
time of the server's process. A cell of the table has the median over rounds and, in parentheses, the ratio to the
server with neither (geometric mean of the ratios of the rounds) with its 95 % interval. Raw results go to
`bench-results/access.json`, which is not committed.
"""

import argparse
import http.client
import json
import os
import random
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench.common.process import Server
from bench.common.statistic import paired_ratio_interval
from bench.common.table import table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "agent" / "python"))

from tachograph import wire  # noqa: E402

SETUPS = {"neither": (False, False), "token": (True, False), "TLS": (False, True), "both": (True, True)}
QUERIES = 2_000
WRITES = 300
"""Fewer than the queries, because each write waits for the disk."""
FRAMES = 300
GREETINGS = 200
SAMPLES = 1_000
RESULTS = Path("bench-results/access.json")
HELLO, DICT, DATA, WELCOME, ACK = 1, 2, 3, 65, 66


class Subject:
    """A server with or without TLS and a token."""

    def __init__(self, tacho: str, place: Path, name: str, certificate: tuple[Path, Path]):
        self.name = name
        has_token, self.has_tls = SETUPS[name]
        data = place / name.replace(" ", "-")
        command = [tacho, "serve", "--data", str(data), "--http", "127.0.0.1:0", "--records", "127.0.0.1:0"]
        if self.has_tls:
            command += ["--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1])]
        data.mkdir(mode=0o700)
        self.token = ""
        if has_token:
            made = [tacho, "token", "add", "bench", "--role", "admin", "--data", str(data)]
            self.token = subprocess.run(made, check=True, capture_output=True, text=True).stdout.split()[-1]
        log = place / f"{data.name}.log"
        self.server = Server(log)
        self.server.start(command)
        self.server.wait_until(lambda: "records=" in log.read_text(), 60)
        found = re.search(r"http=\S*?:(\d+) records=\S*?:(\d+)", log.read_text())
        assert found, log.read_text()
        self.http_port, self.records_port = map(int, found.groups())
        self.trust = ssl.create_default_context(cafile=str(certificate[0]))

    def connect(self) -> http.client.HTTPConnection:
        if self.has_tls:
            return http.client.HTTPSConnection("127.0.0.1", self.http_port, timeout=60, context=self.trust)
        return http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=60)

    def request(self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None) -> None:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{self.name}: {method} {path} was answered with {answer.status}: {text[:200]!r}")


class Frames:
    """A connection of the native protocol that sends frames of samples and reads acknowledgements."""

    def __init__(self, subject: Subject):
        self.socket: socket.socket = socket.create_connection(("127.0.0.1", subject.records_port), 60)
        if subject.has_tls:
            self.socket = subject.trust.wrap_socket(self.socket, server_hostname="127.0.0.1")
        self.reader = wire.FrameReader()
        self.seq = 0
        self.time = time.time_ns()
        session = bytes([1]) + os.urandom(15)
        body = wire.hello(session, [("service", "bench"), ("host", "bench")], token=subject.token.encode())
        definitions = bytearray()
        wire.put_series(definitions, 1, [(b"__name__", b"bench"), (b"host", b"bench")])
        self.socket.sendall(wire.frame(HELLO, body) + wire.frame(DICT, bytes(definitions)))
        self.wait(WELCOME)

    def send(self, count: int) -> None:
        """Waits until the last frame is acknowledged."""
        for _ in range(count):
            self.seq += 1
            body = wire.data_head(self.seq, self.time)
            points = [(self.time + number * 1_000, number * 0.5) for number in range(SAMPLES)]
            wire.put_record(body, 1, wire.samples(1, 1, self.time, points))
            self.time += SAMPLES * 1_000
            self.socket.sendall(wire.frame(DATA, bytes(body)))
        while self.wait(ACK).varint() < self.seq:
            pass

    def wait(self, type_: int) -> wire.Body:
        while True:
            while found := self.reader.next():
                if found[0] == type_:
                    return found[1]
                if found[0] == 69:
                    raise RuntimeError(f"the server sent an error: {found[1].varint()} {found[1].string()}")
            received = self.socket.recv(65_536)
            if not received:
                raise RuntimeError("the server closed the connection")
            self.reader.push(received)


# Each function opens its own connections, because the server closes silent connections between two rounds.


def query(subject: Subject) -> None:
    connection = subject.connect()
    for _ in range(QUERIES):
        subject.request(connection, "GET", "/api/v1/query?query=bench_write")
    connection.close()


def write(subject: Subject) -> None:
    connection = subject.connect()
    at = time.time_ns()
    for number in range(WRITES):
        subject.request(connection, "POST", "/write", f"bench_write,host=a value={number} {at + number}".encode())
    connection.close()


def frame(subject: Subject) -> None:
    connection = Frames(subject)
    connection.send(FRAMES)
    connection.socket.close()


def greeting(subject: Subject) -> None:
    for _ in range(GREETINGS):
        connection = subject.connect()
        subject.request(connection, "GET", "/api/v1/query?query=bench_write")
        connection.close()


WORKS: dict[str, tuple[Callable[[Subject], None], int]] = {
    "query": (query, QUERIES),
    "write of one sample": (write, WRITES),
    f"frame of {SAMPLES:,} samples": (frame, FRAMES),
    "query on a new connection": (greeting, GREETINGS),
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m bench.access", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    chosen = parser.parse_args(arguments)
    tacho = os.path.abspath(os.environ.get("TACHO", "target/release/tacho"))
    with tempfile.TemporaryDirectory() as place:
        measure(tacho, Path(place), chosen.rounds)
    return 0


def measure(tacho: str, place: Path, rounds: int) -> None:
    certificate = make_certificate(place)
    subjects: list[Subject] = []
    runs: list[dict[str, object]] = []
    chance = random.Random(7)
    try:
        for name in SETUPS:
            subjects.append(Subject(tacho, place, name, certificate))
        # Round 0 is warm-up.
        for number in range(rounds + 1):
            for work, (function, count) in WORKS.items():
                for subject in chance.sample(subjects, len(subjects)):
                    before = subject.server.cpu_seconds()
                    function(subject)
                    micros = (subject.server.cpu_seconds() - before) / count * 1e6
                    if number:
                        runs.append({"round": number, "work": work, "setup": subject.name, "cpu_us": micros})
    finally:
        for subject in subjects:
            subject.server.stop()
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(runs, indent=1))
    print(table(["CPU us of the server per", *SETUPS], [row(work, runs) for work in WORKS]))


def row(work: str, runs: list[dict[str, object]]) -> list[str]:
    values = {name: [float(str(one["cpu_us"])) for one in runs if (one["work"], one["setup"]) == (work, name)] for name in SETUPS}
    cells = [work]
    for name, found in values.items():
        ratio = paired_ratio_interval(found, values["neither"])
        is_base = name == "neither"
        cells.append(f"{median(found):.1f}" + ("" if is_base else f" ({ratio.value:.2f}: {ratio.low:.2f}..{ratio.high:.2f})"))
    return cells


def make_certificate(place: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key: ECDSA on P-256."""
    certificate, key = place / "cert.pem", place / "key.pem"
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subprocess.run([*command, *names, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    key.chmod(0o600)
    return certificate, key


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
