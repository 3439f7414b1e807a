"""Functions of many kinds with known results, for tests that replace the code of the functions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Callable


def defaults(a: int, b: int = 2, *rest: int, c: int = 3, **more: int) -> tuple:
    return a, b, rest, c, more


def only_by_name(*, a: int = 1, b: int) -> int:
    return a - b


def deep(n: int) -> int:
    return deep(n - 1) + 1 if n else 0


def _cells(x: int, y: int) -> Callable[..., Any]:
    def inner(z: int, factor: int = 2) -> int:
        nonlocal x
        x += 1
        return (x + y + z) * factor

    return inner


with_cells = _cells(1, 2)


class Base:
    def __init__(self, n: int) -> None:
        self.n = n

    def value(self, by: int = 1) -> int:
        return self.n * by

    @classmethod
    def make(cls) -> Base:
        return cls(4)


class Derived(Base):
    def __init__(self, n: int) -> None:
        super().__init__(n + 1)

    def value(self, by: int = 10) -> int:
        return super().value(by) + __class__.extra()  # type: ignore[name-defined]

    @staticmethod
    def extra() -> int:
        return 7

    @property
    def half(self) -> float:
        return self.n / 2

    @half.setter
    def half(self, value: float) -> None:
        self.n = int(value * 2)


def steps(n: int) -> Iterator[Any]:
    for at in range(n):
        try:
            sent = yield at
        except KeyError:
            sent = "thrown"
        if sent is not None:
            yield sent
    return n


async def later(n: int) -> int:
    await asyncio.sleep(0)
    return n


async def walk(n: int) -> Any:
    for at in range(n):
        yield at


def _run_steps() -> list[Any]:
    generator = steps(2)
    found = [next(generator), generator.send("sent"), next(generator), generator.throw(KeyError())]
    try:
        next(generator)
    except StopIteration as stop:
        found.append(stop.value)
    return found


async def _run_later() -> list[Any]:
    return [await later(3), *await asyncio.gather(later(1), later(2)), [at async for at in walk(2)]]


def results() -> list[Any]:
    derived = Derived.make()
    derived.half = 4.0
    before = with_cells(3)
    return [
        defaults(1),
        defaults(1, 5, 6, c=7, d=8),
        only_by_name(b=3),
        deep(50),
        with_cells(3) - before,
        derived.value(),
        derived.value(2),
        derived.half,
        list(steps(3)),
        _run_steps(),
        asyncio.run(_run_later()),
    ]


RESULTS = [
    (1, 2, (), 3, {}),
    (1, 5, (6,), 7, {"d": 8}),
    -2,
    50,
    2,
    87,
    23,
    4.0,
    [0, 1, 2],
    [0, "sent", 1, "thrown", 2],
    [3, 1, 2, [0, 1]],
]
