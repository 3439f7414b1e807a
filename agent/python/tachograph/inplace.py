"""Replaces the code of a function that the program already refers to. The function stays the same object and gets other code,
which calls a copy of the original. So all references call the recorded function, comparisons give the same result, and pickle
finds the function by its name. If the function is switched off, it gets its original code again.

Before: imports. After: recorder.
"""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import types
import weakref
from time import perf_counter_ns
from typing import Any, NamedTuple, Optional

from . import recorder
from .operations import METHOD, OFF, ON, SHARED
from .track import LOCAL

# Placeholders in the templates (see `_CALLS`): one for the wrapper, one for the data of a plain function's code.
_TARGET = "(the wrapper)"
_KNOWN = "(what is known)"


class InPlace:
    """One function, held by a weak reference. Raises ValueError for a function that cannot be changed.

    Parameter `own`: the state if no rule of the server decides. (The attribute `own` is the function's original code.)
    """

    __slots__ = ("function", "is_included", "operation", "own", "recorded", "template")

    def __init__(self, function: types.FunctionType, own: int = OFF) -> None:
        self.function = weakref.ref(function)
        self.is_included = own == ON
        self.own = function.__code__
        self.template = _template(_kind(function), len(self.own.co_freevars), _shape(self.own))
        # The code assigned to the function. It refers to the module of the function, and the garbage collector does not follow
        # the references of code objects. So a module that is discarded while its functions are recorded stays in memory. When a
        # module is reloaded, its previous functions are released.
        self.recorded: Optional[weakref.ref[types.CodeType]] = None
        name, module = recorder.name_of(function), recorder.module_of(function)
        self.operation = SHARED.function(METHOD, name, len(module), own)
        if self.is_included:
            function.__dict__[recorder.MARK] = self.operation

    @property
    def is_gone(self) -> bool:
        return self.function() is None

    def place(self) -> None:
        """Assigns the code for the function's state, unless other code has been assigned in the meantime."""
        function = self.function()
        if function is None:
            return
        # If the function has been decorated in the meantime, the decorator's wrapper records it.
        is_decorated = not self.is_included and SHARED.own[self.operation] == ON
        is_off = is_decorated or SHARED.states[self.operation] == OFF
        if not is_off and function.__code__ is self.own:
            copy = _copy(function)
            target = _Target(recorder.wrapper_of(copy, self.operation))
            code = self._code({_TARGET: target, _KNOWN: _Known(copy, self.operation)})
            self.recorded = weakref.ref(code)
            function.__code__ = code
        elif is_off and self.recorded is not None and function.__code__ is self.recorded():
            function.__code__ = self.own

    def _code(self, constants: dict[str, object]) -> types.CodeType:
        own = self.own
        names = {"co_qualname": own.co_qualname} if hasattr(own, "co_qualname") else {}
        parameters = own.co_varnames[: _shape(own).names]
        made = self.template.co_varnames
        renamed: dict[str, object] = {**constants, **dict(zip(made, parameters))}
        return self.template.replace(
            co_consts=tuple(_renamed(one, renamed) for one in self.template.co_consts),
            co_varnames=parameters + tuple(f"({local})" for local in made[len(parameters) :]),
            co_filename=own.co_filename,
            co_firstlineno=own.co_firstlineno,
            co_flags=self.template.co_flags | (own.co_flags & inspect.CO_ITERABLE_COROUTINE),
            co_name=own.co_name,
            **names,
        )


class _Target(functools.partial):
    """The wrapper, as a constant of code. If the code is sent to another process, the plain function is sent in place of the
    wrapper."""

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.getitem, ((self.func.__wrapped__,), 0)  # type: ignore[attr-defined]


class _Known:
    """Data for the code of a plain function. The code cannot use globals, because its globals are those of the program. If the
    code is sent to another process, None is sent in place of this object."""

    __slots__ = ("enter", "every", "function", "length", "local", "missing", "now", "operation", "states")

    def __init__(self, function: types.FunctionType, operation: int) -> None:
        self.function = function
        self.operation, self.enter = operation, -operation
        self.states, self.local, self.now = SHARED.states, LOCAL, perf_counter_ns
        self.length, self.missing, self.every = len, AttributeError, BaseException

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


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
        raise ValueError("the code of an asynchronous generator cannot be replaced")
    if inspect.iscoroutinefunction(function):
        return "coroutine"
    return "generator" if inspect.isgeneratorfunction(function) else "plain"


