"""A small dataset: two hosts, two fields, seven timestamps at intervals of ten seconds."""

from array import array

from ..dataset import Dataset, Frame

START_MS = 1_451_606_400_000
STEP_MS = 10_000


def small() -> Dataset:
    """`user` has whole numbers, `idle` floats."""
    times = array("q", range(START_MS, START_MS + 7 * STEP_MS, STEP_MS))
    columns = (
        ({"user": array("b", [1, 2, 3, 4, 5, 6, 9]), "idle": array("d", [0.5, 0.5, 1.5, 1.5, 2.5, 2.5, 3.5])}),
        ({"user": array("b", [9, 8, 7, 6, 5, 4, 1]), "idle": array("d", [4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0])}),
    )
    frames = [
        Frame({"hostname": name, "rack": "1 a"}, ("hostname",), times, fields) for name, fields in zip(("h0", "h1"), columns)
    ]
    return Dataset("small", "small", "cpu", frames, STEP_MS)
