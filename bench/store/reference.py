"""Reference results, computed from the dataset without any of the systems.

The form of a result depends on the query, and not on the system. A `Grouped` query returns numbers by (field, value of the
identifying tag, start of the window in ms); the value of the tag is empty if the query does not separate the frames. A `Range`
returns a column of times and a column of values. A `Trend` and `Outliers` return a tuple of numbers.
"""

from bisect import bisect_left
from collections.abc import Sequence
from math import fsum

from .dataset import Dataset, Frame
from .questions import Grouped, OneSeries, Outliers, Question, Range, Trend

GroupedAnswer = dict[tuple[str, str, int], float]
RangeAnswer = tuple[Sequence[int], Sequence[float]]
Answer = GroupedAnswer | RangeAnswer | tuple[float, ...]


class Reference:
    """Answers queries on one dataset."""

    def __init__(self, dataset: Dataset):
        self._frames = dataset.frames
        self._by_identity = {tuple(frame.identity.items()): frame for frame in dataset.frames}

    def answer(self, question: Question) -> Answer:
        match question:
            case Grouped():
                return self._grouped(question)
            case Range():
                times, values = self._cut(question)
                return times, values
            case Trend():
                return (_slope(*self._cut(question)),)
            case Outliers():
                ordered = sorted(self._cut(question)[1])
                return quantile(ordered, 0.25), quantile(ordered, 0.75), float(ordered[-1])

    def sorted_values(self, question: OneSeries) -> list[float]:
        """For the tolerances of `check.py`."""
        return sorted(self._cut(question)[1])

    def _cut(self, question: OneSeries) -> RangeAnswer:
        frame = self._by_identity[question.identity]
        rows = _rows(frame, question.start_ms, question.end_ms)
        return frame.times_ms[rows], frame.columns[question.field][rows]

    def _grouped(self, question: Grouped) -> GroupedAnswer:
        chosen = [(next(iter(frame.identity.values())), frame) for frame in self._frames]
        chosen = [(name, frame) for name, frame in chosen if not question.frames or name in question.frames]
        answer: GroupedAnswer = {}
        for field in question.fields:
            for start in range(question.start_ms, question.end_ms, question.window_ms):
                parts = [
                    (name, frame.columns[field][_rows(frame, start, start + question.window_ms)]) for name, frame in chosen
                ]
                if question.by_frame:
                    answer |= {(field, name, start): _AGGREGATES[question.aggregate](part) for name, part in parts}
                else:
                    answer[field, "", start] = _AGGREGATES[question.aggregate](
                        [value for _, part in parts for value in part]
                    )
        return answer


_AGGREGATES = {"max": max, "mean": lambda values: fsum(values) / len(values)}


def _rows(frame: Frame, start_ms: int, end_ms: int) -> slice:
    return slice(bisect_left(frame.times_ms, start_ms), bisect_left(frame.times_ms, end_ms))


def _slope(times_ms: Sequence[int], values: Sequence[float]) -> float:
    """The slope per second of the least-squares line. Times are relative to the first time, then times and values to their
    means, which avoids cancellation."""
    seconds = [(time - times_ms[0]) / 1_000 for time in times_ms]
    mean_s, mean_v = fsum(seconds) / len(seconds), fsum(values) / len(values)
    above = fsum((second - mean_s) * (value - mean_v) for second, value in zip(seconds, values))
    return above / fsum((second - mean_s) ** 2 for second in seconds)


def quantile(ordered: Sequence[float], fraction: float) -> float:
    """Linear interpolation between neighbours, at (n - 1) x fraction, as in PromQL: type 7 of Hyndman and Fan
    1996."""
    place = (len(ordered) - 1) * fraction
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
