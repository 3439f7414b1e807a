"""Each call in real servers and other programs is recorded once, whichever of their processes makes it. The programs end as
without the agent."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from .packages import packages
from .server import PATIENCE_S, ROOT, ServerTest, free_port, until

REQUESTS = 20
APP = """
import lib, os
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{lib.work()} {os.getpid()}".encode()]
async def asynchronous(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown": return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": f"{lib.work()} {os.getpid()}".encode()})
def make():
    from flask import Flask
    app = Flask("app")
    @app.route("/")
    def index(): return f"{lib.work()} {os.getpid()}"
    return app
"""
LIB = "def work(): return 7\n"
TASKS = """
import lib, os, sys
from celery import Celery, signals
app = Celery("tasks", broker="memory://", backend="cache+memory://")
app.conf.worker_hijack_root_logger = False
@app.task
def add(n):
    print(f"done{lib.work() + n}")
@signals.worker_ready.connect
def ready(**_):
    for n in range(20): add.delay(n)
"""
POOL = """
import multiprocessing, sys, lib
def run(n): return lib.work() + n
def ends(n):
    lib.work()
    sys.exit(n)
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        print(pool.map(run, range(4), 1))
        pool.close(); pool.join()
    for n in (0, 3):
        process = context.Process(target=ends, args=(n,))
        process.start(); process.join()
        print(process.exitcode)
