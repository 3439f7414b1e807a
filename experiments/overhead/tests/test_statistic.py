"""Tests the statistics against published tables and cases with a known result."""

from math import inf, isinf, isnan, nan
from unittest import TestCase

from bench.common.statistic import (
    mean_interval,
    merge,
    quantile,
    ratio_interval,
    regression,
    steady_from,
    t_quantile,
)


class Intervals(TestCase):
    def test_quantiles_of_student_match_tables(self):
        for confidence, freedom, expected in (
            (0.95, 1, 12.7062),
            (0.95, 2, 4.3027),
            (0.95, 9, 2.2622),
            (0.99, 4, 4.6041),
            (0.95, 30, 2.0423),
            (0.95, 1e6, 1.95997),
        ):
            self.assertAlmostEqual(expected, t_quantile(confidence, freedom), delta=2e-3, msg=f"{confidence} {freedom}")

    def test_a_mean_has_an_interval_by_student(self):
        found = mean_interval([1.0, 2.0, 3.0])
        self.assertEqual(2.0, found.value)
        self.assertAlmostEqual(2.0 - 4.30265 / 3**0.5, found.low, places=4)
        self.assertAlmostEqual(2.0 + 4.30265 / 3**0.5, found.high, places=4)

    def test_a_single_value_has_an_infinite_interval(self):
        self.assertEqual((5.0, -inf, inf), (lambda i: (i.value, i.low, i.high))(mean_interval([5.0])))
        self.assertTrue(isinf(ratio_interval([5.0], [4.0, 4.1]).high))
        self.assertTrue(isnan(mean_interval([]).value))
        self.assertTrue(isnan(ratio_interval([0.0], [1.0]).value))

    def test_a_ratio_has_an_interval_by_welch(self):
        found = ratio_interval([2.0, 2.1, 1.9], [1.0, 1.05, 0.95])
        self.assertAlmostEqual(2.0, found.value, places=9)
        self.assertTrue(1.7 < found.low < 2.0 < found.high < 2.3)
        self.assertAlmostEqual(found.value**2, found.low * found.high, places=9)
        self.assertFalse(found.holds(1.0))

    def test_a_ratio_without_variance_is_exact(self):
        self.assertEqual(0.5, ratio_interval([1.0, 1.0], [2.0, 2.0]).high)


class Histograms(TestCase):
    def test_a_histogram_has_quantiles(self):
        histogram = [(10.0, 1), (20.0, 2), (30.0, 1)]
        for share, expected in ((0.0, 10.0), (0.25, 10.0), (0.26, 20.0), (0.75, 20.0), (0.76, 30.0), (1.0, 30.0)):
            self.assertEqual(expected, quantile(histogram, share), share)
        self.assertTrue(isnan(quantile([], 0.5)))

    def test_histograms_are_merged(self):
        self.assertEqual([(1, 5), (2, 1), (3, 4)], merge([[(1, 2), (3, 4)], [(1, 3), (2, 1)]]))


class Regression(TestCase):
    def test_points_on_a_line_give_the_line(self):
        found = regression([(1.0, 12.0), (10.0, 30.0), (100.0, 210.0)])
        self.assertAlmostEqual(2.0, found.slope)
        self.assertAlmostEqual(10.0, found.intercept)
        self.assertAlmostEqual(1.0, found.r_squared)

    def test_points_without_a_line_have_a_low_r_squared(self):
        self.assertLess(regression([(1.0, 1.0), (2.0, 9.0), (3.0, 1.0)]).r_squared, 0.01)
        self.assertTrue(isnan(regression([(1.0, 1.0)]).slope))
        self.assertTrue(isnan(regression([(1.0, 1.0), (1.0, 2.0)]).slope))


class Steady(TestCase):
    def test_the_start_of_the_steady_state_is_found(self):
        flat = [100.0] * 1_000
        spikes = [1_000.0 if at % 40 == 0 else 100.0 for at in range(1_000)]
        for name, values, low, high in (
            ("from the start", flat, 0, 0),
            ("single long bins do not count", spikes, 0, 0),
            ("after a slow beginning", [300.0] * 200 + [100.0] * 800, 188, 212),
            ("empty bins do not count", [nan] * 50 + [100.0] * 950, 50, 50),
            ("two steps of the compiler", [900.0] * 30 + [200.0] * 300 + [100.0] * 670, 318, 342),
        ):
            found = steady_from(values)
            self.assertIsNotNone(found, name)
            self.assertTrue(low <= found <= high, f"{name}: {found}")

    def test_a_step_of_the_clock_is_not_a_change(self):
        restless = [70.0, 80.0] * 100 + [80.0] * 300 + [70.0] * 100
        self.assertEqual(0, steady_from(restless, 10.0))
        self.assertNotEqual(0, steady_from(restless))

    def test_a_series_may_never_become_steady(self):
        rising = [float(at) for at in range(1, 1_001)]
        self.assertTrue((steady_from(rising) or 1_000) > 500)
        self.assertIsNone(steady_from([nan] * 10))
        self.assertIsNone(steady_from([]))
