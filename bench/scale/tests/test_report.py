"""Tests that the report states each aim with its figure, and shows lost samples and failed systems."""

from unittest import TestCase

from ..aims import cpu_us, not_measured, verdicts
from ..options import parse
from ..report import report

SERIES = 1_000
COST = {
    "ready_seconds": 0.1,
    "resident_idle": 10_000,
    "settle_cpu_seconds": 0.2,
    "anonymous": 90_000,
    "resident_peak": 300_000,
    "disk_bytes": 50_000,
    "ready_after_stop_seconds": 0.5,
    "stop_seconds": 0.2,
    "faults": [],
}


def cost(cpu: list[float], resident: int, ready: float = 0.4, stall: float = 0.1, faults: tuple[str, ...] = ()) -> dict:
    """`cpu` is in us per sample, by round."""
    at = [sum(cpu[:nth]) * SERIES / 1e6 for nth in range(len(cpu) + 1)]
    rounds = [
        {
            "seconds": 1.0,
            "cpu_seconds_at_start": start,
            "refused": 1,
            "request_seconds_max": 2 * stall,
            "small_seconds_max": stall,
        }
        for start in at[:-1]
    ]
    state = {"resident": resident, "disk_bytes_stopped": resident // 10, "ready_after_kill_seconds": ready}
    return COST | state | {"rounds": rounds, "cpu_seconds_after": at[-1], "faults": list(faults)}


def result(ours: dict, failed: dict[str, str] | None = None) -> dict:
    peers = {"victoriametrics": cost([8, 2, 2, 2], 200_000), "prometheus": cost([4, 4, 4, 4], 400_000)}
    work = {
        "work": "remote",
        "series": SERIES,
        "series_ever": 2 * SERIES,
        "rounds": 4,
        "systems": {"tacho": ours} | peers,
        "failed": failed or {},
        "load_average_after": 0.5,
    }
    return {
        "begun": "now",
        "machine": {"processor": "p", "cores": 2, "memory_bytes": 2**30, "system": "s"},
        "load_average_before": 0.1,
        "versions": {"tacho": "1", "victoriametrics": "2", "prometheus": "3"},
        "notes": {"tacho": [], "victoriametrics": ["n"], "prometheus": []},
        "works": [work],
    }


class Aims(TestCase):
    def outcomes(self, ours: dict) -> dict[str, bool]:
        return {verdict.aim: verdict.reached for verdict in verdicts(result(ours)["works"][0])}

    def test_each_aim_is_compared_with_its_limit_or_the_best_peer(self):
        good = self.outcomes(cost([2, 1, 1, 1], 140_000))
        self.assertEqual({True}, set(good.values()), good)
        bad = self.outcomes(cost([2, 1, 1.2, 1.4], 150_000, ready=2.1, stall=0.26))
        self.assertEqual(
            {
                "CPU us per sample, worst round (4)": False,
                "CPU per sample, last quarter / second quarter of the rounds": False,
                "memory after the rounds, MB": False,
                "memory above idle, bytes per series": True,
                "disk after a stop, MB": False,
                "ready after kill -9, s": False,
                "ready after a stop, s": True,
                "longest write of one sample, ms": False,
            },
            bad,
        )

    def test_work_in_the_background_counts_for_the_round_before(self):
        self.assertEqual([2, 1, 3, 1], [round(each, 6) for each in cpu_us(cost([2, 1, 3, 1], 1), SERIES)])

    def test_tachograph_reaches_no_aim_if_it_lost_samples(self):
        lost = cost([2, 1, 1, 1], 140_000, faults=("after kill -9: gone",))
        self.assertEqual({False}, set(self.outcomes(lost).values()))
        self.assertIn("**wrong**: Tachograph, after kill -9: gone", report(result(lost)))

    def test_an_earlier_build_is_not_a_peer(self):
        found = result(cost([2, 1, 1, 1], 140_000))["works"][0]
        found["systems"]["tacho-before"] = cost([0.1] * 4, 1)
        self.assertTrue(all(verdict.reached for verdict in verdicts(found)))

    def test_aims_that_are_not_measured_are_named(self):
        works = result(cost([2, 1, 1, 1], 140_000))["works"]
        self.assertEqual(
            ["10 million active series", "line protocol", "churn of series", "calls"],
            [aim.partition(" within")[0].partition(":")[0] for aim in not_measured(works)],
        )


class Report(TestCase):
    def test_the_report_has_figures_aims_and_failures(self):
        text = report(result(cost([2, 1, 1, 3], 140_000), failed={"prometheus": "exited with 1"}))
        for part in ("| Tachograph ", "MISSED", "reached", "Prometheus: failed: exited with 1", "2,000 in all", "3.00"):
            self.assertIn(part, text)

    def test_a_single_round_has_no_growth(self):
        found = result(cost([2], 140_000))
        found["works"][0]["rounds"] = 1
        self.assertIn("CPU per sample, last quarter", report(found))

    def test_options_have_a_short_and_a_full_form(self):
        self.assertEqual((100_000, 20), (parse([]).series, parse([]).rounds))
        self.assertEqual((1_000_000, 240), (parse(["--full"]).series, parse(["--full"]).rounds))
        self.assertEqual((7, 240), (parse(["--full", "--series", "7"]).series, parse(["--full"]).rounds))
        chosen = parse(["--only", "tacho", "--before", __file__])
        self.assertEqual(("tacho", "tacho-before"), chosen.only)
