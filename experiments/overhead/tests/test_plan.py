"""Tests that every cell is measured as often as planned, in an order determined by the seed."""

from collections import Counter
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import TestCase

from ..fork import command
from ..model import Place
from ..options import SETUPS, parse
from ..plan import EXPERIMENTS, estimate_seconds, order, plan
from .small import cell

SHORT_MINUTES_MAX = 26
"""Longest estimated time of the measurements. The documentation says 30 minutes; the rest is for building and fetching."""


class Plan(TestCase):
    def test_the_short_form_is_short(self):
        self.assertLess(estimate_seconds(plan(False, EXPERIMENTS, SETUPS, None, None)) / 60, SHORT_MINUTES_MAX)

    def test_the_full_form_has_ten_processes_of_each_cell_and_three_under_sustained_load(self):
        experiments = plan(True, EXPERIMENTS, SETUPS, None, None)
        self.assertEqual(list(EXPERIMENTS), [experiment.name for experiment in experiments])
        self.assertEqual({10, 3}, {experiment.forks for experiment in experiments})
        measured = {cell.setup.name for experiment in experiments for cell in experiment.cells}
        self.assertEqual(set(SETUPS), measured)

    def test_the_order_is_random_and_interleaved(self):
        experiment = plan(False, ("configurations",), SETUPS, 4, None)[0]
        turns = [(fork, cell.setup.name) for fork, cell in order(experiment, 1)]
        self.assertEqual(turns, [(fork, cell.setup.name) for fork, cell in order(experiment, 1)])
        self.assertNotEqual(turns, [(fork, cell.setup.name) for fork, cell in order(experiment, 2)])
        count = len(experiment.cells)
        rounds = [[name for _, name in turns[at : at + count]] for at in range(0, len(turns), count)]
        self.assertEqual(4, len(rounds))
        self.assertEqual([1], list({Counter(names).most_common(1)[0][1] for names in rounds}))
        self.assertNotEqual(rounds[0], rounds[1])

    def test_the_earlier_build_is_measured_with_each_of_our_setups(self):
        self.assertNotIn("before-sink", parse([]).only)
        chosen = parse(["--only", "ours-sink,ours-off", "--before-agent", __file__])
        self.assertEqual(("none", "ours-off", "before-off", "ours-sink", "before-sink"), chosen.only)
        for experiment in plan(False, ("configurations", "threads"), chosen.only, None, None):
            counts = Counter(cell.setup.name for cell in experiment.cells)
            self.assertEqual(counts["ours-sink"], counts["before-sink"])
            self.assertEqual(counts["ours-off"], counts["before-off"])

    def test_an_experiment_without_a_framework_is_omitted(self):
        self.assertEqual([], plan(False, ("depth",), ("none", "otel-otlp"), None, None))


class Options(TestCase):
    def test_only_selects_setups_by_name_and_prefix(self):
        for text, expected in (
            ("kieker-tcp", ("none", "kieker-tcp")),
            ("ours-sink,otel", ("none", "ours-sink", "otel-off", "otel-collect", "otel-otlp")),
            ("kieker-aspectj", ("none", *(name for name in SETUPS if name.startswith("kieker-aspectj")))),
        ):
            self.assertEqual(expected, parse(["--only", text]).only, text)

    def test_invalid_options_are_named(self):
        for arguments, said in (
            (["--only", "oars"], "unknown: oars; there are none, ours-off"),
            (["--experiments", "depth,width"], "unknown: width; there are configurations"),
            (["--forks", "0"], "0 is not above 0"),
            (["--seconds", "-1"], "-1 is not above 0"),
            (["--compare", "/nowhere"], "/nowhere has no raw.json"),
        ):
            text = StringIO()
            with self.subTest(arguments), redirect_stderr(text), self.assertRaises(SystemExit):
                parse(arguments)
            self.assertIn(said, text.getvalue())


class Commands(TestCase):
    def test_each_setup_starts_the_expected_command(self):
        for setup, options, variables in (
            ("none", [], {}),
            ("ours-sink", ["-javaagent:"], {"TACHO_SERVER": "127.0.0.1:7", "TACHO_WHEN_FULL": "block"}),
            ("ours-drop", ["-javaagent:"], {"TACHO_WHEN_FULL": "drop", "TACHO_QUEUE": "16MiB"}),
            ("before-drop", ["-javaagent:"], {"TACHO_WHEN_FULL": "drop"}),
            ("before-collect", ["-javaagent:"], {"TACHO_SERVER": "discard", "TACHO_WHEN_FULL": "block"}),
            ("ours-collect", ["-javaagent:"], {"TACHO_SERVER": "discard", "TACHO_WHEN_FULL": "block"}),
            ("kieker-off", ["bytebuddy.jar", "enabled=false"], {"KIEKER_SIGNATURES_INCLUDE": "observed.Monitored"}),
            ("kieker-tcp", ["SingleSocketTcpWriter.port=7"], {}),
            ("kieker-aspectj-file", ["aspectj.jar", "BinaryLogStreamHandler", "aop.xml"], {}),
            ("otel-otlp", ["endpoint=http://127.0.0.1:7", "traces.exporter=otlp"], {}),
            ("elastic-collect", ["disable_send=true", "recording=true", "server_url=http://127.0.0.1:7"], {}),
            ("otel-off", ["sampler=always_off", "traces.exporter=none"], {}),
        ):
            of = cell(setup, threads=8, depth=3, method_us=2.5, pace=1_000)
            with self.subTest(setup), TemporaryDirectory() as folder:
                place = Place(_cache(Path(folder)), Path(folder), "127.0.0.1:7")
                text = " ".join(command(of, place))
                for option in options:
                    self.assertIn(option, text)
                self.assertIn("millis=10000 warm-up-millis=5000 threads=8 depth=3 method-ns=2500 pace=1000", text)
                self.assertLessEqual(variables.items(), of.framework.environment(of.setup, place).items())


def _cache(folder: Path) -> Path:
    """A cache with jars, so that nothing is fetched."""
    for name in (
        "kieker-2.0.2-bytebuddy",
        "kieker-2.0.2-aspectj",
        "opentelemetry-javaagent-2.33.1",
        "elastic-apm-agent-1.52.0",
    ):
        (folder / f"{name}.jar").touch()
    return folder
