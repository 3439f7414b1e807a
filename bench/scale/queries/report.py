"""Formats the figures of the workload `queries`, and compares them with the aims."""

from ...common.table import table
from ...store.report import TITLES
from ...store.targets import BEFORE, OURS, Verdict, compare

CACHED_RATIO_MAX = 0.5
CORES_RATIO_MAX = 0.55
LIGHT_RATIO_MAX = 3.0
PANELS_RATIO_MAX = 0.5
SHARED_RATIO_MAX = 0.5
WRITE_RATIO_MIN = 1.8
COLUMNS = (
    ("computed_ms", "light"),
    ("computed_cpu_ms", "CPU"),
    ("repeated_ms", "repeated"),
    ("repeated_cpu_ms", "CPU"),
    ("sliding_ms", "sliding"),
    ("sliding_cpu_ms", "CPU"),
    ("heavy_ms", "heavy"),
    ("heavy_cpu_ms", "CPU"),
    ("heavy_one_core_ms", "heavy, one core"),
    ("light_alone_ms_p99", "light, p99"),
    ("light_beside_ms_p99", "p99 beside 4 heavy"),
)
OTHER_COLUMNS = (
    ("panels_ms", "20 panels"),
    ("panels_cpu_ms", "CPU"),
    ("panels_in_turn_ms", "in turn"),
    ("panels_in_turn_cpu_ms", "CPU"),
    ("values_per_second", "values/s"),
    ("values_per_second_one_core", "values/s, one core"),
)


def verdicts(queries: dict) -> list[Verdict]:
    """The aims that compare two cores with one are only measured on a machine with two cores. Empty without Tachograph."""
    systems = {name: figures for name, figures in queries["systems"].items() if name != BEFORE}
    if OURS not in systems:
        return []
    ours = systems[OURS]

    def cached(name: str, aim: str) -> Verdict:
        return compare(aim, {system: figures[name] for system, figures in systems.items()}, ratio_max=CACHED_RATIO_MAX)

    def ratio(over: str, under: str) -> dict[str, float]:
        return {system: figures[over] / figures[under] for system, figures in systems.items()}

    panels = "20 panels over one range"
    found = [
        cached("repeated_ms", "single-groupby-5-8-1 asked again, median ms"),
        cached("sliding_ms", "single-groupby-5-8-1 sliding by a minute, median ms"),
        compare(
            "light query beside 4 heavy ones, p99 / p99 alone",
            ratio("light_beside_ms_p99", "light_alone_ms_p99"),
            limit=LIGHT_RATIO_MAX,
        ),
        compare(f"{panels}, median ms", {name: f["panels_ms"] for name, f in systems.items()}, ratio_max=PANELS_RATIO_MAX),
        compare(
            f"{panels}, CPU at the same time / one after the other (reads are shared)",
            ratio("panels_cpu_ms", "panels_in_turn_cpu_ms"),
            limit=SHARED_RATIO_MAX,
        ),
    ]
    if ours["cores"] == 2:
        aim = "double-groupby-all, time on two cores / on one core"
        found.append(compare(aim, ratio("heavy_ms", "heavy_one_core_ms"), limit=CORES_RATIO_MAX))
        # In all verdicts less is better, so the rate on one core is divided by the rate on two cores.
        aim = f"writing on one core / on two cores, values/s (at least {WRITE_RATIO_MIN} times on two)"
        found.append(compare(aim, ratio("values_per_second_one_core", "values_per_second"), limit=1 / WRITE_RATIO_MIN))
    return found


def report(queries: dict) -> str:
    def rows(columns: tuple[tuple[str, str], ...]) -> str:
        cells = [
            (TITLES[name], *(f"{figures[key]:,.2f}" for key, _ in columns)) for name, figures in queries["systems"].items()
        ]
        return table(("", *(title for _, title in columns)), cells)

    failed = [f"- {TITLES[name]}: failed: {why}" for name, why in queries["failed"].items()]
    text = f"""## (queries) Repeated and sliding questions, all cores

{queries["title"]}; load average after it {queries["load_average_after"]}. Median ms, including the client
(CPU: mean ms of the server): `single-groupby-5-8-1` computed without a cache (light), asked again with a cache (repeated), and
asked with a cache for an hour that begins a minute later each time (sliding); `double-groupby-all` over the day, computed
(heavy).

{rows(COLUMNS)}

20 panels of one field of all hosts over the day, by 5 minutes, computed: from six connections at the same time, and one after the
other. values/s: values written per second from several connections, with the server on all cores and on one.

{rows(OTHER_COLUMNS)}"""
    return "\n\n".join([text, "\n".join(failed)]) if failed else text
