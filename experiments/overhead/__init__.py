"""Measures the overhead of agents: runs the same recursion under each framework, in new processes, in random order.

    make bench-probe
    python3 -m experiments.overhead --help

See docs/guide/overhead.md.
"""
