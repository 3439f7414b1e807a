"""The questions of the work `queries`, as requests to each system."""

from ...common.client import Request
from ...store.questions import HOUR_MS, Grouped
from ...store.systems.base import System
from ...store.systems.promql import PromQL, seconds

MINUTE_MS = 60_000
LIGHT_HOSTS = 8


def light(system: PromQL, slide_ms: int = 0) -> Grouped:
    """`single-groupby-5-8-1` of TSBS for one hour by minutes. The hour begins `slide_ms` after the middle of the data."""
    dataset = system.dataset
    middle = dataset.start_ms + (dataset.end_ms - dataset.start_ms) // 2 // HOUR_MS * HOUR_MS
    fields, hosts = tuple(dataset.frames[0].columns)[:5], [frame.tags["hostname"] for frame in dataset.frames]
    start = middle + slide_ms
    return Grouped("max", fields, tuple(hosts[:LIGHT_HOSTS]), start, start + HOUR_MS, MINUTE_MS)


def heavy(system: PromQL) -> Grouped:
    """`double-groupby-all` of TSBS over all of the data: ten fields of all hosts by hour."""
    dataset = system.dataset
    hours = (dataset.end_ms + dataset.step_ms - dataset.start_ms) // HOUR_MS
    fields = tuple(dataset.frames[0].columns)
    return Grouped("mean", fields, (), dataset.start_ms, dataset.start_ms + hours * HOUR_MS, HOUR_MS, by_frame=True)


def heavy_request(system: PromQL) -> Request:
    """One expression over all fields. Both systems can divide it by series, unlike one with a `label_replace` for each field."""
    question = heavy(system)
    names = "|".join(f"{system.dataset.measurement}_{field}" for field in question.fields)
    expression = f'avg(avg_over_time({{__name__=~"{names}"}}[{question.window_ms}ms])) by (__name__, hostname)'
    if not system.keeps_names or system.name == "victoriametrics":
        expression = f'avg(avg_over_time({{__name__=~"{names}"}}[{question.window_ms}ms]) keep_metric_names) by (__name__, hostname)'
    half = system.dataset.step_ms // 2
    first, last = question.start_ms + question.window_ms - half, question.end_ms - half
    step = seconds(question.window_ms)
    return system.get("/api/v1/query_range", query=expression, start=seconds(first), end=seconds(last), step=step)


def uses_cache(system: System, uses: bool) -> None:
    """Sets whether the system may answer from its cache. Before the first call of this function, it may not."""
    system.extra_parameters = {} if uses else type(system).extra_parameters
