"""Compares the store with its peers by space, write cost and read time.

Run from the root of the repository: `python3 -m bench.store --help`. See the README in this directory.
"""
