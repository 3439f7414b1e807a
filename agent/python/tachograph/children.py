"""Records the Python processes that a program starts. Servers that restart themselves (`manage.py runserver`, `--reload`) and
`multiprocessing` with `spawn` work in such processes.

The agent puts a directory at the front of PYTHONPATH, which the processes inherit. So each interpreter runs
`child/sitecustomize.py` from this directory at its start. Before: agent. After: the same agent in another process.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .log import Log

FOLDER = str(Path(__file__).resolve().parent / "child")


def announce(service: str, log: Log) -> None:
    """Prepares the environment of later processes. Their service is `service`, unless the environment sets TACHO_SERVICE."""
    if sys.flags.ignore_environment:
        log.say("Python processes started by this one are not recorded: -E or -I is passed on to many of them")
        return
    before = os.environ.get("PYTHONPATH", "")
    if FOLDER not in before.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join([FOLDER, before] if before else [FOLDER])
    os.environ["_TACHOGRAPH_SERVICE"] = service
