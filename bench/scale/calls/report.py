"""Tables and aims of the workload `calls`."""

from math import nan

from ...common.table import table
from ...store.targets import BEFORE, OURS, Verdict, compare
from .systems import PEERS

BYTES_A_CALL_MAX = 2.0
RATIO_MAX = 0.5
MEMORY_MB_MAX = 256.0
TITLES = {OURS: "Tachograph", BEFORE: "Tachograph before"} | {peer.name: peer.title for peer in PEERS}


def section(work: dict) -> str:
    rows = [
        (
            TITLES[name],
            f"{load['bytes'] / work['calls']:.2f}",
            f"{load['cpu_seconds'] / work['calls'] * 1e6:.3f}",
            f"{work['calls'] / load['wall_seconds']:,.0f}",
            f"{load['peak'] / 1e6:.0f}",
        )
        for name, load in work["loads"].items()
    ]
    parts = [
        "## (calls) Calls of 30 services",
        f"{work['calls']:,} calls, {work['traces']:,} traces, {work['hours']:g} h; "
        f"load average after them {work['load_average_after']}.",
        table(("", "bytes per call", "CPU us per call", "calls/s", "peak MB"), rows),
        "Questions, asked three times: median wall ms (median CPU ms; largest peak MB), wall ms of the first time:",
        _questions(work),
    ]
    failed = [f"- {TITLES[name]}: failed: {why}" for name, why in work["failed"].items()]
    for name, asked in work["questions"].items():
        failed += [f"- {TITLES[system]}, {name}: failed: {why}" for system, why in asked["failed"].items()]
        failed += [f"- **wrong**: Tachograph, {name}"] if asked["wrong"] else []
    return "\n\n".join([part for part in parts if part] + (["\n".join(failed)] if failed else []))


def _questions(work: dict) -> str:
    names = [name for name in TITLES if name in work["loads"]]

    def cell(asked: dict, name: str) -> str:
        if cost := asked["costs"].get(name):
            return f"{cost['wall_ms']:.1f} ({cost['cpu_ms']:.1f}; {cost['peak'] / 1e6:.0f}) {cost['first_ms']:.1f}"
        return "failed" if name in asked["failed"] else "-"

    rows = [(name, *(cell(asked, system) for system in names)) for name, asked in work["questions"].items()]
    return table(("", *(TITLES[name] for name in names)), rows)


def verdicts(work: dict) -> list[Verdict]:
    """For all aims that this workload measures. Empty without Tachograph."""
    loads = {name: load for name, load in work["loads"].items() if name != BEFORE}
    if OURS not in loads:
        return []
    a_call = {name: load["bytes"] / work["calls"] for name, load in loads.items()}
    cpu = {name: load["cpu_seconds"] / work["calls"] * 1e6 for name, load in loads.items()}
    found = [compare("bytes per call", a_call, limit=BYTES_A_CALL_MAX)]
    if len(loads) > 1:
        found.append(compare("bytes per call, beside peers", a_call, ratio_max=RATIO_MAX))
        found.append(compare("load CPU us per call, settled", cpu, ratio_max=RATIO_MAX))
    for name, asked in work["questions"].items():
        found += _question(name, asked)
    return found


def _question(name: str, asked: dict) -> list[Verdict]:
    costs = {system: cost for system, cost in asked["costs"].items() if system != BEFORE}
    if OURS not in costs:
        # Tachograph does not offer the question, or failed to answer it.
        return [Verdict(f"{name}, wall ms", nan, asked["limit_ms"], nan, "none")]
    wall = {system: cost["wall_ms"] for system, cost in costs.items()}
    cpu = {system: cost["cpu_ms"] for system, cost in costs.items()}
    found = [compare(f"{name}, wall ms", wall, limit=asked["limit_ms"])]
    if len(costs) > 1:
        found.append(compare(f"{name}, wall ms, beside peers", wall, ratio_max=RATIO_MAX))
        found.append(compare(f"{name}, CPU ms, beside peers", cpu, ratio_max=RATIO_MAX))
    found.append(compare(f"{name}, peak MB", {OURS: costs[OURS]["peak"] / 1e6}, limit=MEMORY_MB_MAX))
    return [Verdict(v.aim, v.ours, v.limit, v.best, v.peer, wrong=asked["wrong"]) for v in found]
