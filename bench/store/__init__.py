"""Compares the store with its peers by space, write cost and read time.

See README.md and `python3 -m bench.store --help`.
"""
