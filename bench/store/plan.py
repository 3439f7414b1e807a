"""The experiments in order: datasets and the queries on them."""

from collections.abc import Iterator
from dataclasses import dataclass

from .data.devops import devops
from .data.operational import operational
from .data.p4 import p4
from .data.sampled import sampled
from .dataset import Dataset
from .options import Options
from .questions import QuestionClass, analysis_classes, devops_classes, range_classes, whole_series

HOSTS, HOSTS_FULL, HOURS = 100, 1_000, 24
OPERATIONAL_DAYS = 100
ROUNDS, ROUNDS_FULL = 1, 20
ANALYSIS_ROUNDS_FULL = 2
WHOLE_SERIES = 20


@dataclass(frozen=True)
class Experiment:
    """A dataset and its queries."""

    work: str
    dataset: Dataset
    classes: list[QuestionClass]


def plan(options: Options) -> Iterator[Experiment]:
    """Yields one experiment after the other, so that not all datasets are in memory at once."""
    if "a" in options.work:
        for hosts in (HOSTS, HOSTS_FULL) if options.full else (HOSTS,):
            dataset = devops(max(1, round(hosts * options.scale)), HOURS, options.seed)
            yield Experiment("a", dataset, devops_classes(dataset, options.queries, options.seed))
    if "b" in options.work:
        for dataset in _real(options):
            yield Experiment("b", dataset, [whole_series(dataset, WHOLE_SERIES, options.seed)])
    if "c" in options.work or "d" in options.work:
        dataset = operational(max(1, round(OPERATIONAL_DAYS * options.scale)), options.seed)
        yield Experiment("cd", dataset, _long_range_classes(options, dataset))


def _real(options: Options) -> Iterator[Dataset]:
    if options.p4 is not None:
        yield p4(options.p4)
    yield sampled(options.cache, options.sample_seconds)


def _long_range_classes(options: Options, dataset: Dataset) -> list[QuestionClass]:
    classes = []
    if "c" in options.work:
        classes += range_classes(dataset, ROUNDS_FULL if options.full else ROUNDS, options.seed)
    if "d" in options.work:
        classes += analysis_classes(dataset, ANALYSIS_ROUNDS_FULL if options.full else ROUNDS, options.seed)
    return classes
