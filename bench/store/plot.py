"""Bar charts of the main figures, as SVG without a library. A chart is logarithmic if figures differ by a factor of
more than 20. Tachograph is highlighted."""

from html import escape
from math import log10
from statistics import median

from .systems import SYSTEMS
from .targets import OURS

TITLES = {system.name: system.title for system in SYSTEMS}
BAR, GAP, LEFT, WIDTH, RIGHT = 18, 6, 250, 420, 110
LOGARITHMIC_FROM, LOGARITHMIC_FLOOR = 20.0, 0.3
OURS_COLOUR, PEER_COLOUR = "#0a7d5a", "#9aa5b1"
Bars = list[tuple[str, float, bool]]


def plots(result: dict) -> dict[str, str]:
    """Charts by file name without its extension: space, processor time and queries of each experiment."""
    drawings = {}
    for number, experiment in enumerate(result["experiments"], start=1):
        title, prefix, values = experiment["title"], f"{number}-{experiment['work']}", experiment["values"]
        space, cpu = (
            _by_system(experiment, name, unit) for name, unit in (("disk_bytes", 1 / values), ("cpu_seconds", 1e6 / values))
        )
        if experiment["chronix"]:
            space.append(("Chronix's method", experiment["chronix"]["bytes"] / values, False))
        drawings[f"{prefix}-space"] = bars(f"bytes per value: {title}", space)
        drawings[f"{prefix}-cpu"] = bars(f"CPU us per value, written: {title}", cpu)
        drawings[f"{prefix}-queries"] = bars(f"median ms per query: {title}", _queries(experiment))
    return drawings


def bars(title: str, entries: Bars) -> str:
    numbers = [number for _, number, _ in entries if number > 0]
    smallest, largest = (min(numbers), max(numbers)) if numbers else (1.0, 1.0)
    logarithmic = largest / smallest > LOGARITHMIC_FROM
    height = 50 + len(entries) * (BAR + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" height="{height}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="10" y="20" font-size="14">{escape(title)}{" (logarithmic)" if logarithmic else ""}</text>'
    ]
    for row, (name, number, ours) in enumerate(entries):
        y = 36 + row * (BAR + GAP)
        share = _share(number, smallest, largest, logarithmic)
        colour = OURS_COLOUR if ours else PEER_COLOUR
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{LEFT}" y="{y}" width="{WIDTH * share:.1f}" height="{BAR}" fill="{colour}"/>'
            f'<text x="{LEFT + WIDTH * share + 6:.1f}" y="{y + 13}">{number:.3g}</text>'
        )
    return "\n".join((*parts, "</svg>\n"))


def _share(number: float, smallest: float, largest: float, logarithmic: bool) -> float:
    """Bar length as a share of the full width. In a logarithmic chart, the smallest bar still has a visible length."""
    if number <= 0:
        return 0.0
    if not logarithmic:
        return number / largest
    return (log10(number / smallest) + LOGARITHMIC_FLOOR) / (log10(largest / smallest) + LOGARITHMIC_FLOOR)


def _by_system(experiment: dict, name: str, unit: float) -> Bars:
    entries = ((TITLES[system], cost[name] * unit, system == OURS) for system, cost in experiment["loads"].items())
    return sorted(entries, key=lambda entry: entry[1])


def _queries(experiment: dict) -> Bars:
    return [
        (f"{group}, {TITLES[name]}{' (wrong)' if cost['wrong'] else ''}", median(cost["latencies_ms"]), name == OURS)
        for group, row in experiment["queries"].items()
        for name, cost in row.items()
        if cost["latencies_ms"]
    ]
