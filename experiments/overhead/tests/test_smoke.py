"""Tests that a whole run works, with two short processes, with and without our agent."""

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import TestCase

from ..options import parse
from ..run import run

TINY = ["--forks", "1", "--seconds", "0.6", "--idle-wait", "0"]


class Smoke(TestCase):
    def test_a_run_of_none_and_our_agent_works(self):
        with TemporaryDirectory() as folder:
            results = Path(folder)
            arguments = [*TINY, "--experiments", "configurations", "--only", "ours-sink", "--results", folder]
            said, progress = StringIO(), StringIO()
            with redirect_stdout(said), redirect_stderr(progress):
                code = run(parse(arguments))
            text = said.getvalue()
            self.assertEqual(0, code, f"{text}\n{progress.getvalue()}")
            self.assertIn("[2/2]", progress.getvalue())
            (made,) = results.iterdir()
            self.assertEqual(
                {"raw.json", "report.md", "warm-up.svg", "throughput.svg"}, {file.name for file in made.iterdir()}
            )
            self._check(json.loads((made / "raw.json").read_text()))
            again = StringIO()
            with redirect_stdout(again):
                self.assertEqual(0, run(parse(["--report", str(made), "--compare", str(made)])))
            self.assertIn("too few processes", again.getvalue())

    def _check(self, result: dict) -> None:
        cells = {cell["setup"]: cell["forks"][0] for cell in result["experiments"][0]["cells"]}
        self.assertEqual({"none", "ours-sink"}, set(cells))
        sink = cells["ours-sink"]
        self.assertEqual(sink["calls_made"], sink["calls_arrived"])
        self.assertEqual(0.0, sink["loss_share"])
        self.assertGreater(sink["sink_bytes"], 20)
        self.assertIsNone(cells["none"]["calls_arrived"])
        for found in cells.values():
            self.assertGreater(found["traces"], 0)
            self.assertEqual(1_000, len(found["bins"]))
