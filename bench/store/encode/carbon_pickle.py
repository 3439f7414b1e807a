"""Graphite's pickle protocol: messages of `[(path, (seconds, value)), ...]`. The length of a message precedes it.

A path is `<measurement>.<identity>.<field>`. Whisper keeps a ring of fixed slots that ends at the current time.
Therefore times are moved by `shift_s`.
"""

import pickle
import struct
from collections.abc import Iterator

from ..dataset import Dataset, Frame

POINTS_A_MESSAGE = 10_000  # carbon takes messages of at most 1 MiB


def carbon_pickle(dataset: Dataset, shift_s: int) -> Iterator[bytes]:
    """Bodies with as many rows as the bodies of `lines`. Each body consists of one or more messages."""
    paths = [[path(dataset, frame, name) for name in frame.columns] for frame in dataset.frames]
    columns = [list(frame.columns.values()) for frame in dataset.frames]
    for piece in dataset.bodies():
        points = [
            (name, (time_ms // 1_000 + shift_s, column[row]))
            for time_ms, frame, row in piece
            for name, column in zip(paths[frame], columns[frame])
        ]
        yield b"".join(_message(points[at : at + POINTS_A_MESSAGE]) for at in range(0, len(points), POINTS_A_MESSAGE))


def path(dataset: Dataset, frame: Frame, name: str) -> str:
    return ".".join((dataset.measurement, *frame.identity.values(), name))


def _message(points: list) -> bytes:
    payload = pickle.dumps(points, protocol=2)
    return struct.pack("!I", len(payload)) + payload
