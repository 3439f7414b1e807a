"""The list of probes, which record libraries without changes to the program. Each probe replaces a few functions of a library.

To add a probe: write a file with `install(settings, log)`, import the file here, add it to `PROBES`, and add its name to
`../config.py`. If the library is not imported yet, the probe waits for the import. Before: agent. After: recorder.
"""

from __future__ import annotations

from typing import Callable

from ..config import Settings
from ..log import Log
from . import context, dbapi, http_client, late

PROBES: dict[str, Callable[[Settings, Log], None]] = {
    "context": context.install,
    "http": http_client.install,
    "dbapi": dbapi.install,
}


def install(settings: Settings, log: Log) -> None:
    late.report_to(log)
    for name, probe in PROBES.items():
        if not settings.wants_probe(name):
            continue
        try:
            probe(settings, log)
        except Exception as e:
            log.say(f"the probe {name} is not installed: {type(e).__name__}: {e}")
