"""Formats the raw result as tables: figures, processor time by round, and aims reached or missed."""

from statistics import median

from ..common.table import table
from ..store.report import TITLES as STORE_TITLES
from ..store.report import VERDICT_HEAD, head, verdict_row
from . import queries
from .aims import cpu_us, not_measured, series_bytes, stall_ms, verdicts
from .calls.report import section
from .calls.systems import PEERS

TITLES = STORE_TITLES | {peer.name: peer.title for peer in PEERS}
COLUMNS_MAX = 12
TITLE_OF_WORK = {
    "lines": "Line protocol, one time a round, bodies of 50,000 lines",
    "remote": "Remote write as Prometheus sends it: 4 shards, 2,000 samples a request, a time for each pod",
    "churn": "Churn: remote write, pods are replaced in each round",
}


def report(result: dict) -> str:
    parts = [head("Many series and calls compared with peers", result)]
    parts += [_work(work) for work in result["works"]]
    rows = [verdict_row(f"({work['work']}) ", verdict) for work in result["works"] for verdict in verdicts(work)]
    if asked := result.get("queries"):
        parts.append(queries.report(asked))
        rows += [verdict_row("(queries) ", verdict) for verdict in queries.verdicts(asked)]
    if rows:
        parts.append("## Aims\n\n" + table(VERDICT_HEAD, rows))
    parts += ["\n".join(f"- not measured: {aim}" for aim in not_measured(result["works"])), _notes(result)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _work(work: dict) -> str:
    if work["work"] == "calls":
        return section(work)
    parts = [
        f"## ({work['work']}) {TITLE_OF_WORK[work['work']]}",
        f"{work['series']:,} active series, {work['series_ever']:,} in all, {work['rounds']} rounds; "
        f"load average after them {work['load_average_after']}.",
    ]
    if work["systems"]:
        parts += [_writing(work), _state(work), _rounds(work)]
    lost = [f"- **wrong**: {TITLES[name]}, {fault}" for name, cost in work["systems"].items() for fault in cost["faults"]]
    parts.append("\n".join([f"- {TITLES[name]}: failed: {why}" for name, why in work["failed"].items()] + lost))
    return "\n\n".join(part for part in parts if part)


def _writing(work: dict) -> str:
    series = work["series"]
    rows = []
    for name, cost in work["systems"].items():
        cpu = cpu_us(cost, series)
        rows.append(
            (
                TITLES[name],
                f"{cpu[0]:.2f}",
                f"{median(cpu):.2f}",
                f"{cpu[-1]:.2f}",
                f"{cost['settle_cpu_seconds']:.1f}",
                f"{series * len(cpu) / sum(each['seconds'] for each in cost['rounds']):,.0f}",
                f"{stall_ms(cost):.0f}",
                f"{max(each['request_seconds_max'] for each in cost['rounds']) * 1e3:.0f}",
                str(sum(each["refused"] for each in cost["rounds"])),
            )
        )
    columns = ("first", "median", "last", "CPU s after", "samples/s", "one sample, ms", "request, ms", "refused")
    return "Writing: CPU us per sample of the first, the median and the last round; longest writes:\n\n" + table(
        ("", *columns), rows
    )


def _state(work: dict) -> str:
    # One more round is written after the kill.
    samples = work["series"] * (work["rounds"] + 1)
    rows = [
        (
            TITLES[name],
            *(f"{cost[key] / 1e6:.0f}" for key in ("resident", "anonymous", "resident_peak")),
            f"{series_bytes(cost, work['series']):.0f}",
            f"{cost['disk_bytes'] / 1e6:.1f}",
            f"{cost['disk_bytes_stopped'] / 1e6:.1f}",
            f"{cost['disk_bytes_stopped'] / samples:.2f}",
            f"{cost['ready_after_kill_seconds']:.2f}",
            f"{cost['stop_seconds']:.2f}",
            f"{cost['ready_after_stop_seconds']:.2f}",
        )
        for name, cost in work["systems"].items()
    ]
    columns = ("MB", "anonymous", "peak", "B/series", "disk MB", "stopped", "B/sample", "ready after kill, s", "stop, s")
    return "After the rounds:\n\n" + table(("", *columns, "ready after stop, s"), rows)


def _rounds(work: dict) -> str:
    """At most `COLUMNS_MAX` rounds, equally far apart."""
    count = work["rounds"]
    shown = sorted({round(nth * (count - 1) / max(1, min(COLUMNS_MAX, count) - 1)) for nth in range(min(COLUMNS_MAX, count))})
    rows = [
        (TITLES[name], *(f"{cpu_us(cost, work['series'])[number]:.2f}" for number in shown))
        for name, cost in work["systems"].items()
    ]
    return "CPU us per sample by round:\n\n" + table(("", *(str(number + 1) for number in shown)), rows)


def _notes(result: dict) -> str:
    lines = [f"- {TITLES[name]}: {note}" for name in result["versions"] for note in result["notes"][name]]
    general = (
        "- rounds follow each other without a pause, so background work has less time than with a scrape every 15 s",
        "- snappy blocks of remote write are single literals: no system spends time on decompression",
        "- the samples of five pods were compared with the written ones after the rounds, after kill -9 and after a stop",
    )
    return "\n".join(("## Notes on the figures", "", *lines, *general))
