"""Tests that failures of systems and of questions become part of the result and of the exit code."""

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import TestCase
from unittest.mock import Mock, patch

from ..calls.systems import Peer
from ..calls.work import CallsWork
from ..run import _has_faults
from .test_calls import asked, work


class Run(TestCase):
    def test_a_peer_whose_size_cannot_be_read_is_a_failed_system(self):
        peer = Mock(spec=Peer, title="Peer")
        peer.name = "peer"
        peer.finish.return_value = ["optimize"]
        peer.run.return_value = {"cpu": 1.0, "wall": 1.0, "peak": 1}
        peer.size.side_effect = FileNotFoundError("no such directory")
        with TemporaryDirectory() as folder, patch("builtins.print"):
            calls = CallsWork(Path(folder), Path(folder), [], 10, 1)
            calls._calls = Mock(slices=lambda: iter([b"line\n"]))
            calls._systems = [peer]
            calls._load_peers()
        self.assertEqual(calls._failed, {"peer": "no such directory"})
        self.assertEqual((calls._systems, calls._loads), ([], {}))

    def test_only_a_question_that_tachograph_fails_or_answers_wrongly_is_a_fault(self):
        for answer, is_fault in (
            (asked(80, 100), False),
            (asked(80, 100, wrong=True), True),
            (asked(None, 100) | {"failed": {"tacho": "timeout"}}, True),
            (asked(None, 100) | {"failed": {"tacho-before": "timeout"}}, True),
            (asked(80, None) | {"failed": {"chdb": "memory"}}, False),
        ):
            self.assertEqual(_has_faults(work({"graph": answer})), is_fault, answer)
