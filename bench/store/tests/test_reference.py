"""Tests that the reference is correct, and that the check accepts correct results and refuses wrong ones."""

from unittest import TestCase

from ..check import fault
from ..questions import Grouped, Outliers, Range, Trend
from ..reference import Reference
from .small import START_MS, small

H0 = (("hostname", "h0"),)
MINUTE = 60_000
ALL = (START_MS - 5_000, START_MS + 65_000)


class Judgement(TestCase):
    def check(self, question, expected, wrong):
        """The reference must return `expected`; the check must accept `expected` and refuse `wrong`."""
        reference = Reference(small())
        self.assertEqual(expected, reference.answer(question))
        self.assertIsNone(fault(reference, question, expected, by_rank=False))
        self.assertIsNotNone(fault(reference, question, wrong, by_rank=False))

    def test_max_over_hosts(self):
        question = Grouped("max", ("user", "idle"), ("h0", "h1"), START_MS, START_MS + 2 * MINUTE, MINUTE)
        expected = {
            ("user", "", START_MS): 9,
            ("idle", "", START_MS): 4.0,
            ("user", "", START_MS + MINUTE): 9,
            ("idle", "", START_MS + MINUTE): 4.0,
        }
        self.check(question, expected, expected | {("user", "", START_MS): 8})

    def test_mean_by_host(self):
        question = Grouped("mean", ("user",), (), START_MS, START_MS + MINUTE, MINUTE, by_frame=True)
        expected = {("user", "h0", START_MS): 3.5, ("user", "h1", START_MS): 6.5}
        self.check(question, expected, {("user", "h0", START_MS): 3.5})

    def test_range(self):
        question = Range(H0, "user", START_MS + 5_000, START_MS + 35_000)
        times = [START_MS + 10_000, START_MS + 20_000, START_MS + 30_000]
        reference = Reference(small())
        self.assertEqual((times, [2, 3, 4]), tuple(map(list, reference.answer(question))))
        for values, right in (([2.0, 3.0, 4.0], True), ([2.0, 3.0, 4.1], False), ([2.0, 3.0], False)):
            self.assertEqual(
                right, fault(reference, question, (times[: len(values)], values), by_rank=False) is None, values
            )

    def test_trend(self):
        self.check(Trend(H0, "user", ALL[0], START_MS + 55_000), (0.1,), (0.1001,))

    def test_quartiles(self):
        question = Outliers(H0, "user", *ALL)
        self.check(question, (2.5, 5.5, 9.0), (2.0, 5.5, 9.0))

    def test_quartiles_by_rank(self):
        reference, question = Reference(small()), Outliers(H0, "user", *ALL)
        for answer, right in (
            ((3.0, 6.0, 9.0), True),
            ((2.0, 5.0, 9.0), True),
            ((5.0, 6.0, 9.0), False),
            ((3.0, 6.0, 8.0), False),
        ):
            self.assertEqual(right, fault(reference, question, answer, by_rank=True) is None, answer)
