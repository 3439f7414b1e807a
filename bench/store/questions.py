"""The queries as plain data.

Windows of `Grouped` are [start, start + window), ... on whole minutes. No bound of the other queries is a time of the
data, so it does not matter whether a system includes the start or the end of a range.
"""

from dataclasses import dataclass
from random import Random

from .dataset import Dataset, Frame

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
RANGE_MIX = ((1, 30), (7, 30), (14, 10), (91, 2))
"""Days and number of the range queries of Chronix: 72 per round."""


@dataclass(frozen=True)
class Grouped:
    """An aggregate of fields by window, over all selected frames together or for each of them."""

    aggregate: str
    """max or mean"""
    fields: tuple[str, ...]
    frames: tuple[str, ...]
    """Values of the identifying tag. Empty means all values."""
    start_ms: int
    end_ms: int
    window_ms: int
    by_frame: bool = False


@dataclass(frozen=True)
class OneSeries:
    """A query on one series between two times."""

    identity: tuple[tuple[str, str], ...]
    field: str
    start_ms: int
    end_ms: int


class Range(OneSeries):
    """All values."""


class Trend(OneSeries):
    """The slope, in units per second, of the least-squares line."""


class Outliers(OneSeries):
    """First quartile, third quartile and largest value: the input of an outlier test by interquartile range."""


Question = Grouped | Range | Trend | Outliers


@dataclass(frozen=True)
class QuestionClass:
    """Queries of one shape. The report has one median per class."""

    name: str
    questions: list[Question]


def devops_classes(dataset: Dataset, count: int, seed: int) -> list[QuestionClass]:
    """Queries of four classes of TSBS, `count` random queries for each class."""
    random = Random(seed)
    hosts = [frame.tags["hostname"] for frame in dataset.frames]
    fields = list(dataset.frames[0].columns)

    def grouped(aggregate: str, metrics: int, chosen: int, hours: int, window_ms: int, by_frame: bool = False) -> Grouped:
        span = min(hours * HOUR_MS, dataset.end_ms + dataset.step_ms - dataset.start_ms)
        latest = (dataset.end_ms + dataset.step_ms - dataset.start_ms - span) // window_ms
        start = dataset.start_ms + random.randint(0, latest) * window_ms
        return Grouped(
            aggregate,
            tuple(fields[:metrics]),
            tuple(random.sample(hosts, min(chosen, len(hosts)))),
            start,
            start + span,
            window_ms,
            by_frame,
        )

    shapes = {
        "single-groupby-1-1-1": ("max", 1, 1, 1, 60_000),
        "single-groupby-5-8-1": ("max", 5, 8, 1, 60_000),
        "double-groupby-1": ("mean", 1, 0, 12, HOUR_MS, True),
        "cpu-max-all-8": ("max", 10, 8, 8, HOUR_MS),
    }
    return [QuestionClass(name, [grouped(*shape) for _ in range(count)]) for name, shape in shapes.items()]


def range_classes(dataset: Dataset, rounds: int, seed: int) -> list[QuestionClass]:
    """`rounds` times the query mix of Chronix, with one class per length of the range."""
    random = Random(seed)
    return [
        QuestionClass(f"range-{days}d", [_one_series(Range, random, dataset, days) for _ in range(times * rounds)])
        for days, times in RANGE_MIX
    ]


def analysis_classes(dataset: Dataset, rounds: int, seed: int) -> list[QuestionClass]:
    """Trends and outliers over ranges like the ranges of `range_classes`."""
    random = Random(seed)
    return [
        QuestionClass(
            f"{kind.__name__.lower()}-{days}d", [_one_series(kind, random, dataset, days) for _ in range(times * rounds)]
        )
        for kind in (Trend, Outliers)
        for days, times in RANGE_MIX
    ]


def whole_series(dataset: Dataset, count: int, seed: int) -> QuestionClass:
    """Queries of up to `count` random series as a whole. The result must be the written values."""
    random = Random(seed)
    pairs = [(frame, name) for frame in dataset.frames for name in frame.columns]
    chosen = random.sample(pairs, min(count, len(pairs)))
    return QuestionClass(
        "whole-series",
        [Range(_identity(frame), name, frame.times_ms[0] - 1, frame.times_ms[-1] + 1) for frame, name in chosen],
    )


def _one_series(kind: type[OneSeries], random: Random, dataset: Dataset, days: int) -> OneSeries:
    frame = random.choice(dataset.frames)
    span = min(days * DAY_MS, dataset.end_ms - dataset.start_ms)
    latest = (dataset.end_ms - dataset.start_ms - span) // dataset.step_ms
    start = dataset.start_ms + random.randint(0, latest) * dataset.step_ms - dataset.step_ms // 2
    return kind(_identity(frame), random.choice(list(frame.columns)), start, start + span)


def _identity(frame: Frame) -> tuple[tuple[str, str], ...]:
    return tuple(frame.identity.items())
