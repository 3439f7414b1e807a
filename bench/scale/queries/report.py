"""Formats the figures of the work `queries`, and compares them with the aims."""

from ...common.table import table
from ...store.report import TITLES
from ...store.targets import BEFORE, OURS, Verdict, compare

CACHED_RATIO_MAX = 0.5
CORES_RATIO_MAX = 0.55
LIGHT_RATIO_MAX = 3.0
COLUMNS = (
    ("computed_ms", "light"),
    ("repeated_ms", "repeated"),
    ("sliding_ms", "sliding"),
    ("heavy_ms", "heavy"),
    ("heavy_cpu_ms", "heavy, CPU"),
    ("heavy_one_core_ms", "heavy, one core"),
    ("light_alone_ms_p99", "light, p99"),
    ("light_beside_ms_p99", "p99 beside 4 heavy"),
)


def verdicts(queries: dict) -> list[Verdict]:
    """The results for all aims of this work. Empty without Tachograph."""
    systems = {name: figures for name, figures in queries["systems"].items() if name != BEFORE}
    if OURS not in systems:
        return []
    ours = systems[OURS]

    def cached(name: str, aim: str) -> Verdict:
        return compare(aim, {system: figures[name] for system, figures in systems.items()}, ratio_max=CACHED_RATIO_MAX)

    def ratio(over: str, under: str) -> dict[str, float]:
        return {system: figures[over] / figures[under] for system, figures in systems.items()}

    found = [
        cached("repeated_ms", "single-groupby-5-8-1 asked again, median ms"),
        cached("sliding_ms", "single-groupby-5-8-1 sliding by a minute, median ms"),
        compare(
            "light query beside 4 heavy ones, p99 / p99 alone",
            ratio("light_beside_ms_p99", "light_alone_ms_p99"),
            limit=LIGHT_RATIO_MAX,
        ),
    ]
    if ours["cores"] == 2:
        aim = "double-groupby-all, time on two cores / on one core"
        found.append(compare(aim, ratio("heavy_ms", "heavy_one_core_ms"), limit=CORES_RATIO_MAX))
    return found


def report(queries: dict) -> str:
    rows = [
        (TITLES[name], *(f"{figures[key]:.2f}" for key, _ in COLUMNS)) for name, figures in queries["systems"].items()
    ]
    failed = [f"- {TITLES[name]}: failed: {why}" for name, why in queries["failed"].items()]
    text = f"""## (queries) Repeated and sliding questions, all cores

{queries["title"]}; load average after it {queries["load_average_after"]}. Median ms, including the client:
`single-groupby-5-8-1` computed (light), with the cache of the system asked again (repeated) or for a minute later each time
(sliding); `double-groupby-all` over the day, computed (heavy).

{table(("", *(title for _, title in COLUMNS)), rows)}"""
    return "\n\n".join([text, "\n".join(failed)]) if failed else text
