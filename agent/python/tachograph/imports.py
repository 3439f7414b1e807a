"""When a module is imported, changes its functions that patterns select, so that their calls are recorded.

`Imports` is a finder at the front of `sys.meta_path`. It is called at the first import of each module, and asks the other finders
for modules that patterns or rules may select. After such a module has run, its functions and methods are changed in place. So
earlier references, and names imported before the start, refer to the changed functions. Functions that a rule of the server
selects at run time are changed in the same way.
Before: agent, switchboard. After: recorder.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import inspect
import sys
import sysconfig
import threading
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
from typing import Any, Callable, Optional

from . import recorder
from .inplace import InPlace
from .log import Log
from .operations import OFF, ON
from .patterns import Selection, is_special
from .rules import Rules

# A pattern of `include` that has no matches after this time is logged.
REPORT_AFTER_S = 60.0
# Maximum number of functions that a log line names.
LEFT_NAMED = 3

# The file name in the frames of the import system.
_IMPORT_SYSTEM = importlib.machinery.SourceFileLoader.exec_module.__code__.co_filename
# The interpreter's own descriptors, because a module or metaclass of the program may override these names.
_members_of_module = types.ModuleType.__dict__["__dict__"].__get__
_members_of_class = type.__dict__["__dict__"].__get__
_module_of = type.__dict__["__module__"].__get__
_qualified_name_of = type.__dict__["__qualname__"].__get__


class Imports:
    def __init__(self, include: Iterable[str], exclude: Iterable[str], log: Log) -> None:
        self.selection = Selection(include, exclude, log)
        # Rules of the server; replaced as a whole by the switchboard, which then calls `follow`.
        self.rules = Rules()
        # Functions selected by the settings or by rules, with `id(function)` as the key.
        self.changed: dict[int, InPlace] = {}
        self.log = log
        self.searching = threading.local()
        self.modules_seen = 0
        self.reported: set[str] = set()
        # For each module: its selected functions that stay unchanged, because they inspect the frame of their caller, and that
        # were not logged yet.
        self.left: dict[str, list[str]] = {}
        # Modules whose unchanged functions were already logged.
        self.told: set[str] = set()

    def install(self) -> None:
        if not self.selection.include:
            return
        for _ in self._look():
            pass

    def _look(self) -> Iterator[None]:
        """Changes the modules imported so far, one per step, and further modules when they are imported."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        for name, module in list(sys.modules.items()):
            is_there = issubclass(type(module), types.ModuleType) and not issubclass(type(module), importlib.util._LazyModule)
            if is_there and self._wants(name):
                self.watch(module)
            yield

    def follow(self) -> Iterator[None]:
        """Called when the rules, and so the states of operations, have changed. Handles one module or function per step."""
        if self.rules.adding:
            yield from self._look()
        for id_, changed in list(self.changed.items()):
            changed.place()
            if changed.is_gone and self.changed.get(id_) is changed:  # otherwise another function now has the same id
                del self.changed[id_]
            yield

    def _wants(self, name: str) -> bool:
        if name.split(".", maxsplit=1)[0] == "tachograph":
            return False
        return self.selection.may_hold(name) or self._may_add(name)

    def _may_add(self, name: str) -> bool:
        """True if a rule may select functions of the module that are neither decorated nor included. Never true for the standard
        library, because the agent itself uses it."""
        if not self.rules.adding or (name != "__main__" and _is_standard(name)):
            return False
        return self.rules.may_add(recorder.main_name() if name == "__main__" else name)

    # ---- finder ----

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[types.ModuleType] = None
    ) -> Optional[ModuleSpec]:
        """Called by the import system; None for modules that are not handled."""
        self.modules_seen += 1
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
            self.log.say_once(f"module {name}", f"{name} stays unchanged: {type(e).__name__}: {e}")
        return spec

    def _found_by_others(self, name: str, path: Optional[Sequence[str]], target: Any) -> Optional[ModuleSpec]:
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                return spec
        return None

    def _wrap_loader(self, loader: Any) -> None:
        """Wraps one method of the loader. The loader stays the same object, because other code reads the source from it."""
        execute: Callable[[types.ModuleType], None] = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            if self._wants(module.__name__):
                self.watch(module)

        # This function's frame is between two frames of the import system. It has the file name of these frames, so that it
        # counts as one of them: warnings that name the importing code skip it, and tracebacks of failed imports omit it.
        exec_module.__code__ = exec_module.__code__.replace(co_filename=_IMPORT_SYSTEM)
        loader.exec_module = exec_module

    # ---- changing functions ----

    def watch(self, module: types.ModuleType) -> None:
        """Changes the selected functions of a module after it has run, so that their calls are recorded. Never raises."""
        name = recorder.main_name() if module.__name__ == "__main__" else module.__name__
        try:
            rules = self.rules if self._may_add(module.__name__) else Rules()
            count = self._watch_members(module, _members_of_module(module), module.__name__, (name,), rules)
        except Exception as e:
            self.log.say_once(f"module {name}", f"{name} stays unchanged: {type(e).__name__}: {e}")
            return
        self.log.detail(f"watches {count} functions of {name}")
        self._tell_left(name)

    def _watch_members(
        self, owner: Any, members: Mapping[str, Any], module: str, names: tuple[str, ...], rules: Rules
    ) -> int:
        """`names`: name of the module, then of the classes down to the owner. `rules`: rules that may select further functions.

        Runs no code of a member, because a lazy object of the program might load its target.
        """
        count = 0
        for name, member in list(members.items()):
            full = f"{names[-1]}.{name}"
            if issubclass(type(member), type):
                # False if this module or class only imports the member, or gives it another name.
                is_own = _module_of(member) == module and f"{names[0]}.{_qualified_name_of(member)}" == full
                count += self._watch_members(member, _members_of_class(member), module, (*names, full), rules) if is_own else 0
            elif _is_function_of(member, module):
                count += self._watch_member(owner, name, member, (*names, full), rules)
        return count

    def watch_function_of_script(self, member: Any, names: tuple[str, ...], later: dict[str, Any]) -> Any:
        """Changes a function of the script, or the functions of a method or property, when it has just been defined. Returns the
        member; for an asynchronous generator function, its wrapper. Never raises.

        `names`: names of the module, of the classes around the function, and of the function. `later`: functions that the script
        may define later, by name.
        """
        name = names[-1].rpartition(".")[2]
        try:
            if type(member) is functools._lru_cache_wrapper:
                self._watch_member(None, name, member.__wrapped__, names, Rules(), later)
            elif any(_is_unrecorded(function, "__main__") for function in recorder.functions_of(member)):
                if inspect.isasyncgenfunction(member) and not recorder.looks_at_caller(member, later):
                    return recorder.record(member)
                self._watch_member(None, name, member, names, Rules(), later)
            elif not getattr(member, recorder.MARK, False):
                self.log.detail(f"{names[-1]} stays unchanged: its decorators replace it by a {type(member).__name__}")
        except Exception as e:
            self.log.say_once(f"function {names[-1]}", f"{names[-1]} stays unchanged: {type(e).__name__}: {e}")
        return member

    def _watch_member(
        self,
        owner: Any,
        name: str,
        member: Any,
        names: tuple[str, ...],
        rules: Rules,
        later: Optional[dict[str, Any]] = None,
    ) -> bool:
        is_selected = self.selection.is_watchable(name, names[-1]) and self.selection.holds(names)
        is_added = not is_selected and rules.adds(names, is_special(name))
        try:
            functions = recorder.functions_of(member)
            if any(recorder.looks_at_caller(function, later) for function in functions):
                if is_selected or is_added:
                    self.left.setdefault(names[0], []).append(names[-1])
                return False
            for function in functions:
                known = self.changed.get(id(function))
                if known is not None and known.function() is function:
                    known.place()
                elif is_selected and inspect.isasyncgenfunction(function):  # its code cannot be replaced
                    recorder.replace_member(owner, name, recorder.record(member))
                elif is_selected or is_added:
                    changed = self.changed[id(function)] = InPlace(function, ON if is_selected else OFF)
                    changed.place()
        except (AttributeError, TypeError, ValueError) as e:
            self.log.say_once(f"function {names[-1]}", f"{names[-1]} stays unchanged: {e}")
            return False
        return is_selected or is_added

    def _tell_left(self, name: str) -> None:
        left = self.left.get(name)
        if left and name not in self.told:
            self.told.add(name)
            more = ", ..." if len(left) > LEFT_NAMED else ""
            which = ", ".join(left[:LEFT_NAMED]) + more
            why = "since they read the frame of their caller"
            self.log.say(f"functions of {name} that stay unchanged, {why}: {len(left)} ({which})")
        self.left.pop(name, None)

    def report(self) -> None:
        """Called once some time after the start, and at the end. Logs each pattern of `include` without matches, and the
        functions of the script that stay unchanged."""
        self._tell_left(recorder.main_name())
        for pattern in self.selection.include:
            if not pattern.hits and pattern.text not in self.reported:
                self.reported.add(pattern.text)
                seen = f"{self.modules_seen} modules were searched for since the start"
                self.log.say(f"the pattern {pattern.text} has selected no function so far ({seen})")


def _is_function_of(member: Any, module: str) -> bool:
    """True for a function that a file of this module defines, unless a decorator records it already."""
    function = next(iter(recorder.functions_of(member)), None)
    return function is not None and _is_unrecorded(function, module)


def _is_unrecorded(function: types.FunctionType, module: str) -> bool:
    if function.__module__ != module:
        return False
    return not getattr(function, recorder.MARK, False) and not function.__code__.co_filename.startswith("<")


def _is_standard(name: str) -> bool:
    """True for a module that comes with the interpreter."""
    top = name.split(".", maxsplit=1)[0]
    names = getattr(sys, "stdlib_module_names", None)
    if names is not None:  # since 3.10
        return top in names
    if top in sys.builtin_module_names:
        return True
    spec = getattr(sys.modules.get(top), "__spec__", None)
    origin = str(getattr(spec, "origin", None) or "")
    return origin == "frozen" or (origin.startswith(sysconfig.get_path("stdlib")) and "site-packages" not in origin)
