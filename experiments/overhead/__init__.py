"""What does watching cost? The same recursion under each framework, in fresh processes, in random order.

    make bench-probe
    python3 -m experiments.overhead --help

See docs/guide/overhead.md.
"""
