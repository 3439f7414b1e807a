"""Tests of the benchmark itself: encoders, reference and checks, each against known values."""
