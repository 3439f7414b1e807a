"""Tests of the benchmark. They start no server."""
