"""Options of the command line."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from .systems import SYSTEMS, TachoBefore

WORKS = ("a", "b", "c", "d")
NAMES = tuple(system.name for system in SYSTEMS if system is not TachoBefore)
LOADS_BEFORE = 8
"""With fewer pairs, a strict interval is several times as wide."""


@dataclass(frozen=True)
class Options:
    """See `--help`."""

    full: bool
    only: tuple[str, ...]
    work: tuple[str, ...]
    scale: float
    queries: int
    seed: int
    p4: Path | None
    sample_seconds: int
    cache: Path
    results: Path
    before: Path | None
    loads: int


def parse(arguments: list[str]) -> Options:
    """Exits with a message and code 2 if the arguments are invalid."""
    parser = argparse.ArgumentParser(prog="python3 -m bench.store", description="Compares the store with its peers.")
    parser.add_argument(
        "--full", action="store_true", help="also 1,000 hosts, and Chronix's 20 rounds of 72 range queries (hours)"
    )
    parser.add_argument("--only", type=names(NAMES), default=NAMES, help=f"some of {','.join(NAMES)}")
    parser.add_argument(
        "--work",
        type=names(WORKS),
        default=WORKS,
        help="some of a (devops load), b (real series), c (range queries), d (analyses); default: all",
    )
    parser.add_argument(
        "--scale", type=positive(float), default=1.0, help="factor for the hosts of (a) and the days of (c) and (d)"
    )
    parser.add_argument(
        "--queries", type=positive(int), default=None, help="queries per class of (a); default 60, with --full 1,000"
    )
    parser.add_argument("--seed", type=int, default=123)
    parser.add_argument("--p4", type=Path, default=None, help="a folder with Chronix's published P4 files (*.csv.gz)")
    parser.add_argument(
        "--sample-seconds", type=positive(int), default=60, help="seconds of reading this machine's /proc for (b)"
    )
    parser.add_argument(
        "--cache", type=Path, default=Path("bench/.cache"), help="directory for installed packages and generated data"
    )
    parser.add_argument("--results", type=Path, default=Path("bench-results"))
    parser.add_argument(
        "--before", type=binary, default=None, metavar="TACHO", help="an earlier build of tacho, measured alternately"
    )
    parser.add_argument(
        "--loads", type=positive(int), default=None, help="loads per system, alternately; default 1, with --before 8"
    )
    chosen = vars(parser.parse_args(arguments))
    chosen["queries"] = chosen["queries"] or (1_000 if chosen["full"] else 60)
    chosen["loads"] = chosen["loads"] or (LOADS_BEFORE if chosen["before"] else 1)
    if chosen["before"]:
        chosen["only"] += (TachoBefore.name,)
    return Options(**chosen | {name: chosen[name].resolve() for name in ("cache", "results")})


def names(known: tuple[str, ...]):
    def chosen_names(text: str) -> tuple[str, ...]:
        chosen = tuple(text.split(","))
        if unknown := set(chosen) - set(known):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(known)}")
        return chosen

    return chosen_names


def binary(text: str) -> Path:
    if not (file := Path(text).resolve()).is_file():
        raise argparse.ArgumentTypeError(f"{text} is not a file")
    return file


def positive(kind: type):
    def number(text: str):
        value = kind(text)
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return value

    return number
