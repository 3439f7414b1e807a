"""A program under `python -m tachograph run` has the same `__main__`, `sys.argv` and `sys.path` as without the agent, and ends in
the same way."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
import zipapp
from pathlib import Path

from .server import PATIENCE_S, ServerTest

LOOK = """
import atexit, builtins, os, sys, threading
import __main__ as found
def facts():
    spec = __spec__
    return {
        "name": __name__, "file": globals().get("__file__"), "package": __package__, "doc": __doc__,
        "cached": globals().get("__cached__"),
        "spec": spec and (spec.name, spec.origin, spec.parent, type(spec.loader).__name__, spec.has_location,
            spec.cached),
        "loader": (getattr(__loader__, "__name__", type(__loader__).__name__), getattr(__loader__, "path", None)),
        "builtins": __builtins__ is builtins, "names": sorted(name for name in globals() if name != "__tachograph_record__"),
        "argv": sys.argv, "path": sys.path, "main": sys.modules["__main__"] is found and vars(found) is globals(),
        "code": (facts.__code__.co_filename, facts.__module__),
        "source": bool(getattr(__loader__, "get_source", len)("__main__")),
    }
class Text(str): pass
def other(): pass
other()
for name, fact in facts().items(): print(name, fact)
import pickle
print(pickle.loads(pickle.dumps(Text("x"))), getattr(sys, "orig_argv", [sys.executable])[0] == sys.executable)
def later():
    import time
    threading.main_thread().join()
    print("later", sys.modules["__main__"] is found, pickle.loads(pickle.dumps(Text("y"))), Text)
threading.Thread(target=later).start()
atexit.register(lambda: print("end", facts()["main"]))
"""
RELATIVE = "from . import other\nprint(other.__name__, __package__)\n" + LOOK
ENDS = [
    "raise SystemExit(3)",
    "raise SystemExit('text')",
    "raise KeyError(1)",
    "import os; os._exit(5)",
    "raise KeyboardInterrupt",
    "import sys; sys.exit()",
    "x =",
    "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "import sys; sys.excepthook = lambda *what: print(what[0].__name__); 1 / 0",
    "import threading; threading.Thread(target=lambda: print('later')).start(); raise SystemExit(4)",
]


class Main(ServerTest):
    def both(self, folder: str, *program: str, flags: tuple[str, ...] = (), include: str = "nothing.here") -> str:
        """Runs a program without the agent and with it. The exit status, the output and the last line of standard error must be
        the same; lines of the agent's log are ignored. Returns the output."""
        runs = []
        for prefix in ((), ("-m", "tachograph", "run")):
            command = [sys.executable, *flags, *prefix, *program]
            environment = {**self.environment(include=include), "PYTHONDONTWRITEBYTECODE": "1"}
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False
            )
            lines = [line for line in done.stderr.splitlines() if " tachograph: " not in line]
            runs.append((done.returncode, done.stdout, lines[-1:]))
        self.assertEqual(runs[1], runs[0])
        return runs[0][1]

    def files(self, **files: str) -> str:
        folder = self.folder()
        for name, text in files.items():
            path = Path(folder) / name.replace("__in__", "/").replace("_py", ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return folder

    def test_scripts_see_the_same_environment(self) -> None:
        folder = self.files(app_py=LOOK, sub__in__tool_py=LOOK)
        os.symlink(Path(folder) / "sub" / "tool.py", Path(folder) / "link.py")
        os.symlink(folder, Path(folder) / "sub" / "up")
        for program in ("app.py", "./app.py", "sub/tool.py", "sub/../app.py", "link.py", "sub/up/app.py", f"{folder}/app.py"):
            for include in ("nothing.here", "app.other,tool.other,link.other"):
                said = self.both(folder, program, "--a", "b c", include=include)
                self.assertIn("end True", said)
        self.assertEqual(self.server.counts(self.service), {"app.other": 5, "tool.other": 1, "link.other": 1})

    def test_flags_have_the_same_effect(self) -> None:
        folder = self.files(app_py=LOOK)
        for flags in (("-O",), ("-X", "utf8"), *([("-P",)] if sys.version_info >= (3, 11) else [])):
            self.both(folder, "app.py", flags=flags)

    def test_compiled_scripts_see_the_same_environment(self) -> None:
        folder = self.files(app_py=LOOK)
        py_compile.compile(f"{folder}/app.py", cfile=f"{folder}/app.pyc")
        self.both(folder, "app.pyc")

    def test_modules_see_the_same_environment(self) -> None:
        names = {"tool_py": LOOK, "shop__in____init___py": "", "shop__in____main___py": RELATIVE, "shop__in__other_py": ""}
        folder = self.files(**names, shop__in__server_py=RELATIVE)
        for name in ("tool", "shop", "shop.server", "shop.__main__"):
            self.both(folder, "-m", name, "--a")
        for name in ("nosuch", "shop.nosuch", "tool.py"):
            self.both(folder, "-m", name)

    def test_folders_and_zip_files_see_the_same_environment(self) -> None:
        folder = self.files(box__in____main___py=LOOK, box__in__other_py="", empty__in__x_py="")
        zipapp.create_archive(f"{folder}/box", f"{folder}/box.pyz")
        for program in ("box", "./box", "box.pyz", f"{folder}/box", "empty", "nosuch.py"):
            self.both(folder, program, "--a")

    def test_programs_end_in_the_same_way(self) -> None:
        for number, source in enumerate(ENDS):
            self.both(self.files(app_py=source), "app.py")
            if number < 3:
                self.both(self.files(app_py=source), "-m", "app")
