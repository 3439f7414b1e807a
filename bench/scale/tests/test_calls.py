"""Tests that the report of the workload `calls` has a figure for each aim, and that its SQL statements are complete."""

from math import isnan
from unittest import TestCase

from ..aims import not_measured, verdicts
from ..calls.generator import Calls
from ..calls.questions import questions
from ..calls.report import section
from ..calls.systems import COLUMNS, ClickHouse, DuckDb
from ..report import report

NAMED = {"trace": "0123456789abcdef0123456789abcdef", "request": "f" * 32, "calls": 7}


def load(size: int) -> dict:
    return {"cpu_seconds": size / 1e3, "wall_seconds": 2.0, "bytes": size, "peak": 10_000_000}


def asked(ours: float | None, peer: float, wrong: bool = False) -> dict:
    costs = {"tacho": ours, "chdb": peer}
    figures = {name: {"wall_ms": ms, "first_ms": ms, "cpu_ms": ms, "peak": 300e6} for name, ms in costs.items() if ms}
    return {"limit_ms": 100, "is_offered": ours is not None, "wrong": wrong, "failed": {"duckdb": "memory"}, "costs": figures}


def work(answers: dict) -> dict:
    return {
        "work": "calls",
        "calls": 1_000,
        "traces": 20,
        "hours": 24.0,
        "loads": {"tacho": load(1_500), "chdb": load(4_000)},
        "questions": answers,
        "failed": {},
        "load_average_after": 0.5,
    }


class CallsReport(TestCase):
    def test_each_aim_has_its_figure_and_its_outcome(self):
        found = {verdict.aim: verdict for verdict in verdicts(work({"graph": asked(80, 100)}))}
        self.assertTrue(found["bytes per call"].reached)
        self.assertEqual(found["bytes per call, beside peers"].limit, 2.0)
        self.assertTrue(found["graph, wall ms"].reached)
        self.assertFalse(found["graph, wall ms, beside peers"].reached)
        self.assertFalse(found["graph, peak MB"].reached)

    def test_a_question_that_is_answered_wrongly_or_not_offered_misses_its_aims(self):
        found = verdicts(work({"p99": asked(None, 5), "graph": asked(1, 5, wrong=True)}))
        of_questions = [verdict for verdict in found if not verdict.aim.startswith(("bytes", "load"))]
        self.assertEqual([verdict.reached for verdict in of_questions], [False] * 5)
        self.assertTrue(isnan(of_questions[0].ours))

    def test_the_report_has_the_figures_and_the_failures(self):
        text = section(work({"graph": asked(80, 100)}))
        self.assertIn("80.0 (80.0; 300) 80.0", text)
        self.assertIn("DuckDB on Parquet, graph: failed: memory", text)
        whole = report(
            {
                "begun": "now",
                "machine": {"processor": "p", "cores": 2, "memory_bytes": 2**30, "system": "s"},
                "load_average_before": 0.1,
                "versions": {"tacho": "1", "chdb": "2"},
                "notes": {"tacho": [], "chdb": ["fast"]},
                "works": [work({"graph": asked(80, 100)})],
            }
        )
        self.assertIn("(calls) graph, wall ms, beside peers", whole)
        self.assertIn("line protocol: --work lines", "\n".join(not_measured([work({})])))


class CallsStatements(TestCase):
    def test_each_statement_is_complete_for_each_peer(self):
        for question in questions(Calls(10, 1, 1_700_000_000, 24.0), NAMED):
            for peer in (ClickHouse, DuckDb):
                quantiles = {f"p{percent}": peer.quantile.format(percent / 100) for percent in (50, 95, 99)}
                text = question.sql.format(spans="spans", **quantiles)
                self.assertNotIn("{spans}", text)
                self.assertNotIn("{p", text)

    def test_the_types_of_all_columns_are_known(self):
        self.assertEqual({DuckDb.TYPES.get(kind, "") != "" for kind in COLUMNS.values()}, {True})
