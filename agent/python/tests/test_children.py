"""Processes started by a recorded program are recorded, and otherwise unchanged."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

from .packages import packages
from .server import PATIENCE_S, ROOT, ServerTest, free_port, until

LIB = "def work(): return 7\n"
CHILD = """
import sys, lib
print(lib.work(), sys.path[1:], getattr(sys, "own", None), __file__, sys.argv)
try:
    import sitecustomize
    print(getattr(sitecustomize, "WHAT", None))
except ImportError: print("none")
"""
PARENT = """
import subprocess, sys
for command in (["child.py", "a"], ["-m", "child"], ["-c", "import lib; print(lib.work())"], ["-E", "-c", "print(1)"]):
    print(subprocess.run([sys.executable, *command], stdout=subprocess.PIPE, text=True, check=True).stdout)
"""
SPAWN = """
import multiprocessing, lib
def run(n): return lib.work() + n
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        print(pool.map(run, range(4), 1))
        pool.close(); pool.join()
    process = context.Process(target=lib.work)
    process.start(); process.join()
    print(process.exitcode)
"""
MANAGE = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "shop_settings"
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""
SETTINGS = """
SECRET_KEY, ROOT_URLCONF, ALLOWED_HOSTS, DEBUG, INSTALLED_APPS = "x", "shop_urls", ["*"], True, []
"""
URLS = """
from django.http import HttpResponse
from django.urls import path
def index(request): return HttpResponse("bicycles")
urlpatterns = [path("", lambda request: index(request))]
"""


class Start(unittest.TestCase):
    """The start of a child's interpreter before its program, without a server."""

    def child(self, folder: str, program: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(folder) / "tachograph" / "child"),
            "TACHO_SERVER": f"127.0.0.1:{free_port()}",
        }
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=True)

    def copy(self) -> str:
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        shutil.copytree(ROOT / "tachograph", Path(folder) / "tachograph", ignore=shutil.ignore_patterns("__pycache__"))
        return folder

    def test_modules_next_to_the_agent_do_not_shadow_the_standard_library(self) -> None:
        folder = self.copy()
        (Path(folder) / "socket.py").write_text("raise RuntimeError('not the standard library')")
        done = self.child(folder, "import sys, socket; print(sys.modules['tachograph'].__file__, sys.path)")
        self.assertNotIn("not recorded", done.stderr)
        self.assertIn(str(Path(folder) / "tachograph" / "__init__.py"), done.stdout)
        self.assertNotIn(f"'{folder}'", done.stdout)

    def test_an_interpreter_that_is_too_old_continues(self) -> None:
        file = ROOT / "tachograph" / "child" / "sitecustomize.py"
        program = f"import runpy, sys; sys.version_info = (3, 8, 18, 'final', 0); runpy.run_path({str(file)!r})"
        done = subprocess.run(
            [sys.executable, "-c", f"{program}; print('tachograph' in sys.modules)"],
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
        self.assertEqual((done.stdout, done.stderr), ("False\n", ""))


class Children(ServerTest):
    def program(self, **files: str) -> str:
        folder = self.folder()
        for name, text in files.items():
            path = Path(folder) / f"{name.replace('__in__', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return folder

    def both(self, folder: str, *program: str, path: str = "") -> tuple[str, dict[str, int]]:
        said = []
        for prefix in ((), ("-m", "tachograph", "run")):
            environment = self.environment(include="lib")
            environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), path] if path else [str(ROOT)])
            command = [sys.executable, *prefix, *program]
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            said.append(done.stdout)
        if not path:
            said = [text.replace("none\n", "None\n") for text in said]  # only under the agent, there is a module `sitecustomize`
        self.assertEqual(said[1], said[0])
        return said[1], self.server.counts(self.service)

    def test_subprocesses_are_recorded(self) -> None:
        folder = self.program(app=PARENT, child=CHILD, lib=LIB)
        _, counts = self.both(folder, "app.py")
        self.assertEqual(counts, {"lib.work": 3})

    def test_the_sitecustomize_of_the_program_runs_in_subprocesses(self) -> None:
        own = "import sys\nsys.own = 'own start'\nWHAT = 'own'\n"
        folder = self.program(app=PARENT, child=CHILD, lib=LIB, own__in__sitecustomize=own)
        said, counts = self.both(folder, "app.py", path=f"{folder}/own")
        self.assertIn("own start", said)
        self.assertEqual(counts, {"lib.work": 3})

    def test_spawned_processes_are_recorded(self) -> None:
        said, counts = self.both(self.program(app=SPAWN, lib=LIB), "app.py")
        self.assertEqual((said, counts), ("[7, 8, 9, 10]\n0\n", {"lib.work": 5}))

    def test_the_server_of_django_that_restarts_itself_is_recorded(self) -> None:
        folder = self.program(manage=MANAGE, shop_settings=SETTINGS, shop_urls=URLS)
        port = free_port()
        environment = {**self.environment(include="shop_urls"), "PYTHONPATH": f"{ROOT}:{packages()}"}
        command = [sys.executable, "-m", "tachograph", "run", "manage.py", "runserver", f"127.0.0.1:{port}"]
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        ) as server:
            try:

                def answer() -> str:
                    try:
                        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE_S) as found:
                            return found.read().decode()
                    except OSError:
                        return ""

                self.assertEqual(until(answer, "an answer"), "bicycles")
                counts = until(lambda: self.server.counts(self.service), "a call of the child")
                self.assertEqual(counts.get("shop_urls.index"), 1)
            finally:
                os.killpg(server.pid, signal.SIGKILL)
