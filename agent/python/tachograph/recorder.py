"""The API to record calls of the program: `record` for functions, `span` for blocks, and attributes of the innermost call.

The wrapper of a plain function is the hot path. It costs 0.4 to 0.7 us, mostly for two clock reads and the call itself. To be
this fast, it contains the code of `Track.enter` inline. This module raises no exceptions of its own into the program, except
for an unknown kind of operation. Before: the program, imports, probes. After: track, the list of events of one thread, task
or request.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
import warnings
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterator
from time import perf_counter_ns
from typing import Any, Callable, Optional, TypeVar, Union, overload

from . import operations
from .context import CALLER, Context
from .operations import AGGREGATE, OFF, ON
from .tallies import TALLIES
from .track import FULL, LOCAL, LOOK_OFF, NO_CALL, Strand, Track, here, is_failure, new_thread_track, retire

F = TypeVar("F", bound=Callable[..., Any])

# Wrappers, and functions that `include` selects, have this attribute: the id of their operation. `record` does not change a
# function with this attribute, so no function is recorded twice.
MARK = "__tachograph__"

# States by operation; a wrapper takes its fast path if the state is ON, which is 0.
_STATES = operations.SHARED.states

_KINDS = {
    "method": operations.METHOD,
    "http-server": operations.HTTP_SERVER,
    "http-client": operations.HTTP_CLIENT,
    "database": operations.DATABASE,
    "connection-wait": operations.CONNECTION_WAIT,
    "task": operations.TASK,
}


def kind_id(kind: str) -> int:
    if kind not in _KINDS:
        raise ValueError(f'"{kind}" is not a kind of operation: expected one of {", ".join(_KINDS)}')
    return _KINDS[kind]


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function, such as `shop.board.Board.post`. Functions of the script itself are named after its file or
    module."""
    return f"{module_of(function)}.{getattr(function, '__qualname__', '(unknown)')}"


def module_of(function: Callable[..., Any]) -> str:
    module = getattr(function, "__module__", None) or "unknown"
    return main_name() if module == "__main__" else str(module)


def name_of_main(spec: Any) -> str:
    """The name of the module that `python -m` runs."""
    return str(spec.name).removesuffix(".__main__")


def main_name() -> str:
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and not spec.name.startswith("tachograph."):
        return name_of_main(spec)
    file = getattr(main, "__file__", None) or ""
    return file.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".py") or "__main__"


@overload
def record(function: F) -> F: ...
@overload
def record(*, name: Optional[str] = None, kind: str = "method") -> Callable[[F], F]: ...


def record(function: Any = None, *, name: Optional[str] = None, kind: str = "method") -> Any:
    """Decorator: each call of the function is recorded.

    The call of a coroutine function lasts from its first step to its end, including waits. Each step of a generator (plain or
    asynchronous) is a call, from `next` to `yield`, so the time of the consumer is excluded. Static methods, class methods and
    properties are recorded, too. For a class, its methods are recorded. Members that are instances of subclasses of
    staticmethod, classmethod or property stay unchanged. Raises ValueError for an unknown `kind`.
    """
    number = kind_id(kind)
    if function is None:
        return lambda decorated: recorded(decorated, number, name)
    return recorded(function, number, name)


def recorded(function: Any, kind: int = operations.METHOD, name: Optional[str] = None, own: int = ON) -> Any:
    """The result of `record`. `own`: the state if no rule of the server decides."""
    exact = type(function)
    if exact is staticmethod or exact is classmethod:
        return exact(recorded(function.__func__, kind, name, own)) if is_function(function.__func__) else function
    if exact is property:
        parts = [recorded(part, kind, name, own) if is_function(part) else part for part in parts_of(function)]
        return property(*parts, doc=function.__doc__)
    if isinstance(function, type):
        return _record_methods(function, kind)
    if isinstance(function, (staticmethod, classmethod, property)):
        return function
    if getattr(function, MARK, False) or not callable(function):
        return function
    module_chars = 0 if name else len(module_of(function))
    operation = operations.SHARED.function(kind, name or name_of(function), module_chars, own)
    return wrapper_of(function, operation)


def is_function(member: Any) -> bool:
    # `FunctionType` permits no subclasses.
    return type(member) is types.FunctionType


def parts_of(member: property) -> tuple[Any, Any, Any]:
    return member.fget, member.fset, member.fdel


def functions_of(member: Any) -> list[Any]:
    """The member of a class or module if it is a function, or the functions of a staticmethod, classmethod or property. Empty for
    a member of another type; a subclass of these types is another type."""
    exact = type(member)
    if exact is staticmethod or exact is classmethod:
        parts: tuple[Any, ...] = (member.__func__,)
    else:
        parts = parts_of(member) if exact is property else (member,)
    return [part for part in parts if is_function(part)]


