"""A real `tacho serve`, and Python programs with the agent in their own processes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request
from pathlib import Path
from typing import IO, Any, Callable, Optional

ROOT = Path(__file__).resolve().parents[1]
BINARY = Path(os.environ.get("TACHO") or ROOT / "../../target/release/tacho").resolve()

# Limit for events that normally take milliseconds.
PATIENCE_S = 60.0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until(find: Callable[[], Any], what: str) -> Any:
    """Calls `find` until its result is true; returns this result."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = find()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come within {PATIENCE_S} s")
        time.sleep(0.02)


def _written(file: IO[bytes]) -> bytes:
    """The content that a process has written. The file position is not changed, because the process shares it."""
    return os.pread(file.fileno(), 1 << 20, 0)


class Server:
    """Data in a separate directory; ports stay the same across restarts."""

    def __init__(self, *flags: str, context: Optional[ssl.SSLContext] = None) -> None:
        """`flags`: more flags of `tacho serve`. `context`: for the queries, if the server uses TLS."""
        if not BINARY.exists():
            raise AssertionError(f"{BINARY} is missing: run `make build` in the root, or set TACHO to another binary")
        self.flags = flags
        self.context = context
        self.name = "127.0.0.1"
        # The token of the queries.
        self.token = ""
        self.folder = tempfile.TemporaryDirectory()
        # The system chooses the ports at the first start. A port that was free earlier could be in use by then.
        self.http = self.records = 0
        self.process: Optional[subprocess.Popen[bytes]] = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.records}"

    def start(self) -> None:
        ports = ["--http", f"127.0.0.1:{self.http}", "--records", self.address]
        command = [str(BINARY), "serve", "--data", self.folder.name, *ports, *self.flags]
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as faults:  # a full pipe would block the server
            self.process = subprocess.Popen(command, stdout=output, stderr=faults, cwd=self.folder.name)
            said = until(lambda: self._is_ready(output, faults), "the server")
        self.http, self.records = int(said[1]), int(said[2])

    def _is_ready(self, output: IO[bytes], faults: IO[bytes]) -> Optional[re.Match[bytes]]:
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with status {self.process.returncode}: {_written(faults)!r}")
        return re.search(rb"http=\S+:(\d+) records=\S+:(\d+)\s", _written(output))

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def close(self) -> None:
        self.kill()
        self.folder.cleanup()

    def add_token(self, name: str, role: str, *flags: str) -> str:
        """The text of a new token. After the first call of this method, the server requires tokens."""
        return self._run_token("add", name, "--role", role, *flags).strip()

    def revoke_token(self, name: str) -> None:
        self._run_token("revoke", name)

    def _run_token(self, *arguments: str) -> str:
        command = [str(BINARY), "token", *arguments, "--data", self.folder.name]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode:
            raise AssertionError(done.stderr)
        return done.stdout

    def get(self, path: str, **parameters: Any) -> Any:
        query = urllib.parse.urlencode(parameters, doseq=True)
        url = f"http{'s' if self.context else ''}://{self.name}:{self.http}{path}?{query}"
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_S, context=self.context) as answer:
            return json.load(answer)

    # ---- queries of the tests ----

    def traces(self, service: str) -> list[dict[str, Any]]:
        return self.get("/api/traces", service=service, limit=10_000)["traces"]

    def counts(self, service: str) -> dict[str, int]:
        return {one["operation"]: one["count"] for one in self.get("/api/operations", service=service)["operations"]}

    def tree(self, trace_id: str, facts: tuple[str, ...] = ()) -> list[str]:
        """One line per call of a trace, indented by its depth: service, operation, `!` if it failed, `~` if it has not ended, and
        those of its attributes that `facts` names."""
        lines = []
        for span in self.get(f"/api/traces/{trace_id}")["spans"]:
            told = "".join(f" {key}={span['attributes'][key]}" for key in facts if key in span["attributes"])
            mark = {"ok": "", "failed": "!", "running": "~"}[span["outcome"]]
            lines.append(f"{'  ' * span['depth']}{span['service']}: {span['operation']}{mark}{told}")
        return lines

    def last(self, query: str) -> dict[tuple[tuple[str, str], ...], float]:
        """The newest value of each series of a PromQL selector, by its labels without name, host and instance."""
        found = {}
        for one in self.get("/api/v1/query", query=query)["data"]["result"]:
            labels = {key: value for key, value in one["metric"].items() if key not in ("__name__", "host", "instance")}
            found[tuple(sorted(labels.items()))] = float(one["value"][1])
        return found


class ServerTest(unittest.TestCase):
    """Each class has its own server, each test its own service."""

    maxDiff = None
    server: Server

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        cls.server.start()

    @property
    def service(self) -> str:
        return self._testMethodName

    def environment(self, **settings: str) -> dict[str, str]:
        """`settings`: settings of the agent, by their names without the prefix `TACHO_`."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("TACHO")}
        ours = {f"TACHO_{key.upper()}": value for key, value in settings.items()}
        base = {"TACHO_SERVER": self.server.address, "TACHO_SERVICE": self.service, "TACHO_FLUSH_MAX": "30s"}
        return {**kept, **base, **ours, "PYTHONPATH": str(ROOT)}

    def launch(
        self, source: str, *arguments: str, python: str = sys.executable, folder: Optional[str] = None, **settings: str
    ) -> subprocess.Popen[str]:
        """Starts a program given as text. `arguments` precede it on the command line, such as `-m tachograph run`."""
        home = folder or self.folder()
        script = Path(home) / "app.py"
        script.write_text(source, "utf-8")
        process = subprocess.Popen(
            [python, *arguments, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=home,
            env=self.environment(**settings),
        )
        self.addCleanup(_end, process)
        return process

    def folder(self) -> str:
        """A temporary directory, deleted after the test."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def run_program(self, source: str, *arguments: str, **options: Any) -> tuple[str, str]:
        """(standard output, standard error) of a program that must end with status 0."""
        process = self.launch(source, *arguments, **options)
        out, err = process.communicate(timeout=2 * PATIENCE_S)
        self.assertEqual(process.returncode, 0, err)
        return out, err

    def only_tree(self, service: str = "", facts: tuple[str, ...] = ()) -> list[str]:
        traces = self.server.traces(service or self.service)
        self.assertEqual(len(traces), 1, traces)
        return self.server.tree(traces[0]["trace_id"], facts)


def _end(process: subprocess.Popen[str]) -> None:
    if process.returncode is None:
        process.kill()
        process.communicate()
