"""The whole run: build, fetch, measure, report."""

import signal
import sys

from .options import parse
from .run import run

if __name__ == "__main__":
    # On SIGTERM, this program stops the processes that it started, as on Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        sys.exit(run(parse(sys.argv[1:])))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
