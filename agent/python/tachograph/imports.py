"""How are functions found that nobody decorated? As their module is imported: the finder stands first in `sys.meta_path`.

It lets the others find the module, and has its functions and methods wrapped when the module has run. What is already imported is
wrapped at the start; names that other modules took from it before keep the plain function.
Before: agent. After: recorder.record.
"""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec
from time import monotonic
from typing import Any, Callable, Optional

from . import recorder
from .log import Log
from .patterns import Selection

# A pattern that has selected nothing after this time is named.
REPORT_AFTER_S = 60.0


class Imports:
    """A finder for `sys.meta_path`."""

    def __init__(self, include: Iterable[str], exclude: Iterable[str], log: Log) -> None:
        self.selection = Selection(include, exclude, log)
        self.log = log
        self.searching = threading.local()
        self.modules_seen = 0
        self.began = monotonic()
        self.reported: set[str] = set()

    def install(self) -> None:
        if not self.selection.include:
            return
        self.began = monotonic()
        sys.meta_path.insert(0, self)
        for name, module in list(sys.modules.items()):
            if isinstance(module, types.ModuleType) and self._wants(name):
                self.watch(module)

    def _wants(self, name: str) -> bool:
        return name.split(".", maxsplit=1)[0] != "tachograph" and self.selection.may_hold(name)

    # ---- finder ----

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[types.ModuleType] = None
    ) -> Optional[ModuleSpec]:
        """Called by the import system; None for modules that are none of our business."""
        self.modules_seen += 1
        if monotonic() - self.began > REPORT_AFTER_S:
            self.report()
        if getattr(self.searching, "is_on", False) or not self._wants(name):
            return None
        self.searching.is_on = True
        try:
            spec = self._found_by_others(name, path, target)
        finally:
            self.searching.is_on = False
        try:
            if spec is not None and hasattr(spec.loader, "exec_module") and not isinstance(spec.loader, type):
                self._wrap_loader(spec.loader)
        except Exception as e:
            self.log.say_once(f"module {name}", f"{name} stays as it is: {type(e).__name__}: {e}")
        return spec

    def _found_by_others(self, name: str, path: Optional[Sequence[str]], target: Any) -> Optional[ModuleSpec]:
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                return spec
        return None

    def _wrap_loader(self, loader: Any) -> None:
        """The loader stays the same object, for those who ask it for the source; one method is put before its own."""
        execute: Callable[[types.ModuleType], None] = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            if self._wants(module.__name__):
                self.watch(module)

        loader.exec_module = exec_module

    # ---- wrapping ----

    def watch(self, module: types.ModuleType) -> None:
        """Wraps what the patterns select of a module that has run. Never raises."""
        name = recorder.main_name() if module.__name__ == "__main__" else module.__name__
        try:
            count = self._watch_members(module, module.__name__, (name,))
        except Exception as e:
            self.log.say_once(f"module {name}", f"{name} stays as it is: {type(e).__name__}: {e}")
            return
        self.log.detail(f"watches {count} functions of {name}")

    def _watch_members(self, owner: Any, module: str, names: tuple[str, ...]) -> int:
        count = 0
        for name, member in list(vars(owner).items()):
            full = f"{names[-1]}.{name}"
            if isinstance(member, type):
                # Where it was defined, not where it was imported or renamed to.
                is_own = member.__module__ == module and f"{names[0]}.{member.__qualname__}" == full
                count += self._watch_members(member, module, (*names, full)) if is_own else 0
            elif self._is_watchable(member, module, name, full) and self.selection.holds((*names, full)):
                try:
                    setattr(owner, name, recorder.record(member))
                    count += 1
                except (AttributeError, TypeError) as e:
                    self.log.say_once(f"function {full}", f"{full} stays as it is: {e}")
        return count

    def _is_watchable(self, member: Any, module: str, name: str, full: str) -> bool:
        """A function that somebody wrote in this module."""
        function = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
        function = function.fget if isinstance(function, property) else function
        if not isinstance(function, types.FunctionType) or function.__module__ != module:
            return False
        if getattr(function, recorder.MARK, False) or function.__code__.co_filename.startswith("<"):
            return False
        return self.selection.is_watchable(name, full)

    def report(self) -> None:
        """Names, once, the patterns that have selected nothing."""
        for pattern in self.selection.include:
            if not pattern.hits and pattern.text not in self.reported:
                self.reported.add(pattern.text)
                seen = f"{self.modules_seen} modules were imported since the start"
                self.log.say(f"the pattern {pattern.text} has selected no function so far ({seen})")
