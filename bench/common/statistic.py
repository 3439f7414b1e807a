"""Means with confidence intervals, regression, steady state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, inf, isnan, lgamma, log, nan, sqrt
from statistics import fmean, median, stdev

CONFIDENCE = 0.95
STEADY_TOLERANCE = 0.05
STEADY_WINDOW = 25
STEADY_SHARE = 0.95


@dataclass(frozen=True)
class Interval:
    """A value and its confidence interval. If the interval is unknown, `high` is inf. `low` is then 0 for a known ratio, and
    -inf for all other values."""

    value: float
    low: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Line:
    """y = intercept + slope * x, and the share of the variance of y that the line explains."""

    intercept: float
    slope: float
    r_squared: float


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The mean, with an interval by Student's t. The values must be independent: one per process, not one per call."""
    if not values:
        return Interval(nan, -inf, inf)
    mean = fmean(values)
    if len(values) < 2:
        return Interval(mean, -inf, inf)
    reach = t_quantile(confidence, len(values) - 1) * stdev(values) / sqrt(len(values))
    return Interval(mean, mean - reach, mean + reach)


def ratio_interval(values: Sequence[float], to: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Ratio of the geometric means, with an interval by Welch's t on logarithms. The variances may differ."""
    if not values or not to or min(*values, *to) <= 0:
        return Interval(nan, -inf, inf)
    first, second = [log(value) for value in values], [log(value) for value in to]
    ratio = exp(fmean(first) - fmean(second))
    if len(first) < 2 or len(second) < 2:
        return Interval(ratio, 0.0, inf)
    parts = [stdev(sample) ** 2 / len(sample) for sample in (first, second)]
    error = sum(parts)
    if error == 0:
        return Interval(ratio, ratio, ratio)
    freedom = error**2 / sum(part**2 / (len(sample) - 1) for part, sample in zip(parts, (first, second)))
    reach = exp(t_quantile(confidence, freedom) * sqrt(error))
    return Interval(ratio, ratio / reach, ratio * reach)


def paired_ratio_interval(values: Sequence[float], to: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Geometric mean of the ratios of pairs, with an interval by Student's t on the logarithms of the ratios. A
    disturbance that affects both values of a pair cancels.

    Ignores pairs in which a figure is missing, or is zero because the clock did not tick.
    """
    logs = [log(value / other) for value, other in zip(values, to) if value > 0 and other > 0]
    if not logs:
        return Interval(nan, -inf, inf)
    found = mean_interval(logs, confidence)
    return Interval(exp(found.value), exp(found.low) if len(logs) > 1 else 0.0, exp(found.high) if len(logs) > 1 else inf)


def t_quantile(confidence: float, freedom: float) -> float:
    """Half-width of the interval that has the probability `confidence` under Student's t, in standard errors."""
    tail = 1 - confidence
    high = 1.0
    while _t_tails(high, freedom) > tail:
        high *= 2
    return _bisect(lambda value: _t_tails(value, freedom) - tail, 0.0, high)


def _t_tails(value: float, freedom: float) -> float:
    """Two-sided probability of a value further from 0 than `value`."""
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + value * value))


def _bisect(falling: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, computed with its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x)) / a
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d, c = 1 / (1 + step * d), 1 + step / c
            fraction *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return front * fraction


def quantile(histogram: Sequence[tuple[float, int]], share: float) -> float:
    """The smallest value of a histogram such that at least the part `share` of all values is less than or equal to it. The
    histogram has pairs (value, count) in rising order."""
    wanted = share * sum(count for _, count in histogram)
    for value, count in histogram:
        wanted -= count
        if wanted <= 0:
            return value
    return histogram[-1][0] if histogram else nan


def merge(histograms: Sequence[Sequence[tuple[float, int]]]) -> list[tuple[float, int]]:
    """Adds the counts of equal values."""
    counts: dict[float, int] = {}
    for histogram in histograms:
        for value, count in histogram:
            counts[value] = counts.get(value, 0) + count
    return sorted(counts.items())


def regression(points: Sequence[tuple[float, float]]) -> Line:
    """Linear regression by least squares."""
    if len(points) < 2:
        return Line(nan, nan, nan)
    mean_x, mean_y = fmean(x for x, _ in points), fmean(y for _, y in points)
    squares = sum((x - mean_x) ** 2 for x, _ in points)
    if squares == 0:
        return Line(nan, nan, nan)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / squares
    intercept = mean_y - slope * mean_x
    total = sum((y - mean_y) ** 2 for _, y in points)
    left = sum((y - intercept - slope * x) ** 2 for x, y in points)
    return Line(intercept, slope, 1 - left / total if total else 1.0)


def steady_from(values: Sequence[float], step: float = 0.0) -> int | None:
    """Index from which a series is steady, None if the series never becomes steady.

    The level is the median of the second half. Each value is replaced by the median of the 25 values around it, so
    that single disturbances do not count. A median is near the level if it is within 5 % of the level, or within one
    `step` of the clock. The result is the first index with two properties: its median is near, and at least 95 % of all
    medians from this index to the end are near. Ignores nan.
    """
    places = [at for at, value in enumerate(values) if not isnan(value)]
    known = [values[at] for at in places]
    if not known:
        return None
    level = median(known[len(known) // 2 :])
    reach = STEADY_WINDOW // 2
    tolerance = max(STEADY_TOLERANCE * level, step)
    near = [
        abs(median(known[max(0, at - reach) : at + reach + 1]) - level) <= tolerance
        for at in range(len(known))
    ]
    found, good = None, 0
    for back, at in enumerate(reversed(range(len(known))), start=1):
        good += near[at]
        if near[at] and good >= STEADY_SHARE * back:
            found = at
    return None if found is None else places[found]
