"""Measures Tachograph and its peers with many series and many calls: `make bench-scale`, see README.md.

A run goes through these files: options.py, fleet.py (the series and their values), bodies.py (requests), run.py
(order), measure.py (figures), aims.py and report.py (results). The workloads `calls` and `queries` (`--work`) have a
folder each, `calls` with systems of its own. The other systems, tables and processes are in bench/store and bench/common.
"""
