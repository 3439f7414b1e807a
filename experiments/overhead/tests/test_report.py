"""Tests that the report contains the measured figures, and marks losses next to the times."""

from copy import deepcopy
from unittest import TestCase
from xml.etree import ElementTree

from ..compare import Change, compare, differences, halves, judge
from ..plot import plots, thinned
from ..report import bounds, figure, report
from bench.common.statistic import Interval
from ..summary import by_name, linearity, stages
from ..targets import published, verdicts
from .small import cell, entry, fork, result, typical


class Report(TestCase):
    def test_the_report_has_all_sections(self):
        text = report(typical())
        for expected in (
            "| Tachograph, sink",
            "| Kieker, Byte Buddy, TCP",
            "What each stage adds",
            "Least squares over all processes",
            "## Targets",
            "## Comparison with the published figures",
            "The machine was idle during all 27 processes",
            "Tachograph: a note",
        ):
            self.assertIn(expected, text)

    def test_losses_and_failures_are_marked(self):
        lossy = fork(cell("otel-otlp"), arrived={"calls": 20_000, "bytes": 1})
        found = result(
            configurations=[
                entry(cell("otel-otlp"), [lossy, fork(cell("otel-otlp"))]),
                entry(cell("kieker-tcp"), [], ("ended with 1: no such thing",)),
            ]
        )
        text = report(found)
        for expected in ("LOST", "lost 98 % of the calls (1 of 2)", "**failed**: Kieker, Byte Buddy, TCP: ended with 1"):
            self.assertIn(expected, text)

    def test_disturbance_by_other_processes_is_reported(self):
        busy = typical()
        busy["experiments"][0]["cells"][0]["forks"][0]["others_cores"] = 0.7
        self.assertIn("**During 1 of 27 processes others used more than 0.1 cores", report(busy))

    def test_an_empty_experiment_is_reported(self):
        self.assertIn("Nothing was measured", report(result(configurations=[])))

    def test_figures_have_four_significant_digits_or_are_whole_numbers(self):
        for number, expected in (
            (0.0, "0"),
            (0.088123, "0.08812"),
            (12.345, "12.35"),
            (123.45, "123.5"),
            (912_345.6, "912,346"),
            (float("nan"), "-"),
            (float("inf"), "-"),
        ):
            self.assertEqual(expected, figure(number))
        self.assertEqual("-", bounds(Interval(1.0, float("-inf"), float("inf"))))


class Targets(TestCase):
    def test_targets_are_reached_or_missed(self):
        outcomes = {verdict.aim: verdict.outcome for verdict in verdicts(typical())}
        for aim, expected in (
            ("switched off: median above uninstrumented, us", "reached"),
            ("collecting: median us", "reached"),
            ("to a sink: median us", "reached"),
            ("to a sink: CPU us of the whole process", "MISSED"),
            ("to a sink: traces/s", "MISSED"),
            ("to a sink: bytes a trace", "reached"),
        ):
            self.assertEqual(expected, outcomes[aim], aim)

    def test_an_agent_that_loses_calls_reaches_no_target(self):
        of = cell("ours-sink")
        found = result(configurations=[entry(of, [fork(of, 500, arrived={"calls": 10})])])
        outcomes = {verdict.aim: verdict.outcome for verdict in verdicts(found)}
        self.assertTrue(outcomes["to a sink: median us"].startswith("MISSED: lost 100 %"))

    def test_targets_for_threads_and_sustained_load_are_evaluated(self):
        threads = [
            entry(of, [fork(of, app_cpu_ns=cpu)])
            for of, cpu in ((cell("ours-sink", threads=2), 100_000_000), (cell("ours-sink", threads=8), 130_000_000))
        ]
        server = cell("ours-server", pace=400_000)
        growing = (100,) * 15 + (200,) * 5
        sustained = [entry(server, [fork(server, arrived={"calls": 1_000_000, "resident": growing})])]
        outcomes = {verdict.aim: verdict.outcome for verdict in verdicts(result(threads=threads, sustained=sustained))}
        self.assertEqual("MISSED", outcomes["8 threads on 2 cores: CPU a trace on the program's threads, ratio"])
        self.assertEqual("MISSED", outcomes["to a durable server, sustained: traces/s"])
        growth = outcomes["to a durable server, sustained: its memory in the last quarter relative to the second"]
        self.assertEqual("MISSED", growth)

    def test_ratios_are_compared_with_published_ones(self):
        found = {(stage, title): part for stage, title, _, _, part in published(typical())}
        self.assertAlmostEqual(
            700 / 88 / (0.463 / 0.0447), found["collecting, no writer", "Tachograph, no writer"], places=3
        )


