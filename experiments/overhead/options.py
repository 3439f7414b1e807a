"""The command line."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from .frameworks import FRAMEWORKS
from .frameworks.ours import TachographBefore, before
from .plan import EXPERIMENTS

SETUPS = tuple(
    setup.name for framework in FRAMEWORKS for setup in framework.setups if not isinstance(framework, TachographBefore)
)
EXAMPLES = """examples:
  make bench-probe                                          the short form, under 30 minutes on two cores
  make bench-probe ARGS=--full                              10 processes of each kind, 20 s each: hours
  make bench-probe ARGS='--only ours,kieker-tcp'            `none` is always measured too
  make bench-probe ARGS='--experiments configurations --forks 5'
  make bench-probe ARGS='--compare bench-results/probe-20261122T120000Z'
  make bench-probe ARGS='--only ours --before-agent OLD/agent/java/target/tachograph-agent.jar'   compare two builds
  make bench-probe ARGS='--report bench-results/probe-20261122T120000Z'   tables and figures again, without measuring
"""


@dataclass(frozen=True)
class Options:
    """See `--help`."""

    full: bool
    only: tuple[str, ...]
    experiments: tuple[str, ...]
    forks: int | None
    seconds: float | None
    seed: int
    idle_wait: float
    compare: Path | None
    before_agent: Path | None
    report: Path | None
    cache: Path
    results: Path


def parse(arguments: list[str]) -> Options:
    """The parsed options. Ends the process with a message and exit code 2 if the arguments are wrong."""
    parser = argparse.ArgumentParser(
        prog="make bench-probe ARGS=...",
        description="Overhead of agents for Java: ours and others, in new processes, in random order.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="10 processes of each kind, 20 s each (sustained: 3, 60 s each); all depths and method times",
    )
    parser.add_argument(
        "--only",
        type=_setups,
        default=SETUPS,
        metavar="NAMES",
        help=f"frameworks or setups, separated by commas: {', '.join(SETUPS)}; a prefix such as `ours` selects all its setups",
    )
    parser.add_argument(
        "--experiments", type=_experiments, default=EXPERIMENTS, metavar="NAMES", help=f"some of {', '.join(EXPERIMENTS)}"
    )
    parser.add_argument(
        "--forks", type=_positive(int), default=None, metavar="N", help="processes of each kind (sustained: a third)"
    )
    parser.add_argument(
        "--seconds",
        type=_positive(float),
        default=None,
        metavar="S",
        help="seconds of each process, the first half is warm-up (sustained: 12 times as many, at most 60; a sixth is warm-up)",
    )
    parser.add_argument("--seed", type=int, default=123, metavar="N", help="seed of the order (123)")
    parser.add_argument(
        "--idle-wait",
        type=_not_negative,
        default=30.0,
        metavar="S",
        help="longest wait for an idle machine before each process; after that the process is measured anyway (30)",
    )
    parser.add_argument("--compare", type=_run, default=None, metavar="DIR", help="an earlier run to compare with")
    parser.add_argument(
        "--before-agent", type=_jar, default=None, metavar="JAR", help="an earlier build of the agent, measured alternately"
    )
    parser.add_argument("--report", type=_run, default=None, metavar="DIR", help="measure nothing: report this run again")
    parser.add_argument("--cache", type=Path, default=Path("bench/.cache"), metavar="DIR", help="directory for downloads")
    parser.add_argument("--results", type=Path, default=Path("bench-results"), metavar="DIR")
    chosen = vars(parser.parse_args(arguments))
    if chosen["before_agent"]:
        chosen["only"] = tuple(dict.fromkeys(each for name in chosen["only"] for each in (name, before(name))))
    return Options(**chosen | {name: chosen[name].resolve() for name in ("cache", "results")})


def _setups(text: str) -> tuple[str, ...]:
    """Selects setups. A name selects the setup with this name, and all setups whose names start with the name and a
    hyphen. `none` is always selected."""
    wanted = text.split(",")
    for name in wanted:
        if not any(_stands_for(name, setup) for setup in SETUPS):
            raise argparse.ArgumentTypeError(f"unknown: {name}; there are {', '.join(SETUPS)}")
    return tuple(setup for setup in SETUPS if setup == "none" or any(_stands_for(name, setup) for name in wanted))


def _stands_for(name: str, setup: str) -> bool:
    return setup == name or setup.startswith(f"{name}-")


def _experiments(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    if unknown := sorted(set(chosen) - set(EXPERIMENTS)):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}")
    return chosen


def _jar(text: str) -> Path:
    if not (file := Path(text).resolve()).is_file():
        raise argparse.ArgumentTypeError(f"{text} is not a file")
    return file


def _run(text: str) -> Path:
    folder = Path(text).resolve()
    if not (folder / "raw.json").exists():
        raise argparse.ArgumentTypeError(f"{text} has no raw.json: it is not the directory of a run")
    return folder


def _positive(kind: type):
    def number(text: str):
        value = kind(text)
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return value

    return number


def _not_negative(text: str) -> float:
    value = float(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return value