class _Shape(NamedTuple):
    """The kinds of a function's parameters, without names. The code that replaces the function's code has the same parameters,
    because libraries read them from the code to choose the arguments."""

    positional_only: int
    positional: int
    by_name: int
    has_rest: bool
    has_more: bool

    @property
    def names(self) -> int:
        return self.positional + self.by_name + self.has_rest + self.has_more


def _shape(code: types.CodeType) -> _Shape:
    flags = code.co_flags
    return _Shape(
        code.co_posonlyargcount,
        code.co_argcount,
        code.co_kwonlyargcount,
        bool(flags & inspect.CO_VARARGS),
        bool(flags & inspect.CO_VARKEYWORDS),
    )


def _renamed(constant: Any, renamed: dict[str, object]) -> Any:
    """A constant of a template, with the placeholders and the names of keyword arguments replaced."""
    if type(constant) is tuple:
        return tuple(_renamed(one, renamed) for one in constant)
    return renamed.get(constant, constant) if type(constant) is str else constant


# The first template does the same as the wrapper in recorder, but without an additional frame. It calls the wrapper in unusual
# cases.
_CALLS = {
    "plain": """
def recorded(PARAMETERS):
    target = "(the wrapper)"
    known = "(what is known)"
    if known is None or known.states[known.operation]:
        return target(ARGUMENTS)
    try:
        track = known.local.track
    except known.missing:
        track = None
    if track is None or known.length(track.words) > track.look:
        return target(ARGUMENTS)
    words = track.words
    outer = track.open
    if outer < 0:
        track.begin()
    track.open = track.calls = call = track.calls + 1
    words.append(known.enter)
    words.append(known.now())
    try:
        result = known.function(ARGUMENTS)
    except known.every as thrown:
        track.fail(thrown, call, outer)
        raise
    words.append(known.now())
    track.open = outer
    return result
""",
    "generator": """
def recorded(PARAMETERS):
    target = "(the wrapper)"
    return (yield from target(ARGUMENTS))
""",
    "coroutine": """
async def recorded(PARAMETERS):
    target = "(the wrapper)"
    return await target(ARGUMENTS)
""",
}


@functools.lru_cache(1_024)
def _template(kind: str, cells: int, shape: _Shape) -> types.CodeType:
    """Code for functions with this number of cells in their closure; the interpreter requires that a replacement has the same
    number. The code has the parameters of the function under other names, and passes its arguments on."""
    names = [f"cell{at}" for at in range(cells)]
    text = _CALLS[kind].replace("PARAMETERS", _parameters(shape)).replace("ARGUMENTS", _arguments(shape))
    tree = ast.parse(f"def make({', '.join(names)}):\n  return recorded")
    (recorded,) = ast.parse(text).body
    if names:
        recorded.body += ast.parse(", ".join(names)).body  # type: ignore[attr-defined]
    tree.body[0].body.insert(0, recorded)  # type: ignore[attr-defined]
    for node in ast.walk(tree):  # every line of the code is attributed to the first line of the function
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = 1
            node.col_offset = node.end_col_offset = 0
    made: dict[str, types.FunctionType] = {}
    exec(compile(tree, "<tachograph>", "exec"), made)
    function: types.FunctionType = made["make"](*names)
    return function.__code__


def _parameters(shape: _Shape) -> str:
    first = [f"of{at}" for at in range(shape.positional)]
    if shape.positional_only:
        first.insert(shape.positional_only, "/")
    star = ["*rest"] if shape.has_rest else ["*"] if shape.by_name else []
    last = [f"by{at}" for at in range(shape.by_name)]
    return ", ".join(first + star + last + ["**more"] * shape.has_more)


def _arguments(shape: _Shape) -> str:
    first = [f"of{at}" for at in range(shape.positional)]
    last = [f"by{at}=by{at}" for at in range(shape.by_name)]
    return ", ".join(first + ["*rest"] * shape.has_rest + last + ["**more"] * shape.has_more)
