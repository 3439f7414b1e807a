"""Compares a result with the reference, and describes the first difference.

| query | tolerance |
|---|---|
| max | none |
| mean | 1e-9 relative |
| values of a range | times none; values 1e-12 relative |
| slope | the larger of two: 1e-6 relative; 1e-9 of (largest - smallest value) / (length of the range in seconds) |
| quartiles | 1e-9 relative; for systems that return ranks: see `_is_near_rank` |
| largest value | 1e-12 relative |

Values need not be equal bit by bit, because VictoriaMetrics keeps about 12 digits. `value_error_max` returns
the largest relative error of a correct result.
"""

from collections.abc import Sequence
from math import isclose

from .questions import Grouped, OneSeries, Outliers, Question, Range, Trend
from .reference import Answer, GroupedAnswer, RangeAnswer, Reference

MEAN_TOLERANCE = 1e-9
VALUE_TOLERANCE = 1e-12
SLOPE_TOLERANCE = 1e-6
SLOPE_TOLERANCE_OF_SPREAD = 1e-9
RANK_TOLERANCE = 0.005


def fault(reference: Reference, question: Question, answer: Answer, by_rank: bool) -> str | None:
    """None if the result is correct. `by_rank`: the system returns nearest ranks or approximate quantiles."""
    expected = reference.answer(question)
    match question:
        case Grouped():
            return _grouped_fault(expected, answer, 0.0 if question.aggregate == "max" else MEAN_TOLERANCE)
        case Range():
            return _range_fault(expected, answer)
        case Trend():
            return _slope_fault(reference, question, expected[0], answer)
        case Outliers():
            return _quartiles_fault(reference.sorted_values(question), expected, answer, by_rank)


def value_error_max(expected: RangeAnswer, answer: RangeAnswer) -> float:
    """The largest relative difference between the values of a correct result and the reference."""
    return max((abs(got - value) / abs(value) for value, got in zip(expected[1], answer[1]) if got != value), default=0.0)


def _grouped_fault(expected: GroupedAnswer, answer: GroupedAnswer, tolerance: float) -> str | None:
    if expected.keys() != answer.keys():
        strange = next(iter(answer.keys() ^ expected.keys()))
        return (
            f"{len(answer)} cells instead of {len(expected)}; {strange} is {'unexpected' if strange in answer else 'missing'}"
        )
    for cell, value in expected.items():
        if not isclose(answer[cell], value, rel_tol=tolerance):
            return f"{cell}: {answer[cell]} instead of {value}"
    return None


def _range_fault(expected: RangeAnswer, answer: RangeAnswer) -> str | None:
    (times, values), (answer_times, answer_values) = expected, answer
    if len(times) != len(answer_times):
        return f"{len(answer_times)} values instead of {len(times)}"
    for row, (time, answer_time) in enumerate(zip(times, answer_times)):
        if time != answer_time:
            return f"value {row} has the time {answer_time} ms instead of {time}"
    for row, (value, answer_value) in enumerate(zip(values, answer_values)):
        if value != answer_value and not isclose(value, answer_value, rel_tol=VALUE_TOLERANCE):
            return f"value {row} is {answer_value!r} instead of {value!r}"
    return None


def _slope_fault(reference: Reference, question: OneSeries, expected: float, answer: tuple[float, ...]) -> str | None:
    if len(answer) != 1:
        return f"{len(answer)} slopes instead of 1"
    ordered = reference.sorted_values(question)
    seconds = (question.end_ms - question.start_ms) / 1_000
    allowed = max(abs(expected) * SLOPE_TOLERANCE, (ordered[-1] - ordered[0]) / seconds * SLOPE_TOLERANCE_OF_SPREAD)
    return None if abs(answer[0] - expected) <= allowed else f"slope {answer[0]} instead of {expected}"


def _quartiles_fault(
    ordered: Sequence[float], expected: tuple[float, ...], answer: tuple[float, ...], by_rank: bool
) -> str | None:
    if len(answer) != 3:
        return f"{len(answer)} numbers instead of 3"
    for place, fraction in enumerate((0.25, 0.75)):
        right = (
            _is_near_rank(ordered, answer[place], fraction)
            if by_rank
            else isclose(answer[place], expected[place], rel_tol=MEAN_TOLERANCE)
        )
        if not right:
            return f"quantile {fraction} is {answer[place]} instead of {expected[place]}"
    return (
        None
        if isclose(answer[2], expected[2], rel_tol=VALUE_TOLERANCE)
        else f"largest value {answer[2]} instead of {expected[2]}"
    )


def _is_near_rank(ordered: Sequence[float], value: float, fraction: float) -> bool:
    """The quartile is between two neighbouring ranks. The lower bound is the value one rank below these two, less 0.5 %. The
    upper bound is the value one rank above them, plus 0.5 %."""
    place = (len(ordered) - 1) * fraction
    low, high = ordered[max(0, int(place) - 1)], ordered[min(len(ordered) - 1, int(place) + 2)]
    return low - abs(low) * RANK_TOLERANCE <= value <= high + abs(high) * RANK_TOLERANCE