"""
TESTS = """
import lib, pytest
@pytest.mark.parametrize("n", range(5))
def test_work(n): assert lib.work() == 7
def test_fails(): assert lib.work() == 8
"""
# What a program does after its first call of `lib.work`, and the number of all calls that must be recorded. Most programs end
# without `atexit`.
ENDS = [
    ("import os; os._exit(3)", 1),
    ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 1),
    ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 1),
    ("import os, signal; os.killpg(0, signal.SIGHUP)", 1),
    ("import signal; signal.raise_signal(signal.SIGTERM)", 1),
    ("import signal; signal.raise_signal(signal.SIGRTMIN + 1)", 1),
    ("import signal; signal.signal(signal.SIGTERM, lambda *_: print('no')); signal.raise_signal(signal.SIGTERM); lib.work()", 2),
    ("import signal; signal.raise_signal(signal.SIGWINCH); lib.work()", 2),
    ("import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'import lib; lib.work()'])", 2),
    ("import os, sys; os.execlp(sys.executable, sys.executable, '-c', 'import lib; lib.work(); raise SystemExit(4)')", 2),
    ("import os, sys\ntry: os.execv('/nowhere', ['x'])\nexcept OSError: lib.work()", 2),
    ("import os\nif os.fork() == 0: lib.work(); os._exit(3)\nprint(os.wait()[1])", 2),
    ("import os\ntry: os._exit('three')\nexcept TypeError as e: print(e); lib.work()", 2),
    ("import os, pickle; print(pickle.loads(pickle.dumps(os.kill)) is os.kill)", 1),
]
FILES = {"app": APP, "lib": LIB, "tasks": TASKS, "pool": POOL, "test_lib": TESTS}


class Programs(ServerTest):
    def setUp(self) -> None:
        self.home = self.folder()
        for name, text in FILES.items():
            (Path(self.home) / f"{name}.py").write_text(text)

    def command(self, program: tuple[str, ...], is_watched: bool) -> tuple[list[str], dict[str, str]]:
        environment = {**self.environment(include="lib"), "PYTHONPATH": f"{ROOT}:{packages()}", "PYTHONDONTWRITEBYTECODE": "1"}
        return [sys.executable, *(("-m", "tachograph", "run") if is_watched else ()), *program], environment

    @contextlib.contextmanager
    def started(self, program: tuple[str, ...], is_watched: bool) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        command, environment = self.command(program, is_watched)
        said = Path(self.folder()) / "said"
        with said.open("wb") as out:
            process = subprocess.Popen(
                command, cwd=self.home, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        try:
            yield process, said
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def check_server(self, *program: str, with_signal: int = signal.SIGTERM) -> None:
        """Runs a server without the agent and with it, and sends it `REQUESTS` requests each time. Checks that child processes
        answer them, that one call per request is recorded, and that the server ends in the same way."""
        ends = []
        for is_watched in (False, True):
            port = free_port()
            arguments = tuple(one.replace("PORT", str(port)) for one in program)
            with self.started(arguments, is_watched) as (process, said):
                pids = set()
                for at in range(REQUESTS):
                    answer = until(lambda port=port, said=said, process=process: _asked(port, process, said), "an answer")
                    pids.add(answer.split()[1])
                    self.assertEqual(answer.split()[0], "7", at)
                self.assertNotIn(str(process.pid), pids)
                os.kill(process.pid, with_signal)
                ends.append((process.wait(PATIENCE_S), "Traceback" in said.read_text()))
                if is_watched:
                    counts = until(lambda: self.enough(REQUESTS), "all calls")
                    self.assertEqual(counts, {"lib.work": REQUESTS}, said.read_text())
                    self.assertNotIn("Error", said.read_text())
        self.assertEqual(ends[1], ends[0])

    def enough(self, count: int) -> dict[str, int]:
        found = self.server.counts(self.service)
        return found if found.get("lib.work", 0) >= count else {}

    # ---- servers that restart themselves ----

    def test_flask_with_its_reloader(self) -> None:
        self.check_server("-m", "flask", "--app", "app:make", "run", "--debug", "--port", "PORT", with_signal=signal.SIGINT)

    def test_uvicorn_with_its_reloader(self) -> None:
        self.check_server("-m", "uvicorn", "app:asynchronous", "--reload", "--port", "PORT")

    # ---- servers with workers ----

    def test_uvicorn_with_workers(self) -> None:
        self.check_server("-m", "uvicorn", "app:asynchronous", "--workers", "2", "--port", "PORT")

    def test_gunicorn(self) -> None:
        self.check_server("-m", "gunicorn", "app:application", "-w", "2", "-b", "127.0.0.1:PORT")

    def test_gunicorn_with_threads(self) -> None:
        self.check_server("-m", "gunicorn", "app:application", "-w", "2", "--threads", "2", "-b", "127.0.0.1:PORT")

    def test_gunicorn_with_gevent(self) -> None:
        # Even without the agent, a gevent worker may run until gunicorn's timeout of 30 s.
        patience = ("--graceful-timeout", "10")
        self.check_server("-m", "gunicorn", "app:application", "-w", "2", "-k", "gevent", *patience, "-b", "127.0.0.1:PORT")

    def test_gunicorn_with_uvicorn_workers(self) -> None:
        worker = "uvicorn_worker.UvicornWorker"
        self.check_server("-m", "gunicorn", "app:asynchronous", "-w", "2", "-k", worker, "-b", "127.0.0.1:PORT")

    def test_celery_with_worker_processes(self) -> None:
        ends = []
        program = ("-m", "celery", "-A", "tasks", "worker", "-P", "prefork", "-c", "2", "--without-gossip", "--without-mingle")
        for is_watched in (False, True):
            with self.started((*program, "-l", "WARNING"), is_watched) as (process, said):
                until(lambda said=said: said.read_text().count("done") >= REQUESTS, "all tasks")
                os.kill(process.pid, signal.SIGTERM)
                ends.append(process.wait(PATIENCE_S))
                if is_watched:
                    counts = until(lambda: self.enough(REQUESTS), "all calls")
                    self.assertEqual(counts, {"lib.work": REQUESTS}, said.read_text())
        self.assertEqual(ends[1], ends[0])

    # ---- programs that end by themselves ----

    def check_run(self, *program: str, calls: int, service: str = "", is_group: bool = False) -> None:
        """Output, standard error and exit status are the same as without the agent. `is_group`: the program may signal its
        process group."""
        runs = []
        for is_watched in (False, True):
            command, environment = self.command(program, is_watched)
            environment["TACHO_SERVICE"] = service or self.service
            options = {"cwd": self.home, "env": environment, "timeout": 2 * PATIENCE_S, "start_new_session": is_group}
            done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
            # Lines with " in " state durations, which differ between the runs.
            told = [line for line in done.stdout.splitlines() if " in " not in line]
            lines = [re.sub("0x[0-9a-f]+", "0x", line) for line in told]
            faults = [line for line in done.stderr.splitlines() if " tachograph: the pattern lib has selected no" not in line]
            runs.append((done.returncode, lines, faults))
        self.assertEqual(runs[1], runs[0])
        self.assertEqual(self.server.counts(service or self.service), {"lib.work": calls})

    def test_processes_that_are_forked(self) -> None:
        self.check_run("pool.py", "fork", calls=6)

    def test_processes_that_are_spawned(self) -> None:
        self.check_run("pool.py", "spawn", calls=6)

    def test_processes_of_a_server_that_forks(self) -> None:
        self.check_run("pool.py", "forkserver", calls=6)

    def test_programs_that_may_end_without_running_exit_handlers(self) -> None:
        for at, (source, calls) in enumerate(ENDS):
            with self.subTest(source):
                Path(self.home, f"end{at}.py").write_text(f"import lib\nlib.work()\n{source}\n")
                self.check_run(f"end{at}.py", calls=calls, service=f"{self.service}{at}", is_group=True)

    def test_pytest(self) -> None:
        self.check_run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_lib.py", calls=6)


def _asked(port: int, process: subprocess.Popen[bytes], said: Path) -> str:
    if process.poll() is not None:
        raise AssertionError(f"the server ended with {process.returncode}: {said.read_text()}")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE_S) as found:
            return found.read().decode()
    except OSError:
        return ""
