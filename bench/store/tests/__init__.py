"""Tests of the benchmark itself, with small data and known results. No measured system is started."""
