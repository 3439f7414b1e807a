"""The questions of the workload `queries`, as requests to each system."""

from ...common.client import Request
from ...store.questions import HOUR_MS, Grouped
from ...store.systems.base import System
from ...store.systems.promql import PromQL, seconds

MINUTE_MS = 60_000
LIGHT_HOSTS = 8
PANEL_STEP_MS = 5 * MINUTE_MS


def light(system: PromQL, slide_ms: int = 0) -> Grouped:
    """`single-groupby-5-8-1` of TSBS for one hour by minutes. The hour begins `slide_ms` after the
    middle of the data, which is rounded down to a whole hour."""
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


def heavy_request(system: PromQL, hosts: int | None = None, hours: int | None = None) -> Request:
    """One expression over all fields of all data, or only of the first `hosts` hosts or the first `hours` hours. Tachograph and
    VictoriaMetrics can distribute its series over the cores, unlike an expression with a `label_replace` for each field."""
    question = heavy(system)
    names = "|".join(f"{system.dataset.measurement}_{field}" for field in question.fields)
    selected = f'__name__=~"{names}"'
    if hosts is not None:
        selected += f',hostname=~"{"|".join(frame.tags["hostname"] for frame in system.dataset.frames[:hosts])}"'
    windows = f"avg_over_time({{{selected}}}[{question.window_ms}ms])"
    if not system.keeps_names or system.name == "victoriametrics":
        windows += " keep_metric_names"
    expression = f"avg({windows}) by (__name__, hostname)"
    half = system.dataset.step_ms // 2
    end_ms = question.end_ms if hours is None else question.start_ms + hours * HOUR_MS
    first, last = question.start_ms + question.window_ms - half, end_ms - half
    step = seconds(question.window_ms)
    return system.get("/api/v1/query_range", query=expression, start=seconds(first), end=seconds(last), step=step)


def panels(system: PromQL) -> list[Request]:
    """20 panels of a dashboard, all over the same series and the same range: one field of all hosts, by 5 minutes."""
    dataset = system.dataset
    metric = f"{dataset.measurement}_{next(iter(dataset.frames[0].columns))}"
    times = {"start": seconds(dataset.start_ms + PANEL_STEP_MS), "end": seconds(dataset.end_ms), "step": seconds(PANEL_STEP_MS)}
    return [
        system.get("/api/v1/query_range", query=f"{outer}({inner}_over_time({metric}[{PANEL_STEP_MS}ms]))", **times)
        for inner in ("avg", "max", "min", "sum", "count")
        for outer in ("avg", "max", "min", "sum")
    ]


def uses_cache(system: System, uses: bool) -> None:
    """Sets whether the system may answer from its cache. Initially it may not."""
    system.extra_parameters = {} if uses else type(system).extra_parameters
