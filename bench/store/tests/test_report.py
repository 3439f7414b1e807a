"""Tests that the report shows missed targets, wrong results and regressions."""

from copy import deepcopy
from unittest import TestCase

from ..before import changes
from ..options import parse
from ..plot import plots
from ..report import report
from ..targets import verdicts

LOAD = {
    "values": 1_000_000,
    "ready_seconds": 0.1,
    "resident_idle": 10_000_000,
    "anonymous_idle": 2_000_000,
    "load_average": 0.5,
    "seconds": 1.0,
    "refused": 0,
    "resident_peak": 100_000_000,
    "disk_bytes_live": 500_000,
    "settle_seconds": 1.0,
    "settle_cpu_seconds": 0.1,
    "resident_settled": 50_000_000,
    "anonymous_settled": 40_000_000,
}
QUERY = {"processes": [], "cpu_seconds": 0.01, "answer_bytes": 100, "value_error_max": 0.0, "wrong": 0, "faults": [], "not_offered": None}


def result(ours_ms: float, peer_wrong: int, ours_wrong: int = 0) -> dict:
    """Two systems and one class of queries; the peer needs 1 ms."""
    queries = {
        "one": {
            "tacho": QUERY | {"latencies_ms": [ours_ms] * 3, "wrong": ours_wrong, "faults": ["off by two"]},
            "victoriametrics": QUERY | {"latencies_ms": [1.0] * 3, "wrong": peer_wrong, "faults": ["off by one"]},
        }
    }
    experiment = {
        "turns": {},
        "work": "a",
        "title": "devops",
        "values": 1_000_000,
        "series": 10,
        "not_measured": {"graphite": "failed: gone"},
        "wires": {"tacho": "line protocol", "victoriametrics": "line protocol"},
        "chronix": None,
        "queries": queries,
        "loads": {
            "tacho": LOAD | {"cpu_seconds": 0.1, "disk_bytes": 300_000},
            "victoriametrics": LOAD | {"cpu_seconds": 0.7, "disk_bytes": 400_000},
        },
    }
    return {
        "begun": "now",
        "machine": {"processor": "p", "cores": 2, "memory_bytes": 2**30, "system": "s"},
        "load_average_before": 0.1,
        "versions": {"tacho": "1", "victoriametrics": "2"},
        "notes": {"tacho": [], "victoriametrics": ["n"]},
        "experiments": [experiment],
    }


def with_before(factor: float) -> dict:
    """The earlier build took `factor` times as long, with the same bytes. The machine slowed down during the run."""
    found = result(0.4, 0)
    experiment = found["experiments"][0]
    ours = experiment["loads"]["tacho"]
    experiment["loads"]["tacho-before"] = ours
    experiment["wires"]["tacho-before"] = "line protocol"
    found["versions"]["tacho-before"], found["notes"]["tacho-before"] = "1", []
    for system, times in (("tacho", 1.0), ("tacho-before", factor)):
        experiment["turns"][system] = [
            ours | {"cpu_seconds": 0.1 * slow * times, "settle_cpu_seconds": 0.1 * times + 0.01 * (slow - 2)}
            for slow in (1, 2, 3.01)
        ]
        experiment["queries"]["one"][system] = deepcopy(experiment["queries"]["one"]["tacho"]) | {
            "processes": [(slow * times, cpu * times) for slow, cpu in ((1, 1.0), (2, 0.0), (9, 0.0), (3, 0.0))],
        }
    return found


class Before(TestCase):
    def test_changes_are_reported_pair_by_pair(self):
        for factor, written, asked in ((0.8, "WORSE", "WORSE"), (1.0, "-", "-"), (1.25, "better", "better"), (0.99, "-", "-")):
            found = {change.what: change for change in changes(with_before(factor)["experiments"][0])}
            self.assertEqual(written, found["CPU us/value, written"].verdict, factor)
            self.assertEqual(asked, found["one, ms"].verdict, factor)
            self.assertEqual("-", found["bytes/value"].verdict)
            self.assertAlmostEqual(1 / factor, found["one, ms"].ratio.value)
            self.assertEqual("-", found["one, CPU ms"].verdict, "a single pair must not be significant")

    def test_the_earlier_build_is_in_the_report_and_is_not_a_peer(self):
        text = report(with_before(0.8))
        self.assertIn("| CPU us/value, written", text)
        self.assertIn("WORSE", text)
        self.assertEqual({"victoriametrics"}, {each.peer for each in verdicts(with_before(0.8)["experiments"][0])})
        self.assertNotIn("compared with the earlier build", report(result(0.4, 0)))

    def test_the_earlier_build_runs_only_if_the_option_is_given(self):
        self.assertNotIn("tacho-before", parse([]).only)
        chosen = parse(["--only", "tacho", "--before", __file__])
        self.assertEqual((("tacho", "tacho-before"), 8), (chosen.only, chosen.loads))
        self.assertEqual(1, parse([]).loads)


class Report(TestCase):
    def test_targets_are_reached_or_missed(self):
        for ours_ms, reached in ((0.4, True), (0.6, False)):
            found = {verdict.aim: verdict.reached for verdict in verdicts(result(ours_ms, 0)["experiments"][0])}
            self.assertEqual(
                {
                    "CPU us per value, written": True,
                    "CPU us per value, written and settled": False,
                    "bytes per value, settled": False,
                    "peak memory, MB": True,
                    "memory after settling, MB": True,
                    "one, median ms": reached,
                },
                found,
            )

    def test_a_peer_with_wrong_results_is_shown_but_not_compared(self):
        wrong = result(0.4, 2)
        self.assertNotIn("one, median ms", [verdict.aim for verdict in verdicts(wrong["experiments"][0])])
        text = report(wrong)
        self.assertIn("WRONG", text)
        self.assertIn("2 of 3; off by one", text)
        self.assertIn("Graphite: failed: gone", text)
        self.assertIn("MISSED", text)

    def test_wrong_results_do_not_reach_their_target(self):
        wrong = result(0.01, 0, ours_wrong=1)
        self.assertFalse(verdicts(wrong["experiments"][0])[-1].reached)
        self.assertIn("1 of 3; off by two", report(wrong))

    def test_drawings_are_svg(self):
        drawings = plots(result(0.4, 0))
        self.assertEqual({"1-a-space", "1-a-cpu", "1-a-queries"}, set(drawings))
        self.assertTrue(all(text.startswith("<svg") and text.endswith("</svg>\n") for text in drawings.values()))
