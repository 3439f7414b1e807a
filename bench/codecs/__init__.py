"""Measures what each codec of the chunk format saves, on published and generated data.

Run from the root of the repository: `python3 -m bench.codecs --help`. `make bench-codecs` does it.
"""
