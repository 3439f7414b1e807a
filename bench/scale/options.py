"""Options of the command line."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from ..store.options import binary, names, positive
from ..store.systems import Prometheus, Tacho, TachoBefore, VictoriaMetrics
from .calls.systems import PEERS
from .queries import work as queries

SYSTEMS = (Tacho, TachoBefore, VictoriaMetrics, Prometheus, *PEERS)
"""`PEERS` take only calls, VictoriaMetrics and Prometheus only series."""
NAMES = tuple(system.name for system in SYSTEMS if system is not TachoBefore)
WORKS = ("lines", "remote", "churn", "queries", "calls")
SERIES, SERIES_FULL = 100_000, 1_000_000
ROUNDS, ROUNDS_FULL = 20, 240
CALLS, CALLS_FULL = 10_000_000, 1_000_000_000
STEP_SECONDS = 15
CHURN = 0.4
"""Share of the pods that are replaced in each round of the workload `churn`. After 240 rounds there are 97 times as many
series as active ones: 9.7 million for 100,000."""


@dataclass(frozen=True)
class Options:
    """See `--help`."""

    only: tuple[str, ...]
    work: tuple[str, ...]
    series: int
    rounds: int
    calls: int
    churn: float
    seed: int
    cache: Path
    results: Path
    before: Path | None
    hosts: int


def parse(arguments: list[str]) -> Options:
    """Exits with a message and code 2 if the arguments are invalid."""
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.scale", description="Compares Tachograph with its peers with many series and many calls."
    )
    parser.add_argument(
        "--full", action="store_true", help=f"{SERIES_FULL:,} series, {ROUNDS_FULL} rounds, {CALLS_FULL:,} calls: hours"
    )
    parser.add_argument("--only", type=names(NAMES), default=NAMES, help=f"some of {','.join(NAMES)}")
    parser.add_argument(
        "--work",
        type=names(WORKS),
        default=WORKS,
        help="some of lines (line protocol), remote (remote write, as Prometheus sends it), churn (pods are replaced), "
        "queries (repeated questions, all cores), calls",
    )
    parser.add_argument("--series", type=positive(int), default=None, help=f"active series; default {SERIES:,}")
    parser.add_argument(
        "--rounds", type=positive(int), default=None, help=f"samples of each series; default {ROUNDS}, with --full {ROUNDS_FULL}"
    )
    parser.add_argument("--calls", type=positive(int), default=None, help=f"calls; default {CALLS:,}, with --full {CALLS_FULL:,}")
    parser.add_argument("--churn", type=_share, default=CHURN, help="share of the pods replaced in each round of churn")
    parser.add_argument("--seed", type=int, default=123)
    parser.add_argument("--cache", type=Path, default=Path("bench/.cache"), help="directory for packages and data")
    parser.add_argument("--results", type=Path, default=Path("bench-results"))
    parser.add_argument(
        "--before", type=binary, default=None, metavar="TACHO", help="an earlier build of tacho, measured alternately"
    )
    chosen = vars(parser.parse_args(arguments))
    full = chosen.pop("full")
    chosen["hosts"] = queries.HOSTS_FULL if full else queries.HOSTS
    chosen["series"] = chosen["series"] or (SERIES_FULL if full else SERIES)
    chosen["rounds"] = chosen["rounds"] or (ROUNDS_FULL if full else ROUNDS)
    chosen["calls"] = chosen["calls"] or (CALLS_FULL if full else CALLS)
    if chosen["before"]:
        chosen["only"] += (TachoBefore.name,)
    return Options(**chosen | {name: chosen[name].resolve() for name in ("cache", "results")})


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"expected a share above 0 and at most 1, got {text}")
    return value
