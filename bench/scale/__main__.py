"""Runs the benchmark with the options of the command line."""

import signal
import sys

from .options import parse
from .run import run

if __name__ == "__main__":
    # On SIGTERM, this program stops the processes that it started, as on Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(run(parse(sys.argv[1:])))
