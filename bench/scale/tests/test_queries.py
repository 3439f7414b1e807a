"""Tests that the report of the workload `queries` states each aim with its figure."""

from unittest import TestCase

from ..queries import report, verdicts

OURS = {
    "cores": 2,
    "computed_ms": 1.0,
    "computed_cpu_ms": 0.9,
    "repeated_ms": 0.1,
    "repeated_cpu_ms": 0.1,
    "sliding_ms": 0.5,
    "sliding_cpu_ms": 0.4,
    "heavy_ms": 50.0,
    "heavy_cpu_ms": 90.0,
    "heavy_one_core_ms": 100.0,
    "light_alone_ms_p99": 2.0,
    "light_beside_ms_p99": 6.0,
    "panels_ms": 20.0,
    "panels_cpu_ms": 30.0,
    "panels_in_turn_ms": 50.0,
    "panels_in_turn_cpu_ms": 60.0,
    "values_per_second": 1_900_000.0,
    "values_per_second_one_core": 1_000_000.0,
}
PEER = OURS | {"repeated_ms": 0.2, "sliding_ms": 1.0, "panels_ms": 40.0}


def result(ours: dict) -> dict:
    systems = {"tacho": ours, "victoriametrics": PEER}
    return {"title": "devops", "load_average_after": 0.5, "systems": systems, "failed": {}}


def reached(ours: dict) -> list[bool]:
    return [verdict.reached for verdict in verdicts(result(ours))]


class TestQueries(TestCase):
    def test_each_aim_is_reached_at_its_limit_and_missed_above_it(self) -> None:
        self.assertEqual(reached(OURS), [True] * 7)
        slower = {name: value * 1.01 for name, value in OURS.items() if name.endswith("_ms") or "p99" in name}
        slower |= {"light_alone_ms_p99": 2.0, "panels_cpu_ms": 30.3, "panels_in_turn_cpu_ms": 60.0}
        slower |= {"heavy_ms": 55.1, "heavy_one_core_ms": 100.0, "values_per_second": 1_790_000.0}
        self.assertEqual(reached(OURS | slower), [False] * 7)

    def test_cores_are_compared_on_two_cores_only(self) -> None:
        self.assertEqual(len(verdicts(result(OURS | {"cores": 4}))), 5)

    def test_the_report_has_all_figures(self) -> None:
        text = report(result(OURS))
        for figure in ("0.10", "50.00", "6.00", "20.00", "1,900,000.00"):
            self.assertIn(figure, text)
