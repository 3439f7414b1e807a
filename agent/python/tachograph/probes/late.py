"""Calls a function with a module as soon as the module is imported.

Exceptions of the function (for example with an unknown version of a library) are logged and never reach the importing program.

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
    """A finder for `sys.meta_path` that finds no module itself."""

    def __init__(self) -> None:
        self.changes: dict[str, Change] = {}
        self.log: Optional[Log] = None
        # Failures before the log existed; at most one line for each library.
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
            fault = f"{module.__name__} is not recorded: {type(e).__name__}: {e}"
            if self.log is None:
                self.faults.append(fault)
            else:
                self.log.say(fault)


_later = Later()


def when_imported(name: str, change: Change) -> None:
    """Calls `change` with the module: at once if it is imported already, else after its import."""
    module = sys.modules.get(name)
    if module is not None:
        _later.make(change, module)
        return
    _later.changes[name] = change
    if _later not in sys.meta_path:
        sys.meta_path.insert(0, _later)


def report_to(log: Log) -> None:
    _later.log = log
    while _later.faults:
        log.say(_later.faults.pop(0))
