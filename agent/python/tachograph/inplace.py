"""How is a function recorded that the program has hold of already? It stays the same object and gets other code, which calls a
wrapper around a copy of what it was. So whoever has it, under whatever name, calls what is recorded; and pickle, which takes
functions by their names, finds what it looks for. Without a rule it has its own code again, and costs what it did.

Before: imports. After: recorder.
"""

from __future__ import annotations

import functools
import inspect
import operator
import types
import weakref
from typing import Any, Optional

from . import recorder
from .operations import METHOD, OFF, ON, SHARED

# Stands for the wrapper in the code that is made once for each kind of function.
_TARGET = "(the wrapper)"


class InPlace:
    """One function. Holds nothing that keeps it alive. Raises ValueError for one that cannot be changed."""

    __slots__ = ("function", "operation", "own", "recorded", "template")

    def __init__(self, function: types.FunctionType) -> None:
        self.function = weakref.ref(function)
        self.own = function.__code__
        self.template = _template(_kind(function), len(self.own.co_freevars))
        # The code that it has been given. It refers to the function's module, and the garbage collector does not look into code:
        # a module that is thrown away while it is recorded stays. One that is loaded again does not keep what it was.
        self.recorded: Optional[weakref.ref[types.CodeType]] = None
        name, module = recorder.name_of(function), recorder.module_of(function)
        self.operation = SHARED.function(METHOD, name, len(module), OFF)  # off where no rule says otherwise

    @property
    def is_gone(self) -> bool:
        return self.function() is None

    def place(self) -> None:
        """Gives the function the code that its state wants, unless somebody else has given it another."""
        function = self.function()
        if function is None:
            return
        # Where somebody has decorated it meanwhile, the wrapper around it does the recording.
        is_off = SHARED.states[self.operation] == OFF or SHARED.own[self.operation] == ON
        if not is_off and function.__code__ is self.own:
            copy = _copy(function)
            code = self._code(_Target(recorder.wrapper_of(copy, self.operation)))
            self.recorded = weakref.ref(code)
            function.__dict__.setdefault("__wrapped__", copy)  # its signature is still the same
            function.__code__ = code
        elif is_off and self.recorded is not None and function.__code__ is self.recorded():
            function.__code__ = self.own
            if getattr(function.__dict__.get("__wrapped__"), "__code__", None) is self.own:
                del function.__dict__["__wrapped__"]

    def _code(self, target: _Target) -> types.CodeType:
        own = self.own
        names = {"co_qualname": own.co_qualname} if hasattr(own, "co_qualname") else {}
        return self.template.replace(
            co_consts=tuple(target if constant == _TARGET else constant for constant in self.template.co_consts),
            co_filename=own.co_filename,
            co_firstlineno=own.co_firstlineno,
            co_name=own.co_name,
            **names,
        )


class _Target(functools.partial):
    """The wrapper, as a constant of code. Where somebody sends the code to another process, the plain function goes with it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.getitem, ((self.func.__wrapped__,), 0)  # type: ignore[attr-defined]


def _copy(function: types.FunctionType) -> types.FunctionType:
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    for name in ("__qualname__", "__module__", "__doc__", "__annotate__" if hasattr(copy, "__annotate__") else "__annotations__"):
        setattr(copy, name, getattr(function, name))
    return copy


def _kind(function: types.FunctionType) -> str:
    if inspect.isasyncgenfunction(function):
        raise ValueError("an asynchronous generator takes no other code")
    if inspect.iscoroutinefunction(function):
        return "coroutine"
    return "generator" if inspect.isgeneratorfunction(function) else "plain"


_CALLS = {
    "plain": "def recorded(*args, **kwargs): target = {}; return target(*args, **kwargs)",
    "generator": "def recorded(*args, **kwargs): target = {}; return (yield from target(*args, **kwargs))",
    "coroutine": "async def recorded(*args, **kwargs): target = {}; return await target(*args, **kwargs)",
}


@functools.lru_cache(64)
def _template(kind: str, cells: int) -> types.CodeType:
    """Code for functions with so many cells in their closure: the interpreter wants as many of any code that takes its place."""
    names = [f"cell{at}" for at in range(cells)]
    call = _CALLS[kind].format(repr(_TARGET)) + (f"; {', '.join(names)}" if cells else "")
    source = f"def make({', '.join(names)}):\n  {call}\n  return recorded\n"
    made: dict[str, types.FunctionType] = {}
    exec(compile(source, "<tachograph>", "exec"), made)
    recorded: types.FunctionType = made["make"](*names)
    return recorded.__code__
