"""PromQL and its JSON responses. VictoriaMetrics, Prometheus and Tachograph share this code.

A window [start, start + w) is queried as [w] at half a step before its end. With this shift the window has the same samples
in all systems, also in systems that include the left end of a range.
"""

import json
from urllib.parse import urlencode

from ...common.client import Request
from ..questions import Grouped, OneSeries, Outliers, Question, Range, Trend
from ..reference import Answer, GroupedAnswer, RangeAnswer
from .base import System

FIELD = "bench_field"
PLACE = "bench_place"
QUARTILES_AND_MAXIMUM = ("0.25", "0.75", "1")


class PromQL(System):
    """A system with the endpoints `/api/v1/query` and `/api/v1/query_range` of Prometheus."""

    extra_parameters: dict[str, str] = {}
    raw_by_export = False
    """Whether raw ranges are queried with `/api/v1/export`, which returns columns."""
    keeps_names = False
    """Whether maxima over time keep the name of the metric, so that one expression is enough for several metrics."""

    def request(self, question: Question) -> Request:
        match question:
            case Grouped():
                first = question.start_ms + question.window_ms - self._before_end_ms
                last = question.end_ms - self._before_end_ms
                return self.get(
                    "/api/v1/query_range",
                    query=self.grouped(question),
                    start=seconds(first),
                    end=seconds(last),
                    step=seconds(question.window_ms),
                )
            case Range() if self.raw_by_export:
                return self._export(question)
            case Range():
                expression = self.selector(question)
            case Trend():
                expression = f"deriv({self.selector(question)})"
            case Outliers():
                expression = self.quantiles(question)
        return self.get("/api/v1/query", query=expression, time=seconds(question.end_ms))

    def answer(self, question: Question, body: bytes) -> Answer:
        if isinstance(question, Range) and self.raw_by_export:
            return _exported(body)
        result = self.rows(body)
        match question:
            case Grouped():
                return self._grouped_answer(question, result)
            case Range():
                pairs = result[0]["values"] if result else []
                return [round(time * 1_000) for time, _ in pairs], [float(value) for _, value in pairs]
            case Trend():
                return tuple(float(row["value"][1]) for row in result)
            case Outliers():
                return tuple(float(row["value"][1]) for row in sorted(result, key=lambda row: float(row["metric"][PLACE])))

    @staticmethod
    def rows(body: bytes) -> list:
        """The series of a response."""
        return json.loads(body)["data"]["result"]

    def grouped(self, question: Grouped) -> str:
        """One expression for all fields. If functions over time drop the name of the metric, a further label has the
        name of the field."""
        if len(question.fields) > 1 and self.keeps_names:
            names = "|".join(self._metric(field) for field in question.fields)
            return self._aggregated(question, f'{{__name__=~"{names}",{self._frames(question)}}}', ("__name__",))
        parts = [
            self._aggregated(question, f"{self._metric(field)}{{{self._frames(question)}}}") for field in question.fields
        ]
        if len(parts) == 1:
            return parts[0]
        return " or ".join(f'label_replace({part},"{FIELD}","{field}","","")' for part, field in zip(parts, question.fields))

    def quantiles(self, question: Outliers) -> str:
        selector = self.selector(question)
        return " or ".join(
            f'label_replace(quantile_over_time({place},{selector}),"{PLACE}","{place}","","")'
            for place in QUARTILES_AND_MAXIMUM
        )

    def selector(self, question: OneSeries) -> str:
        matchers = ",".join(f'{name}="{value}"' for name, value in question.identity)
        return f"{self._metric(question.field)}{{{matchers}}}[{question.end_ms - question.start_ms}ms]"

    def get(self, path: str, **parameters: str) -> Request:
        return Request("GET", f"{path}?{urlencode(parameters | self.extra_parameters)}")

    def _export(self, question: Range) -> Request:
        selector = self.selector(question).partition("[")[0]
        parameters = {"match[]": selector, "start": seconds(question.start_ms), "end": seconds(question.end_ms)}
        return self.get("/api/v1/export", **parameters)

    def _grouped_answer(self, question: Grouped, result: list) -> GroupedAnswer:
        shift = question.window_ms - self._before_end_ms
        return {
            (self._field_of(question, row["metric"]), row["metric"].get(self._key, ""), round(time * 1_000) - shift): float(
                value
            )
            for row in result
            for time, value in row["values"]
        }

    def _aggregated(self, question: Grouped, selector: str, labels: tuple[str, ...] = ()) -> str:
        kept = labels + ((self._key,) if question.by_frame else ())
        by = f" by ({','.join(kept)})" if kept else ""
        return f"{_OUTER[question.aggregate]}({_INNER[question.aggregate]}({selector}[{question.window_ms}ms])){by}"

    def _field_of(self, question: Grouped, metric: dict[str, str]) -> str:
        name = metric.get("__name__", "").removeprefix(f"{self.dataset.measurement}_")
        return metric.get(FIELD) or name or question.fields[0]

    @property
    def _before_end_ms(self) -> int:
        return self.dataset.step_ms // 2

    @property
    def _key(self) -> str:
        return self.dataset.frames[0].key[0]

    def _metric(self, field: str) -> str:
        return f"{self.dataset.measurement}_{field}"

    def _frames(self, question: Grouped) -> str:
        return f'{self._key}=~"{"|".join(question.frames)}"' if question.frames else ""


_OUTER = {"max": "max", "mean": "avg"}
_INNER = {"max": "max_over_time", "mean": "avg_over_time"}


def _exported(body: bytes) -> RangeAnswer:
    """Each line of JSON has a column of times and a column of values."""
    times, values = [], []
    for block in map(json.loads, body.splitlines()):
        times += block["timestamps"]
        values += block["values"]
    return times, values


def seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1_000:.3f}"


def remote_write_request(body: bytes) -> Request:
    """A write by remote write 1.0. All systems with PromQL accept it at the same path."""
    headers = (
        ("Content-Type", "application/x-protobuf"),
        ("Content-Encoding", "snappy"),
        ("X-Prometheus-Remote-Write-Version", "0.1.0"),
    )
    return Request("POST", "/api/v1/write", body, headers)
