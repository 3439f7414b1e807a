"""A separate PostgreSQL server for one test class, and a Python interpreter with its drivers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from .server import free_port

MISSING = "`make packages` installs what the tests need"


@cache
def python() -> str:
    """An interpreter that has psycopg2 and psycopg: the current one, or else Debian's."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        found = shutil.which(candidate)
        command = [found or candidate, "-c", "import psycopg2, psycopg"]
        if found and subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return found
    raise AssertionError(f"python3-psycopg2 and python3-psycopg are missing: {MISSING}")


def version(program: Path) -> list[int]:
    """The version in the path of a program of Debian, such as 17 or 9.6. As text, 9 would come after 17."""
    return [int(part) for part in program.parent.parent.name.split(".") if part.isdigit()]


class Postgres:
    def __init__(self) -> None:
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=version)
        if not programs:
            raise AssertionError(f"PostgreSQL is missing: {MISSING}")
        self.programs = programs[-1].parent
        self.folder = tempfile.mkdtemp(prefix="tachograph-postgres-")
        self.port = free_port()
        self.user: list[str] = []
        if os.getuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(self.folder, "postgres")
            self.user = ["runuser", "-u", "postgres", "--"]
        try:
            self._start()
        except BaseException:
            shutil.rmtree(self.folder)
            raise

    def _start(self) -> None:
        self._run("initdb", "-D", self._data, "-U", "board", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off -k {self.folder}"
        self._run("pg_ctl", "-D", self._data, "-w", "-l", f"{self.folder}/log", "-o", options, "start")

    @property
    def _data(self) -> str:
        return f"{self.folder}/data"

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=board dbname=postgres"

    def close(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder)

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self.user, str(self.programs / program), *arguments]
        # The output goes to a file, because the server that pg_ctl starts would keep a pipe open.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", check=False)
            output.seek(0)
            said = output.read().decode("utf-8", "replace")
        if done.returncode:
            raise AssertionError(f"{program} ended with status {done.returncode}: {said}")
