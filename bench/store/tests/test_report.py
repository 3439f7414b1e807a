"""Are missed aims called missed, and wrong answers wrong?"""

from unittest import TestCase

from ..plot import plots
from ..report import report
from ..targets import verdicts

LOAD = {
    "values": 1_000_000,
    "ready_seconds": 0.1,
    "resident_idle": 10_000_000,
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
QUERY = {"cpu_seconds": 0.01, "answer_bytes": 100, "value_error_max": 0.0, "wrong": 0, "faults": [], "not_offered": None}


def result(ours_ms: float, peer_wrong: int, ours_wrong: int = 0) -> dict:
    """Two systems and one class of questions; the peer needs 1 ms."""
    queries = {
        "one": {
            "tacho": QUERY | {"latencies_ms": [ours_ms] * 3, "wrong": ours_wrong, "faults": ["off by two"]},
            "victoriametrics": QUERY | {"latencies_ms": [1.0] * 3, "wrong": peer_wrong, "faults": ["off by one"]},
        }
    }
    experiment = {
        "work": "a",
        "title": "devops",
        "values": 1_000_000,
        "series": 10,
        "left_out": {"graphite": "failed: gone"},
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


class Report(TestCase):
    def test_aims(self):
        for ours_ms, reached in ((0.4, True), (0.6, False)):
            found = {verdict.aim: verdict.reached for verdict in verdicts(result(ours_ms, 0)["experiments"][0])}
            self.assertEqual(
                {
                    "CPU us a value, written": True,
                    "CPU us a value, written and settled": False,
                    "bytes a value, settled": False,
                    "peak memory, MB": True,
                    "memory after settling, MB": True,
                    "one, median ms": reached,
                },
                found,
            )

    def test_a_wrong_peer_is_no_measure_and_stays(self):
        wrong = result(0.4, 2)
        self.assertNotIn("one, median ms", [verdict.aim for verdict in verdicts(wrong["experiments"][0])])
        text = report(wrong)
        self.assertIn("WRONG", text)
        self.assertIn("2 of 3; off by one", text)
        self.assertIn("Graphite: failed: gone", text)
        self.assertIn("MISSED", text)

    def test_nothing_is_reached_by_wrong_answers(self):
        wrong = result(0.01, 0, ours_wrong=1)
        self.assertFalse(verdicts(wrong["experiments"][0])[-1].reached)
        self.assertIn("1 of 3; off by two", report(wrong))

    def test_drawings(self):
        drawings = plots(result(0.4, 0))
        self.assertEqual({"1-a-space", "1-a-cpu", "1-a-queries"}, set(drawings))
        self.assertTrue(all(text.startswith("<svg") and text.endswith("</svg>\n") for text in drawings.values()))
