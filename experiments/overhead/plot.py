"""Draws the results as SVG, without a library: stacked response times, warm-up, throughput, and curves over
depth and method time."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from .summary import Row, by_name, linearity, stages

WIDTH, LEFT, RIGHT, TOP = 960, 230, 250, 44
BAR, GAP = 20, 8
PLOT_HEIGHT, LEGEND_LINE = 360, 16
STAGE_COLOURS = {"T": "#334e68", "I": "#9aa5b1", "C": "#0a7d5a", "W": "#e0a100"}
COLOURS = ("#334e68", "#0a7d5a", "#e0a100", "#c0392b", "#6c5ce7", "#00838f", "#8d6e63", "#ad1457", "#558b2f", "#5d6d7e")
DASHES = ("", "6 3", "2 2")
POINTS_MAX = 250
"""Maximum number of points of a warm-up curve. A thousand bins are drawn as means of four bins."""


@dataclass(frozen=True)
class Curve:
    """`mark` is the position of a vertical line on the x axis."""

    name: str
    points: Sequence[tuple[float, float]]
    mark: float | None = None


def plots(result: dict) -> dict[str, str]:
    """Drawings by file name without extension."""
    drawings = {}
    configurations = by_name(result, "configurations")
    for name, title in (("mean_us", "mean"), ("median_us", "median")):
        if found := stages(configurations, name):
            drawings[f"stages-{title}"] = stacked(f"Response time of a trace, {title}, us", found)
    if configurations:
        drawings["warm-up"] = curves(
            "Warm-up: mean response time, us, over the time since the start, s", warm_up(configurations)
        )
        drawings["throughput"] = curves(
            "Throughput: thousand traces in each measured second", _throughput(configurations)
        )
    for name, title, x in (("depth", "depth of the trace", "depth"), ("method-time", "method time, us", "method_us")):
        if found := by_name(result, name):
            drawings[name] = curves(f"Median response time of a trace, us, over {title}", _over(found, x), logarithmic=False)
    return drawings


def stacked(title: str, bars: Sequence[tuple[str, dict[str, float]]]) -> str:
    """One horizontal bar per setup, with its stages end to end."""
    largest = max(sum(steps.values()) for _, steps in bars) or 1.0
    width = WIDTH - LEFT - 70
    parts = [_begin(title, TOP + 24 + len(bars) * (BAR + GAP))]
    for place, (stage, colour) in enumerate(STAGE_COLOURS.items()):
        parts.append(f'<rect x="{LEFT + place * 50}" y="30" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{LEFT + place * 50 + 14}" y="39">{stage}</text>')
    for row, (name, steps) in enumerate(bars):
        y, x = TOP + 12 + row * (BAR + GAP), float(LEFT)
        parts.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>')
        for stage, value in steps.items():
            length = width * value / largest
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{STAGE_COLOURS[stage]}">'
                f"<title>{stage} {value:.3f} us</title></rect>"
            )
            x += length
        parts.append(f'<text x="{x + 6:.1f}" y="{y + 14}">{sum(steps.values()):.3g}</text>')
    return "\n".join((*parts, "</svg>\n"))


def curves(title: str, found: Sequence[Curve], logarithmic: bool = True) -> str:
    """Curves over a linear x axis. The y axis is logarithmic or starts at 0."""
    drawn = [curve for curve in found if curve.points]
    xs = [x for curve in drawn for x, _ in curve.points] or [0.0, 1.0]
    ys = [y for curve in drawn for _, y in curve.points if y > 0 or not logarithmic] or [1.0]
    scale = _Scale(min(xs), max(xs), min(ys), max(ys), logarithmic)
    height = TOP + max(PLOT_HEIGHT, len(drawn) * LEGEND_LINE) + 40
    parts = [_begin(title + (" (logarithmic)" if logarithmic else ""), height), *scale.axes()]
    for number, curve in enumerate(drawn):
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
        path = " ".join(f"{scale.x(x):.1f},{scale.y(y):.1f}" for x, y in curve.points if y > 0 or not logarithmic)
        style = f'fill="none" stroke="{colour}" stroke-width="1.5" stroke-dasharray="{dash}"'
        parts.append(f'<polyline points="{path}" {style}/>')
        if curve.mark is not None:
            at = scale.x(curve.mark)
            parts.append(f'<path d="M{at:.1f} {TOP} v{PLOT_HEIGHT}" stroke="{colour}" stroke-opacity="0.4" {_FINE}/>')
        y = TOP + 10 + number * LEGEND_LINE
        parts.append(f'<path d="M{WIDTH - RIGHT + 8} {y - 4} h18" {style}/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 30}" y="{y}" font-size="11">{escape(curve.name)}</text>')
    return "\n".join((*parts, "</svg>\n"))


_FINE = 'stroke-dasharray="1 3"'


@dataclass(frozen=True)
class _Scale:

    x_low: float
    x_high: float
    y_low: float
    y_high: float
    logarithmic: bool

    def x(self, value: float) -> float:
        left, right = 70, WIDTH - RIGHT
        return left + (right - left) * (value - self.x_low) / ((self.x_high - self.x_low) or 1.0)

    def y(self, value: float) -> float:
        low, high = self._bounds()
        place = log10(value) if self.logarithmic else value
        return TOP + PLOT_HEIGHT * (1 - (place - low) / ((high - low) or 1.0))

    def _bounds(self) -> tuple[float, float]:
        if self.logarithmic:
            return floor(log10(self.y_low)), max(floor(log10(self.y_low)) + 1, ceil(log10(self.y_high)))
        return 0.0, self.y_high or 1.0

    def axes(self) -> list[str]:
        low, high = self._bounds()
        values = (
            [10.0**power for power in range(int(low), int(high) + 1)]
            if self.logarithmic
            else [high * part / 4 for part in range(5)]
        )
        parts = [
            f'<path d="M70 {self.y(value):.1f} H{WIDTH - RIGHT}" stroke="#dde"/>'
            f'<text x="64" y="{self.y(value) + 4:.1f}" text-anchor="end">{value:.4g}</text>'
            for value in values
        ]
        for part in range(6):
            value = self.x_low + (self.x_high - self.x_low) * part / 5
            parts.append(
                f'<text x="{self.x(value):.1f}" y="{TOP + PLOT_HEIGHT + 16}" text-anchor="middle">{value:.4g}</text>'
            )
        return parts


def warm_up(found: Sequence[Row]) -> list[Curve]:
    """The bins of the first process of each cell, and the time from which it is steady."""
    return [
        Curve(
            row.title,
            thinned([(at * fork["bin_s"], each[1]) for at, each in enumerate(fork["bins"]) if each[1]]),
            fork["steady_s"],
        )
        for row in found
        for fork in row.forks[:1]
    ]


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Replaces each group of neighbouring points with one point (the first x, the mean y), so that at most `POINTS_MAX` points
    are left."""
    step = ceil(len(points) / POINTS_MAX) if points else 1
    groups = (points[at : at + step] for at in range(0, len(points), step))
    return [(group[0][0], sum(y for _, y in group) / len(group)) for group in groups]


def _throughput(found: Sequence[Row]) -> list[Curve]:
    return [
        Curve(row.title, [(float(second), count / 1e3) for second, count in enumerate(row.forks[0]["per_second"], start=1)])
        for row in found
    ]


def _over(found: Sequence[Row], x: str) -> list[Curve]:
    setups = dict.fromkeys(row.setup for row in found)
    lines = []
    for setup in setups:
        of_setup = sorted((row for row in found if row.setup == setup), key=lambda row: row.workload[x])
        title = of_setup[0].title
        if x == "depth":
            title += f" (R² {linearity(found, setup).r_squared:.4f})"
        lines.append(Curve(title, [(float(row.workload[x]), row.middle("median_us")) for row in of_setup]))
    return lines


def _begin(title: str, height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/><text x="10" y="20" font-size="14">{escape(title)}</text>'
    )
