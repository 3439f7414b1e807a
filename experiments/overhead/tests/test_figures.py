"""Tests that figures are per trace, and that disturbances are named."""

from unittest import TestCase

from ..figures import figures, stall_share
from ..frameworks import FRAMEWORKS
from ..run import has_faults
from .small import ARRIVED, BINS, cell, entry, fork, result, said

MADE = 100 * BINS * 10


class Figures(TestCase):
    def test_figures_are_per_trace(self):
        found = fork(cell("ours-sink"), 1_000)
        for name, expected in (
            ("traces", 50_000),
            ("mean_us", 1.0),
            ("median_us", 1.0),
            ("traces_per_s", 10_000.0),
            ("per_second", [10_000.0] * 5),
            ("cpu_us", 4.0),
            ("app_cpu_us", 2.0),
            ("agent_cpu_us", 2.0),
            ("all_bytes", 1.0),
            ("loss_share", 0.0),
            ("sink_bytes", 53.0),
            ("steady_s", 0.0),
            ("faults", []),
        ):
            self.assertEqual(expected, found[name], name)

    def test_resources_are_scaled_to_the_length_of_the_bins(self):
        found = fork(cell("none"), wall_ns=2_500_000_000, cpu_ns=100_000_000)
        self.assertEqual(4.0, found["cpu_us"])

    def test_the_share_of_stalls_is_computed(self):
        self.assertEqual(0.0, stall_share([[100, 10], [1_000, 1]]))
        self.assertAlmostEqual(0.5, stall_share([[100, 100], [10_000, 1]]))

    def test_growth_compares_the_last_quarter_with_the_second(self):
        for resident, expected in (
            ((), None),
            ((100,) * 19, None),
            ((10,) * 5 + (100,) * 15, 1.0),
            ((10,) * 5 + (100,) * 10 + (100, 150, 100, 100, 100), 1.5),
        ):
            self.assertEqual(expected, fork(cell("ours-server"), arrived={"resident": resident})["receiver_growth"], resident)

    def test_a_process_without_measured_traces_is_an_error(self):
        with self.assertRaises(RuntimeError):
            figures(cell("none"), said(bin_counts=[0] * BINS), ARRIVED)


class Faults(TestCase):
    def test_waiting_for_a_core_is_not_saturation(self):
        for workload, expected in (({}, True), ({"load": 2}, False), ({"threads": 10_000}, False)):
            found = fork(cell("ours-sink", **workload), histogram=[[100, 100], [10_000, 1]])["faults"]
            self.assertEqual(expected, any(text.startswith("saturated") for text in found), workload)

    def test_each_fault_has_its_text(self):
        for setup, arrived, changes, expected in (
            ("ours-sink", {"calls": MADE - 100}, {}, "lost 0.01 % of the calls"),
            ("otel-otlp", {"calls": 0, "bytes": 0}, {}, "lost 100 % of the calls"),
            ("kieker-tcp", {"calls": MADE + 2}, {}, None),
            ("kieker-tcp", {"calls": MADE + 17}, {}, "17 more calls arrived than were made"),
            ("kieker-file", {"fault": "x"}, {}, "the sink could not continue reading: x"),
            ("ours-collect", {}, {"dropped": 10_000}, "dropped 1 % of the calls"),
            ("ours-collect", {}, {"dropped": 0}, None),
            ("ours-off", {"switched": 0}, {}, "the agent did not switch the method"),
            ("ours-off", {"calls": MADE}, {}, f"{MADE} calls were recorded although the method was switched"),
            ("ours-off", {"calls": 50}, {}, None),
            ("ours-sink", {}, {"histogram": [[100, 100], [10_000, 1]]}, "saturated: 50 % of the time in stalls"),
            ("none", {}, {"histogram": [[100, 100], [10_000, 1]]}, None),
            ("none", {}, {"bin_medians": list(range(1, BINS + 1))}, "not steady after the warm-up"),
            ("none", {}, {"late": 50 * BINS}, "50 % of the traces began late"),
        ):
            found = fork(cell(setup), arrived=arrived, **changes)["faults"]
            self.assertEqual([expected] if expected else [], found, f"{setup} {arrived} {changes}")

    def test_the_exit_code_is_1_after_a_fault_of_our_agent_or_a_failed_process(self):
        for setup, arrived, faulty in (
            ("ours-sink", {"calls": MADE - 100}, True),
            ("ours-sink", {}, False),
            ("ours-drop", {"calls": MADE - 100}, False),
            ("ours-off", {"switched": 0}, True),
            ("ours-off", {"calls": MADE}, True),
            ("ours-off", {"calls": 50}, False),
            ("otel-otlp", {"calls": 0}, False),
        ):
            found = result(configurations=[entry(cell(setup), [fork(cell(setup), arrived=arrived)])])
            self.assertEqual(faulty, has_faults(found), f"{setup} {arrived}")
        self.assertTrue(has_faults(result(configurations=[entry(cell("none"), [], ("broken",))])))

    def test_every_setup_with_a_sink_has_arguments_for_it(self):
        for framework in FRAMEWORKS:
            for setup in framework.setups:
                self.assertEqual(setup.takes.value in ("sink", "files"), bool(setup.sink), setup.name)
