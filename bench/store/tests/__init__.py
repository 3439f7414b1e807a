"""Tests of the benchmark itself: encoders, reference and checks are compared with known values."""
