"""Tests of the growth of costs."""

from math import isnan
from unittest import TestCase

from ..curves import exponent, report


class TestCurves(TestCase):
    def test_the_exponent_is_the_slope_of_the_logarithms(self) -> None:
        for power in (0.0, 0.5, 1.0, 2.0):
            points = [(size, 3.0 * size**power) for size in (1, 2, 8, 50)]
            self.assertAlmostEqual(exponent(points), power)

    def test_costs_below_one_tick_are_omitted(self) -> None:
        self.assertAlmostEqual(exponent([(1, 0.0), (2, 2.0), (4, 4.0)]), 1.0)
        self.assertTrue(isnan(exponent([(1, 0.0), (2, 2.0)])))

    def test_the_table_has_all_points(self) -> None:
        curve = {"title": "write, by series", "unit": "CPU s", "points": [(120, 0.2), (1_000, 1.5)], "exponent": 0.95}
        self.assertIn("120: 0.2, 1,000: 1.5", report([curve]))
        self.assertIn("0.95", report([curve]))