def replace_member(owner: Any, name: str, member: Any) -> None:
    setattr(owner, name, member)
    if type(member) is property and isinstance(owner, type) and hasattr(member, "__set_name__"):  # since Python 3.10
        member.__set_name__(owner, name)  # the property uses the name in its error messages


def _record_methods(owner: type, kind: int) -> type:
    """Records each method that the class itself defines; of special methods only `__init__` and `__call__`. Methods that inspect
    the frame of their caller stay unchanged."""
    for name, member in list(vars(owner).items()):
        is_special = name.startswith("__") and name not in ("__init__", "__call__")
        functions = functions_of(member)
        if functions and not is_special and not any(map(looks_at_caller, functions)):
            replace_member(owner, name, recorded(member, kind))
    return owner


# Names in functions that inspect frames. An additional frame between such a function and its caller would change the result.
_FRAMES = {"_getframe", "_getframemodulename", "currentframe", "f_back", "getouterframes", "extract_stack", "walk_stack"}


# The largest integer constant that may be a stack level. Code with larger integers uses them for other purposes.
_FAR_MAX = 9


def looks_at_caller(function: Any, later: Optional[dict[str, Any]] = None) -> bool:
    """True if a function, or a function inside it, inspects the frame of its caller, or calls a function that inspects that
    frame. `later`: functions that the module may define later, by name."""
    if not isinstance(function, types.FunctionType):
        return False
    code, globals_ = function.__code__, function.__globals__
    if later:
        globals_ = {**later, **globals_}
    return _looks_up(code, globals_) or any(map(_looks_far, _called(code, globals_)))


def _called(code: types.CodeType, globals_: dict[str, Any]) -> Iterator[types.FunctionType]:
    """Functions that the code may call: those among the global names of its module, and those that the code itself imports from a
    module with a dot in its name."""
    modules = (sys.modules.get(name) for name in code.co_names if "." in name)
    places = [globals_, *(vars(module) for module in modules if type(module) is types.ModuleType)]
    for name in code.co_names:
        for place in places:
            found = place.get(name)
            if type(found) is types.FunctionType and found.__code__ is not code:
                yield found


def _looks_far(function: types.FunctionType) -> bool:
    """True if the function inspects a frame above that of its caller: `stacklevel=3`, also as a default value, or
    `_getframe(2)`."""
    code = function.__code__
    values = (*code.co_consts, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    near = 2 if _FRAMES.isdisjoint(code.co_names) else 1
    return any(type(one) is int and near < one <= _FAR_MAX for one in values) and _looks_up(code, function.__globals__)


def _looks_up(code: types.CodeType, globals_: dict[str, Any]) -> bool:
    names = {*code.co_names, *code.co_freevars}
    if not _FRAMES.isdisjoint(names) or _is_read("stack", inspect, code, globals_):
        return True
    warns = _is_read("warn", warnings, code, globals_)
    for constant in code.co_consts:
        # Names of keyword arguments in a call: a tuple, or single texts if the call also has `*` or `**`.
        if constant == "stacklevel" or (isinstance(constant, tuple) and "stacklevel" in constant):
            return True
        if warns and type(constant) is int and constant > 1:
            return True  # `warnings.warn(text, category, 2)`
        if isinstance(constant, types.CodeType) and _looks_up(constant, globals_):
            return True
    return False


def _is_read(name: str, module: types.ModuleType, code: types.CodeType, globals_: dict[str, Any]) -> bool:
    """True if the code may read the function `name` of `module`. It may read the function through the module, which may have
    any name in the code, or import the function itself. A method of the same name (`log.warn`) is not enough.
    """
    if name in code.co_freevars:
        return True  # a variable of an enclosing function; its value may be the searched function
    if name not in code.co_names:
        return False
    if module.__name__ in code.co_names or module.__name__ in code.co_freevars:
        return True
    function = getattr(module, name)
    found = (globals_.get(one) for one in code.co_names)
    return any(one is module or one is function for one in found)


def wrapper_of(function: Callable[..., Any], operation: int) -> Callable[..., Any]:
    wrapper = _wrapper(function, operation)
    setattr(wrapper, MARK, operation)
    return wrapper


def _wrapper(function: Callable[..., Any], operation: int) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):
        return _coroutine_function(function, operation)
    if inspect.isasyncgenfunction(function):
        return _async_generator_function(function, operation)
    if inspect.isgeneratorfunction(function):
        wrapper = _generator_function(function, operation)
        is_awaited = function.__code__.co_flags & inspect.CO_ITERABLE_COROUTINE  # decorated with `types.coroutine`
        return types.coroutine(wrapper) if is_awaited else wrapper
    return _function(function, operation)


