"""Formats the raw result as Markdown tables that can also be read in a terminal."""

from math import inf, isfinite, isnan, nan

from bench.common.table import table

from .idle import IDLE_CORES_MAX
from bench.common.statistic import Interval
from .summary import Row, linearity, ratio, rows, stages, unwatched
from .targets import published, verdicts


def report(result: dict) -> str:
    parts = [_head(result)]
    for experiment in result["experiments"]:
        parts.append(_experiment(experiment))
        parts.append(_MORE.get(experiment["name"], lambda _: "")(experiment))
    parts += [_published(result), _targets(result), _notes(result)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(result: dict) -> str:
    host = result["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items() if name != "none")
    lines = [
        f"# Overhead of agents, {result['begun']}",
        "",
        f"{host['processor']}, {host['cores']} cores, {host['memory_bytes'] / 2**30:.0f} GiB, {host['system']}; "
        f"{result['java']}.  ",
        f"{versions}.",
        *(f"Not measured: {name}: {reason}." for name, reason in result["not_measured"].items()),
    ]
    return "\n".join(lines + _disturbed(result))


def _disturbed(result: dict) -> list[str]:
    forks = [fork for experiment in result["experiments"] for row in rows(experiment) for fork in row.forks]
    busy = sum(fork["others_cores"] > IDLE_CORES_MAX for fork in forks)
    if not busy:
        return ["", f"The machine was idle during all {len(forks)} processes (others used at most {IDLE_CORES_MAX} cores)."]
    return [
        "",
        f"**During {busy} of {len(forks)} processes others used more than {IDLE_CORES_MAX} cores. The means and "
        "throughputs of these processes are disturbed, the medians less; bytes and losses are valid.**",
    ]


def _experiment(experiment: dict) -> str:
    found = rows(experiment)
    failures = [
        f"- **failed**: {cell['framework']}, {cell['title']}: {cell['failures'][0]}"
        for cell in experiment["cells"]
        if cell["failures"]
    ]
    if not found:
        return "\n\n".join([f"## {experiment['title']}", "\n".join(failures) or "Nothing was measured."])
    load = found[0].workload
    varied = {
        "depth": "" if experiment["name"] == "depth" else f"depth {load['depth']}",
        "method-time": "" if experiment["name"] == "method-time" else f"method time {load['method_us']:g} us",
        "threads": "" if experiment["name"] == "threads" else f"{load['threads']} thread",
    }
    about = ", ".join(text for text in varied.values() if text)
    parts = [
        f"## {experiment['title']}",
        f"{about}; {load['seconds']:g} s a process, the first {load['warm_up_seconds']:g} s warm up. "
        "Response time of a trace in us: mean with its 95 % confidence interval over processes; quantiles of the traces of "
        "all processes.",
        _times(experiment["name"], found),
        _costs(experiment["name"], found),
    ]
    faults = [f"- {_name(experiment['name'], row)}: {'; '.join(texts)}" for row in found if (texts := row.faults())]
    return "\n\n".join(part for part in [*parts, "\n".join(faults + failures)] if part)


def _name(experiment: str, row: Row) -> str:
    detail = row.detail(experiment)
    return f"{row.title}, {detail}" if detail else row.title


def _times(name: str, found: list[Row]) -> str:
    head = ("us a trace", "n", "mean", "95 %", "Q1", "median", "Q3", "p99", "fork medians", "x none", "95 %", "steady s", "")
    return table(head, [_time(name, row, found) for row in found])


def _time(name: str, row: Row, found: list[Row]) -> tuple[str, ...]:
    none = unwatched(row, found)
    beside = ratio(row, none, "mean_us") if none and none is not row else Interval(nan, -inf, inf)
    medians = row.values("median_us")
    steady = [fork["steady_s"] for fork in row.forks]
    return (
        _name(name, row),
        str(len(row.forks)),
        figure(row.mean("mean_us").value),
        bounds(row.mean("mean_us")),
        *(figure(row.quantile_us(share)) for share in (0.25, 0.5, 0.75, 0.99)),
        f"{figure(min(medians))}..{figure(max(medians))}",
        figure(beside.value),
        bounds(beside),
        "never" if None in steady else f"{max(steady):.1f}",
        marks(row),
    )


def marks(row: Row) -> str:
    texts = " ".join(row.faults())
    known = (
        ("FAILED", "FAILED"),
        ("lost ", "LOST"),
        ("dropped ", "DROPPED"),
        ("saturated", "saturated"),
        ("not steady", "not steady"),
        ("began late", "late"),
        ("the agent", "NOT SWITCHED"),
        ("was switched", "NOT SWITCHED"),
        ("the sink could", "UNREADABLE"),
        ("more calls", "TOO MANY"),
    )
    return ", ".join(dict.fromkeys(mark for text, mark in known if text in texts))


def _costs(name: str, found: list[Row]) -> str:
    head = (
        "a trace",
        "k traces/s",
        "95 %",
        "1-s bins, min..max",
        "CPU us",
        "of program",
        "of agent",
        "of receiver",
        "B garbage",
        "all threads",
        "GCs",
        "B sent",
        "lost %",
        "others",
    )
    return table(head, [_cost(name, row) for row in found])


def _cost(name: str, row: Row) -> tuple[str, ...]:
    seconds = row.per_second()
    rate = row.mean("traces_per_s")
    lost = row.middle("loss_share")
    return (
        _name(name, row),
        figure(rate.value / 1e3),
        bounds(Interval(rate.value / 1e3, rate.low / 1e3, rate.high / 1e3)),
        f"{figure(min(seconds) / 1e3)}..{figure(max(seconds) / 1e3)}" if seconds else "-",
        *(figure(row.middle(cost)) for cost in ("cpu_us", "app_cpu_us", "agent_cpu_us", "receiver_cpu_us")),
        *(figure(row.middle(cost)) for cost in ("app_bytes", "all_bytes", "collections", "sink_bytes")),
        "-" if isnan(lost) else f"{lost * 100:.3g}",
        figure(max(row.values("others_cores"))),
    )


def _stages(experiment: dict) -> str:
    found = stages(rows(experiment))
    if not found:
        return ""
    lines = [(title, *(figure(steps[stage]) for stage in "TICW"), figure(sum(steps.values()))) for title, steps in found]
    head = ("mean us a trace", "T method", "I instrumentation", "C collection", "W writing", "all")
    return "What each stage adds:\n\n" + table(head, lines)


def _linearity(experiment: dict) -> str:
    found = rows(experiment)
    lines = []
    for setup in dict.fromkeys(row.setup for row in found):
        line = linearity(found, setup)
        title = next(row.title for row in found if row.setup == setup)
        lines.append((title, figure(line.slope * 1e3), figure(line.intercept * 1e3), f"{line.r_squared:.5f}"))
    head = ("median by depth", "ns a call", "ns a trace, fixed", "R²")
    return "Least squares over all processes:\n\n" + table(head, lines)


def _added(experiment: dict) -> str:
    found = rows(experiment)
    lines = [
        (_name("method-time", row), figure(row.middle("mean_us") - none.middle("mean_us")), f"{share:.1f}")
        for row in found
        if row.setup != "none" and (none := unwatched(row, found))
        for share in [100 * (row.middle("mean_us") / none.middle("mean_us") - 1)]
    ]
    return "Overhead added to the mean:\n\n" + table(("at a method time of", "us", "%"), lines) if lines else ""


def _server(experiment: dict) -> str:
    found = [row for row in rows(experiment) if not isnan(row.middle("receiver_resident_peak"))]
    if not found:
        return ""
    head = ("the server", "CPU us a trace", "B on disk a trace", "MB at the end", "peak MB", "growth", "calls made", "stored")
    lines = [
        (
            row.title,
            figure(row.middle("receiver_cpu_us")),
            figure(row.middle("disk_bytes")),
            figure(row.middle("receiver_resident_settled") / 1e6),
            figure(row.middle("receiver_resident_peak") / 1e6),
            figure(row.middle("receiver_growth")),
            f"{row.middle('calls_made'):,.0f}",
            f"{row.middle('calls_arrived'):,.0f}",
        )
        for row in found
    ]
    return table(head, lines)


def _configurations(experiment: dict) -> str:
    return "\n\n".join(part for part in (_stages(experiment), _server(experiment)) if part)


_MORE = {
    "configurations": _configurations,
    "depth": _linearity,
    "method-time": _added,
    "paced": _server,
    "sustained": _server,
}


def _published(result: dict) -> str:
    lines = [
        (f"{stage}: {title}", figure(here), figure(there), figure(part))
        for stage, title, here, there, part in published(result)
    ]
    if not lines:
        return ""
    head = ("mean, as a multiple of uninstrumented", "here", "published, Kieker", "here / published")
    return (
        "## Comparison with the published figures\n\nKieker with Byte Buddy on a GitHub runner, November 2025: "
        "0.463 us collecting, 1.0 us to a binary file, 0.0447 us uninstrumented. It is another machine, so only multiples can "
        "be compared, with care.\n\n" + table(head, lines)
    )


def _targets(result: dict) -> str:
    lines = [
        (
            verdict.aim,
            figure(verdict.found),
            f"{'>=' if verdict.at_least else '<='} {figure(verdict.limit)}",
            verdict.outcome,
        )
        for verdict in verdicts(result)
    ]
    return "## Targets\n\n" + table(("target", "found", "limit", ""), lines) if lines else ""


def _notes(result: dict) -> str:
    notes = [f"- {title}: {note}" for title, texts in result["notes"].items() for note in texts]
    return "\n".join(
        (
            "## Notes on the figures",
            "",
            *notes,
            "",
            "n: processes. CPU is of the whole measured process; program: its own threads; receiver: sink or server. B garbage: "
            "allocated on the program's threads. others: the highest number of cores that other processes used during a process. "
            "saturated: over 20 % of the time in traces that took more than ten times the median. steady: see "
            "docs/guide/overhead.md. lost: "
            "calls made that did not arrive, the warm-up included.",
        )
    )


def figure(number: float) -> str:
    """Four significant digits, a whole number from 1,000 on; `-` if there is no figure."""
    if not isfinite(number):
        return "-"
    if abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:.4g}" if number else "0"


def bounds(interval: Interval) -> str:
    if not isfinite(interval.low) or not isfinite(interval.high):
        return "-"
    return f"{figure(interval.low)}..{figure(interval.high)}"
