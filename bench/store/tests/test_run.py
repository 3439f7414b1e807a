"""Tests that the result of a run can be reported if a system fails to load a dataset again."""

from argparse import Namespace
from pathlib import Path
from unittest import TestCase
from unittest.mock import Mock, patch

from .. import run
from ..measure import LoadCost, QueryCost
from ..plan import Experiment
from ..report import report
from .small import small
from .test_report import result

COST = LoadCost(28, 0.1, 1, 1, 0.5, 1.0, 0.1, 0, 1, 1)


def kind(name: str) -> Mock:
    system = Mock(title=name, wire="line protocol")
    system.name = name
    made = Mock(return_value=system)
    made.name = name
    return made


def ask(systems: list, _reference: object, _classes: list, costs: dict) -> None:
    costs["one"] = {system.name: QueryCost([1.0]) for system in systems}


class Run(TestCase):
    def test_a_system_that_fails_to_load_again_has_a_reason_and_no_figures(self):
        names = ["tacho", "victoriametrics"]
        loads = [COST, COST, COST, OSError("disk is full")]
        options = Namespace(cache=Path("cache"), loads=2, before=None)
        with (
            patch.object(run, "SYSTEMS", [kind(name) for name in names]),
            patch.object(run, "load", side_effect=loads),
            patch.object(run, "ask", ask),
            patch("builtins.print"),
        ):
            # The second load begins with the second system.
            experiment = run._experiment(options, Path("runs"), names, Experiment("c", small(), []))
        self.assertEqual(list(experiment["loads"]), ["victoriametrics"])
        self.assertEqual(list(experiment["turns"]), ["victoriametrics"])
        text = report(result(1.0, 0) | {"experiments": [experiment]})
        self.assertIn("Tachograph: failed: disk is full", text)