# ---- plain functions: the hot path ----


def _function(function: Callable[..., Any], operation: int) -> Callable[..., Any]:
    local = LOCAL
    now = perf_counter_ns
    enter = -operation
    states = _STATES

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if states[operation]:
            return function(*args, **kwargs) if states[operation] == OFF else _counted(operation, function, args, kwargs)
        try:
            track = local.track
        except AttributeError:
            track = new_thread_track()
        words = track.words
        if len(words) > track.look:
            if track.look == LOOK_OFF:
                return function(*args, **kwargs)
            return _call_slowly(track, wrapper, function, args, kwargs)
        outer = track.open
        if outer < 0:
            track.begin()
        track.open = track.calls = call = track.calls + 1
        words.append(enter)
        words.append(now())
        try:
            result = function(*args, **kwargs)
        except BaseException as thrown:
            track.fail(thrown, call, outer)
            raise
        words.append(now())
        track.open = outer
        return result

    return wrapper


def _call_slowly(
    track: Track, wrapper: Callable[..., Any], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The slow path of a call: the list of events is long, the segment has too many calls, calls are being dropped, or the agent
    has just been started."""
    if here() is not track or track.admit():
        return wrapper(*args, **kwargs)
    track.count_dropped()
    words = track.words
    track.words = FULL
    try:
        return function(*args, **kwargs)
    finally:
        track.words = words


def _counted(operation: int, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    begun = perf_counter_ns()
    try:
        result = function(*args, **kwargs)
    except BaseException as thrown:
        TALLIES.add(operation, perf_counter_ns() - begun, is_failure(thrown))
        raise
    TALLIES.add(operation, perf_counter_ns() - begun, False)
    return result


# ---- generators: each step is a call ----


def _generator_function(function: Callable[..., Any], operation: int) -> Callable[..., Any]:
    def step(inner: Generator[Any, Any, Any], value: Any, thrown: Optional[BaseException]) -> Any:
        return inner.send(value) if thrown is None else inner.throw(thrown)

    recorded_step = _function(step, operation)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        if _STATES[operation] == OFF:
            return (yield from inner)
        value: Any = None
        thrown: Optional[BaseException] = None
        while True:
            try:
                item = recorded_step(inner, value, thrown)
            except StopIteration as stop:
                return stop.value
            value, thrown = None, None
            try:
                value = yield item
            except BaseException as e:
                thrown = e

    return wrapper


def _async_generator_function(function: Callable[..., Any], operation: int) -> Callable[..., Any]:
    async def step(inner: AsyncGenerator[Any, Any], value: Any, thrown: Optional[BaseException]) -> Any:
        return await (inner.asend(value) if thrown is None else inner.athrow(thrown))

    recorded_step = _coroutine_function(step, operation)

    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        value: Any = None
        thrown: Optional[BaseException] = None
        while True:
            try:
                item = await recorded_step(inner, value, thrown)
            except StopAsyncIteration:
                return
            value, thrown = None, None
            try:
                value = yield item
            except GeneratorExit:
                await inner.aclose()
                raise
            except BaseException as e:
                thrown = e

    return wrapper


# ---- coroutines: the outermost one of a task has its own track ----


def _coroutine_function(function: Callable[..., Any], operation: int) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        if _STATES[operation]:
            coroutine = function(*args, **kwargs)
            return await (coroutine if _STATES[operation] == OFF else _await_counted(operation, coroutine))
        task = task_here()
        track = here()
        if not track.home.is_on:
            return await function(*args, **kwargs)
        if task is None or track.task is not task:
            return await drive(function(*args, **kwargs), operation, task)
        if len(track.words) > track.look and not track.admit():
            return await _await_unrecorded(track, function(*args, **kwargs))
        outer = track.open
        call = track.enter(operation)
        try:
            result = await function(*args, **kwargs)
        except BaseException as thrown:
            track.leave(call, outer, thrown)
            raise
        if not track.leave(call, outer):
            retire(track)
        return result

    return wrapper


async def _await_counted(operation: int, coroutine: Coroutine[Any, Any, Any]) -> Any:
    begun = perf_counter_ns()
    try:
        result = await coroutine
    except BaseException as thrown:
        TALLIES.add(operation, perf_counter_ns() - begun, is_failure(thrown))
        raise
    TALLIES.add(operation, perf_counter_ns() - begun, False)
    return result


async def _await_unrecorded(track: Track, coroutine: Coroutine[Any, Any, Any]) -> Any:
    track.count_dropped()
    words = track.words
    track.words = FULL
    try:
        return await coroutine
    finally:
        track.words = words


def task_here() -> object:
    """The current asyncio task; None outside of a task. Does not import asyncio."""
    events = sys.modules.get("asyncio.events")
    if events is None:
        return None
    loop = events._get_running_loop()
    return None if loop is None else sys.modules["asyncio.tasks"].current_task(loop)


@types.coroutine
def drive(
    coroutine: Coroutine[Any, Any, Any], operation: int, task: object, strand: Optional[Strand] = None
) -> Generator[Any, Any, Any]:
    """Runs a coroutine as a call on its own track. This track is the thread's current track only during each step.

    `strand`: a strand that has already begun, for callers that add attributes.
    """
    strand = strand or Strand(operation)
    strand.track.task = task
    # Work that runs in a copy of the task's context then has this call as its caller.
    token = CALLER.set(strand.context()) if task is not None else None
    value: Any = None
    thrown: Optional[BaseException] = None
    try:
        while True:
            with strand:
                try:
                    yielded = coroutine.send(value) if thrown is None else coroutine.throw(thrown)
                except StopIteration as stop:
                    strand.end()
                    return stop.value
                except BaseException as e:
                    strand.end(e)
                    raise
            value, thrown = None, None
            try:
                value = yield yielded
            except BaseException as e:
                thrown = e
    finally:
        if token is not None:
            reset_caller(token)


def reset_caller(token: Any) -> None:
    with contextlib.suppress(ValueError):  # if the garbage collector closes the coroutine in another context
        CALLER.reset(token)


# ---- blocks ----


class Span:
    """Records a block as a call: `with span("load"):`. In a task that is not recorded itself, the block is a segment of its
    own."""

    __slots__ = ("begun", "call", "operation", "outer", "strand", "token", "track", "words")

    def __init__(self, operation: int) -> None:
        self.operation = operation
        self.call = NO_CALL
        self.outer = NO_CALL
        self.track: Optional[Track] = None
        self.strand: Optional[Strand] = None
        self.token: Any = None
        self.words: Any = None
        # Start of a counted block, as `perf_counter_ns`; 0 for other blocks.
        self.begun = 0

    def __enter__(self) -> Span:
        self.strand = self.words = None
        if _STATES[self.operation]:
            self.track, self.call = None, NO_CALL
            self.begun = perf_counter_ns() if _STATES[self.operation] == AGGREGATE else 0
            return self
        track = self.track = here()
        task = task_here()
        if task is not None and track.task is not task:
            self.strand = Strand(self.operation)
            self.token = CALLER.set(self.strand.context())
            return self
        if len(track.words) > track.look and not track.admit():
            track.count_dropped()
            self.words = track.words
            track.words = FULL
            return self
        self.outer = track.open
        self.call = track.enter(self.operation)
        return self

    def __exit__(self, _type: Any, thrown: Optional[BaseException], _traceback: Any) -> None:
        track = self.track
        if track is None:
            if self.begun:
                TALLIES.add(self.operation, perf_counter_ns() - self.begun, is_failure(thrown))
        elif self.strand is not None:
            reset_caller(self.token)
            self.strand.end(thrown)
        elif self.words is not None:
            track.words = self.words
        elif not track.leave(self.call, self.outer, thrown):
            retire(track)

    def attribute(self, key: str, value: Union[str, float, bool]) -> None:
        """Adds an attribute to this block. A text is cut to 4,096 bytes."""
        fact = fact_of(value)
        if self.strand is not None:
            self.strand.attribute(str(key), fact)
        elif self.call >= 0 and self.track is not None and self.track.open >= self.call:
            self.track.attribute(self.call, str(key), fact)

    @property
    def traceparent(self) -> Optional[str]:
        context = (self.strand or self.track or here()).context()
        return context and context.traceparent


def span(name: str, kind: str = "method") -> Span:
    """A block that is recorded as a call of the operation `name`. Raises ValueError for an unknown `kind`."""
    return Span(operations.SHARED.id(kind_id(kind), str(name)))


# ---- the innermost call ----


def context() -> Optional[Context]:
    """The parent for another strand or process, see `Track.context`."""
    return here().context()


def traceparent() -> Optional[str]:
    """The W3C header with the innermost open call as the caller. Outside of a call: with the call that started this thread or
    task as the caller, None if there is none."""
    now = here().context()
    return now and now.traceparent


def attribute(key: str, value: Union[str, float, bool]) -> None:
    """Adds an attribute, such as `order.id`, to the innermost open call. No effect outside of a call."""
    track = here()
    if track.open >= 0:
        track.attribute(track.open, str(key), fact_of(value))


_FACT_CHARS_MAX = 4_096


def fact_of(value: Any) -> Union[str, int]:
    """Integers of 64 bits stay numbers, other values become text."""
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        return str(value)[:_FACT_CHARS_MAX]
    except Exception as e:
        return f"({type(e).__name__})"