class Stages(TestCase):
    def test_each_stage_has_its_added_time(self):
        found = dict(stages(by_name(typical(), "configurations")))
        self.assertEqual({"Tachograph, sink", "Kieker, Byte Buddy, TCP"}, set(found))
        for stage, expected in (("T", 0.088), ("I", 0.002), ("C", 0.61), ("W", 0.2)):
            self.assertAlmostEqual(expected, found["Tachograph, sink"][stage])

    def test_a_line_is_fitted_over_the_depth(self):
        line = linearity(by_name(typical(), "depth"), "ours-sink")
        self.assertAlmostEqual(0.09, line.slope)
        self.assertAlmostEqual(1.0, line.r_squared)


class Drawings(TestCase):
    def test_drawings_are_svg(self):
        drawings = plots(typical())
        self.assertEqual({"stages-mean", "stages-median", "warm-up", "throughput", "depth"}, set(drawings))
        for name, text in drawings.items():
            self.assertTrue(ElementTree.fromstring(text).tag.endswith("svg"), name)

    def test_a_curve_has_a_limited_number_of_points(self):
        points = [(float(at), float(at)) for at in range(500)]
        self.assertEqual([(0.0, 0.5), (2.0, 2.5)], thinned(points)[:2])
        self.assertEqual(250, len(thinned([(float(at), 1.0) for at in range(1_000)])))
        self.assertEqual([], thinned([]))


class Compare(TestCase):
    def test_equal_runs_have_no_change(self):
        self.assertEqual({Change.NONE}, {each.change for each in differences(typical(), typical())} - {Change.UNKNOWN})

    def test_slower_is_worse_and_more_traces_are_better(self):
        slower = deepcopy(typical())
        for found in slower["experiments"][0]["cells"][3]["forks"]:
            found["mean_us"] *= 1.2
            found["traces_per_s"] *= 1.2
        changes = {
            each.measure: each.change
            for each in differences(slower, typical())
            if each.what == "configurations, Tachograph, sink"
        }
        self.assertEqual(Change.WORSE, changes["mean us"])
        self.assertEqual(Change.BETTER, changes["traces/s"])
        self.assertEqual(Change.NONE, changes["median us"])
        self.assertIn("1 worse, 1 better", compare(slower, typical()))

    def test_an_earlier_build_in_the_same_run_is_compared(self):
        self.assertIsNone(halves(typical()))
        both = typical()
        times = {"before-sink": 800, "before-collect": 702}
        both["experiments"][0]["cells"] += [
            entry(cell(name), [fork(cell(name), time + number) for number in (-1, 0, 1)]) for name, time in times.items()
        ]
        now, before = halves(both)
        found = {(each.what, each.measure): each for each in differences(now, before)}
        self.assertEqual(2, len({what for what, _ in found}))
        self.assertIs(Change.WORSE, found["configurations, Tachograph, sink", "mean us"].change)
        self.assertAlmostEqual(900 / 800, found["configurations, Tachograph, sink", "mean us"].ratio.value, 5)
        self.assertIs(Change.NONE, found["configurations, Tachograph, no writer", "mean us"].change)

    def test_a_change_must_be_significant_and_large(self):
        for ratio, more_is_better, expected in (
            (Interval(1.1, 0.9, 1.3), False, Change.NONE),
            (Interval(1.01, 1.005, 1.015), False, Change.NONE),
            (Interval(1.1, 1.05, 1.15), False, Change.WORSE),
            (Interval(1.1, 1.05, 1.15), True, Change.BETTER),
            (Interval(0.9, 0.85, 0.95), False, Change.BETTER),
            (Interval(0.9, 0.0, float("inf")), False, Change.UNKNOWN),
        ):
            self.assertIs(expected, judge(ratio, more_is_better), ratio)

    def test_a_difference_of_machines_is_reported(self):
        other = deepcopy(typical())
        other["machine"]["processor"] = "q"
        self.assertIn("the processor: p then, q now", compare(other, typical()))
        self.assertIn("nothing in common", compare(result(), typical()))
