"""How does a probe wait for a library? A function is called with the module when it has been imported, now or later.

What it raises (a library of a version that nobody knows) is told to the log and never to the program that imports.

Before: probes. After: the import system.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from typing import Any, Callable, Optional

from ..log import Log

Change = Callable[[types.ModuleType], None]


class Later:
    """A finder for `sys.meta_path` that finds nothing by itself."""

    def __init__(self) -> None:
        self.changes: dict[str, Change] = {}
        self.log: Optional[Log] = None
        # What failed before there was a log; at most a line for each library.
        self.faults: list[str] = []

    def find_spec(self, name: str, _path: Optional[Sequence[str]], _target: Any = None) -> Optional[ModuleSpec]:
        change = self.changes.pop(name, None)
        if change is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None or isinstance(spec.loader, type):
            self.changes[name] = change
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            self.make(change, module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def make(self, change: Change, module: types.ModuleType) -> None:
        try:
            change(module)
        except Exception as e:
            fault = f"{module.__name__} is not watched: {type(e).__name__}: {e}"
            if self.log is None:
                self.faults.append(fault)
            else:
                self.log.say(fault)


_later = Later()


def when_imported(name: str, change: Change) -> None:
    """Calls `change` with the module: at once if it is there, else when it is imported."""
    module = sys.modules.get(name)
    if module is not None:
        _later.make(change, module)
        return
    _later.changes[name] = change
    if _later not in sys.meta_path:
        sys.meta_path.insert(0, _later)


def report_to(log: Log) -> None:
    """Faults of before are said at once."""
    _later.log = log
    while _later.faults:
        log.say(_later.faults.pop(0))
