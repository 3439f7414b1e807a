"""The peak of the resident memory of a measured command."""

import sys
import unittest

from bench.backup.__main__ import high_water_of, run

# `PROGRAM` touches `BYTES` bytes. It runs for 2 s, so that `run` measures it many times.
BYTES = 200_000_000
PROGRAM = f"import time; kept = b'x' * {BYTES}; time.sleep(2)"


class Memory(unittest.TestCase):
    def test_the_peak_is_in_mb(self) -> None:
        self.assertEqual(high_water_of("Name:\tx\nVmHWM:\t 1000000 kB\nVmRSS:\t 7 kB\n"), 1_024.0)
        self.assertEqual(high_water_of("Name:\tx\n"), 0.0)

    def test_the_peak_is_of_the_program_that_a_shell_runs(self) -> None:
        _, peak = run(["sh", "-c", f'"{sys.executable}" -c "{PROGRAM}" && true'])
        self.assertGreaterEqual(peak, BYTES / 1e6)


if __name__ == "__main__":
    unittest.main()
