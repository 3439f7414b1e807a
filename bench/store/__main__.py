"""The whole run: install, generate, load, ask, report."""

import sys

from .options import parse
from .run import run

if __name__ == "__main__":
    sys.exit(run(parse(sys.argv[1:])))
