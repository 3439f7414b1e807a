"""Measures what each codec of the chunk format saves, on published, generated and recorded data.

See `python3 -m bench.codecs --help` and `make bench-codecs`.
"""
