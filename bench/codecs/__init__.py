"""Measures what each codec of the chunk format saves, on published, generated and recorded data.

Run it from the root of the repository with `python3 -m bench.codecs --help`. `make bench-codecs` runs it too.
"""
