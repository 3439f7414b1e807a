"""Tests with small data and known results. They start no measured system."""
