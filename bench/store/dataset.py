"""The data that is written to every system. `questions.py` has the queries.

A `Frame` has the fields of one source; all fields share one column of times. A `Dataset` has the frames of one
measurement.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice, repeat

ROWS_A_BODY = 10_000


@dataclass(frozen=True)
class Frame:
    """`tags` are in the order of writing. `key` names the tags that identify the frame."""

    tags: dict[str, str]
    key: tuple[str, ...]
    times_ms: array
    """Ascending Unix milliseconds, array('q'), without duplicates."""
    columns: dict[str, array]
    """By field: array('b') or array('q') for whole numbers, or array('d'). Each array is as long as the times."""

    @property
    def identity(self) -> dict[str, str]:
        return {name: self.tags[name] for name in self.key}


@dataclass(frozen=True)
class Dataset:
    """`name` contains all parameters of the content, because it is the cache key of the bodies."""

    name: str
    title: str
    measurement: str
    frames: list[Frame]
    step_ms: int = field(default=0)
    """The step between times; 0 if it is not constant."""

    @property
    def values(self) -> int:
        return sum(len(frame.times_ms) * len(frame.columns) for frame in self.frames)

    @property
    def series(self) -> int:
        return sum(len(frame.columns) for frame in self.frames)

    @property
    def start_ms(self) -> int:
        return min(frame.times_ms[0] for frame in self.frames)

    @property
    def end_ms(self) -> int:
        return max(frame.times_ms[-1] for frame in self.frames)

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """(time in ms, index of the frame, row in the frame), in the order in which a monitoring system receives the rows."""
        return merge(
            *(zip(frame.times_ms, repeat(number), range(len(frame.times_ms))) for number, frame in enumerate(self.frames))
        )

    def bodies(self) -> Iterator[list[tuple[int, int, int]]]:
        """The rows in pieces of `ROWS_A_BODY`. A piece is the content of one request in every protocol."""
        rows = self.rows()
        while piece := list(islice(rows, ROWS_A_BODY)):
            yield piece
