"""Formats the raw result as tables: measurements, and targets reached or missed."""

from math import isnan
from statistics import median

from ..common.machine import QUIET_LOAD_MAX
from .before import beside
from .systems import SYSTEMS
from ..common.table import table
from .targets import Verdict, verdicts

TITLES = {system.name: system.title for system in SYSTEMS}
VERDICT_HEAD = ("target", "ours", "at most", "best peer", "ours / best", "")


def report(result: dict) -> str:
    parts = (
        [head("The store compared with its peers", result)]
        + [_experiment(experiment) for experiment in result["experiments"]]
        + [_targets(result), _notes(result)]
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def head(title: str, result: dict) -> str:
    """The title, the machine and its load before the run, and the versions of the systems."""
    host = result["machine"]
    versions = ", ".join(f"{TITLES.get(name, name)} {version}" for name, version in result["versions"].items())
    lines = [
        f"# {title}, {result['begun']}",
        "",
        f"{host['processor']}, {host['cores']} cores, {host['memory_bytes'] / 2**30:.0f} GiB, {host['system']}; "
        f"load average before the run {result['load_average_before']}.  ",
        f"{versions}.",
    ]
    if result["load_average_before"] > QUIET_LOAD_MAX:
        lines += [
            "",
            "**The machine was busy with other work: wall times are disturbed; processor seconds and bytes are valid.**",
        ]
    return "\n".join(lines)


def _experiment(experiment: dict) -> str:
    parts = [
        f"## ({', '.join(experiment['work'])}) {experiment['title']}",
        f"{experiment['values']:,} values of {experiment['series']:,} series.",
        _loads(experiment),
    ]
    if experiment["chronix"]:
        parts.append(_chronix(experiment))
    if experiment["loads"] and experiment["queries"]:
        parts.append(_queries(experiment))
    parts.append(beside(experiment))
    not_measured = [f"- {TITLES[name]}: {reason}" for name, reason in experiment["not_measured"].items()]
    wrong = [
        f"- **wrong**: {TITLES[name]}, {group}: {cost['wrong']} of {len(cost['latencies_ms'])}; {cost['faults'][0]}"
        for group, row in experiment["queries"].items()
        for name, cost in row.items()
        if cost["wrong"]
    ]
    parts.append("\n".join(not_measured + wrong + _rounded(experiment)))
    return "\n\n".join(part for part in parts if part)


def _rounded(experiment: dict) -> list[str]:
    """Systems that do not return the written values bit by bit, with the largest relative error."""
    errors = {
        name: max(row[name]["value_error_max"] for row in experiment["queries"].values()) for name in experiment["loads"]
    }
    return [f"- {TITLES[name]} rounds values, error at most {error:.1e}" for name, error in errors.items() if error]


def _loads(experiment: dict) -> str:
    columns = (
        "system",
        "protocol",
        "values/s",
        "CPU us/value, written",
        "CPU us/value, settling",
        "bytes/value",
        "bytes/value before settling",
        "ready s",
        "MB idle",
        "MB peak",
        "MB settled",
        "refused",
        "load average",
    )
    return table(columns, [_load(experiment, name, cost) for name, cost in experiment["loads"].items()])


def _load(experiment: dict, name: str, cost: dict) -> tuple[str, ...]:
    values = experiment["values"]
    return (
        TITLES[name],
        experiment["wires"][name],
        f"{values / cost['seconds']:,.0f}",
        f"{cost['cpu_seconds'] / values * 1e6:.3f}",
        f"{cost['settle_cpu_seconds'] / values * 1e6:.3f}",
        f"{cost['disk_bytes'] / values:.3f}",
        f"{cost['disk_bytes_live'] / values:.3f}",
        f"{cost['ready_seconds']:.2f}",
        *(f"{cost[name] / 1e6:.0f}" for name in ("resident_idle", "resident_peak", "resident_settled")),
        str(cost["refused"]),
        str(cost["load_average"]),
    )


def _chronix(experiment: dict) -> str:
    cost = experiment["chronix"]
    size, gzip_us = cost["bytes"] / cost["values"], cost["gzip_cpu_seconds"] / cost["values"] * 1e6
    return (
        "Chronix's method (date-delta compaction, protobuf, gzip, 128 KiB chunks), the chunks alone: "
        f"{size:.3f} bytes per value; gzip alone takes {gzip_us:.3f} us CPU per value."
    )


def _queries(experiment: dict) -> str:
    """For each class of queries: median and p95 in ms, and processor ms of the server per query."""
    names = list(experiment["loads"])
    rows = [
        (group, str(max(len(cost["latencies_ms"]) for cost in row.values())), *(_query(row[name]) for name in names))
        for group, row in experiment["queries"].items()
    ]
    return "median / p95 ms (server CPU ms) per query:\n\n" + table(
        ("class", "queries", *(TITLES[name] for name in names)), rows
    )


def _query(cost: dict) -> str:
    latencies = sorted(cost["latencies_ms"])
    if not latencies:
        return "not offered"
    mark = " WRONG" if cost["wrong"] else ""
    p95 = latencies[min(len(latencies) - 1, int(len(latencies) * 0.95))]
    return f"{median(latencies):.2f} / {p95:.2f} ({cost['cpu_seconds'] / len(latencies) * 1e3:.2f}){mark}"


def _targets(result: dict) -> str:
    rows = [
        verdict_row(f"({', '.join(experiment['work'])}) ", verdict) for experiment in result["experiments"] for verdict in verdicts(experiment)
    ]
    return "## Targets\n\n" + table(VERDICT_HEAD, rows) if rows else ""


def verdict_row(before: str, verdict: Verdict) -> tuple[str, ...]:
    """A row for a table with the head `VERDICT_HEAD`. `before` comes before the name of the target."""
    peer = f"{TITLES.get(verdict.peer, verdict.peer)} {_figure(verdict.best)}"
    return before + verdict.aim, _figure(verdict.ours), _figure(verdict.limit), peer, _figure(verdict.ratio), _outcome(verdict)


def _outcome(verdict: Verdict) -> str:
    if isnan(verdict.limit):
        return "-"
    if verdict.wrong:
        return "WRONG"
    return "reached" if verdict.reached else "MISSED"


def _figure(number: float) -> str:
    """Three significant digits, a whole number from 100 on; `-` if there is no figure."""
    if isnan(number):
        return "-"
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def _notes(result: dict) -> str:
    lines = [f"- {TITLES[name]}: {note}" for name in result["versions"] for note in result["notes"][name]]
    return "\n".join(
        (
            "## Notes on the figures",
            "",
            *lines,
            "",
            "Every result was compared with a reference computed from the dataset; tolerances are in check.py.",
        )
    )
