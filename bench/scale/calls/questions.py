"""The questions about calls, with their limits and their form in each system."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from urllib.parse import quote, urlencode

from .generator import SECOND_NS, Calls

SERVICE, OPERATION = "web", "GET /web/items/{id}"
"""An operation with many calls under any seed, because traces begin there."""
OF_OPERATION = f"service = '{SERVICE}' AND operation = '{OPERATION.replace('{', '{{').replace('}', '}}')}'"
LIMIT = 50
MINUTES_17 = 17 * 60


@dataclass(frozen=True)
class Question:
    """`sql` is for all peers: `{spans}` is the table, `{p99}` a quantile. `ours` is the path of Tachograph's API,
    None if the API does not offer the question."""

    name: str
    limit_ms: float
    ours: str | None
    value: Callable[[dict], object]
    """A value of Tachograph's answer that must be equal to `peer_value` of the rows of at least one peer."""
    sql: str
    peer_value: Callable[[list], object]


def questions(calls: Calls, named: dict) -> list[Question]:
    """`named`: a trace of the generator, with its request id and the number of its calls."""
    day = {"start": calls.start_s, "end": calls.end_s}
    part_start = calls.start_s + int(calls.hours * 1_800)
    part = {"start": part_start, "end": part_start + MINUTES_17}
    trace, request = (_uuid(named[key]) for key in ("trace", "request"))
    slowest = {"service": SERVICE, "operation": OPERATION, "order": "slowest", "limit": LIMIT}
    with_503 = {"status": 503, "order": "slowest", "limit": LIMIT}
    return [
        Question("operations, 24 h", 100, _path("operations", day), _count("operations"), _operations(day), _sum(2)),
        Question("services, 24 h", 100, _path("services", day), _nothing, _services(day), _nothing),
        Question("graph of services, 24 h", 100, _path("graph", day | {"level": "service"}), _nothing, _graph(day), _nothing),
        Question("operations, 17 min", 150, _path("operations", part), _count("operations"), _operations(part), _sum(2)),
        Question(
            "trace by id", 10, f"/api/traces/{named['trace']}", lambda body: len(body["spans"]),
            f"SELECT * FROM {{spans}} WHERE trace_id = '{trace}' ORDER BY start_ns", len,
        ),
        Question(
            "trace by request id", 30, _path("traces", day | {"request_id": request, "limit": 1}),
            lambda body: [_uuid(trace["trace_id"]) for trace in body["traces"]],
            f"SELECT trace_id FROM {{spans}} WHERE request_id = '{request}'", lambda rows: [str(row[0]) for row in rows],
        ),
        Question(
            "slowest 50 of an operation, 24 h", 200, _path("traces", day | slowest),
            lambda body: [trace["match"]["duration_ns"] for trace in body["traces"]],
            f"SELECT duration_ns, trace_id, start_ns FROM {{spans}} WHERE {OF_OPERATION} "
            f"ORDER BY duration_ns DESC LIMIT {LIMIT}", lambda rows: [int(row[0]) for row in rows],
        ),
        Question(
            "slowest 50 with status 503, 24 h", 500, _path("traces", day | with_503),
            lambda body: [trace["match"]["duration_ns"] for trace in body["traces"]],
            "SELECT max(duration_ns) AS slowest, trace_id FROM {spans} WHERE status = 503 GROUP BY trace_id "
            f"ORDER BY slowest DESC LIMIT {LIMIT}", lambda rows: [int(row[0]) for row in rows],
        ),
        Question(
            "p99 of an operation by minute, 24 h", 100, None, _nothing,
            f"SELECT start_ns - start_ns % {60 * SECOND_NS} AS minute, {{p99}} FROM {{spans}} "
            f"WHERE {OF_OPERATION} GROUP BY minute ORDER BY minute", _nothing,
        ),
    ]


def parsed(body: bytes) -> dict:
    return json.loads(body)


def _path(what: str, parameters: dict) -> str:
    return f"/api/{what}?{urlencode(parameters, quote_via=quote)}"


def _uuid(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _within(range_s: dict) -> str:
    return f"start_ns >= {range_s['start'] * SECOND_NS} AND start_ns < {range_s['end'] * SECOND_NS}"


def _operations(range_s: dict) -> str:
    return (
        "SELECT service, operation, count(*), sum(failed), {p50}, {p95}, {p99}, min(duration_ns), max(duration_ns), "
        f"sum(duration_ns), sum(self_ns) FROM {{spans}} WHERE {_within(range_s)} GROUP BY service, operation"
    )


def _services(range_s: dict) -> str:
    return (
        "SELECT service, count(*), sum(failed), {p50}, {p95}, {p99} FROM {spans} "
        f"WHERE {_within(range_s)} AND kind = 'http-server' GROUP BY service"
    )


def _graph(range_s: dict) -> str:
    return (
        "SELECT p.service, c.service, count(*), sum(c.failed), sum(c.duration_ns) "
        f"FROM (SELECT * FROM {{spans}} WHERE {_within(range_s)} AND kind = 'http-server') c "
        f"JOIN (SELECT * FROM {{spans}} WHERE {_within(range_s)} AND kind = 'http-client') p "
        "ON c.parent_span_id = p.span_id GROUP BY p.service, c.service"
    )


def _count(key: str) -> Callable[[dict], object]:
    return lambda body: sum(row["count"] for row in body[key])


def _sum(column: int) -> Callable[[list], object]:
    return lambda rows: sum(int(row[column]) for row in rows)


def _nothing(_answer: object) -> float:
    """The value of an answer that is not compared: nan."""
    return nan
