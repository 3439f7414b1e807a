"""Tests that the method of Chronix decodes to its input and omits repeated differences."""

from array import array
from random import Random
from unittest import TestCase

from ..chronix import CHUNK_BYTES, chronix_cost, decode, encode
from .small import small


class Chronix(TestCase):
    def check(self, times: list[int], values: list[float]) -> list[bytes]:
        """Every chunk must decode to its input."""
        at, chunks = 0, []
        for count, chunk in encode(array("q", times), array("d", values)):
            self.assertEqual((times[at : at + count], values[at : at + count]), decode(chunk, times[at]))
            at += count
            chunks.append(chunk)
        self.assertEqual(len(times), at)
        return chunks

    def test_a_constant_step_is_stored_once(self):
        (chunk,) = self.check([0, 10, 20, 30, 40], [1.0, 2.0, 3.0, 4.0, 5.0])
        self.assertEqual(5 * 11 + 2, len(chunk))

    def test_repeated_values_are_stored_as_an_index(self):
        (chunk,) = self.check([0, 10, 20], [7.5, 7.5, 7.5])
        self.assertEqual((2 + 9) + (2 + 2 + 2) + (2 + 2), len(chunk))

    def test_irregular_times_are_decoded(self):
        random = Random(1)
        times = sorted(random.sample(range(10**6), 2_000))
        self.check(times, [random.random() for _ in times])

    def test_long_series_are_cut_into_chunks(self):
        times = list(range(0, 200_000, 10))
        chunks = self.check(times, [float(time) for time in times])
        self.assertEqual(2, len(chunks))
        self.assertTrue(CHUNK_BYTES <= len(chunks[0]) < CHUNK_BYTES + 32)

    def test_cost_counts_all_values(self):
        cost = chronix_cost(small())
        self.assertEqual((28, 4), (cost.values, cost.chunks))
