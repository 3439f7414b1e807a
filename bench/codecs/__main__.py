"""Writes the data sets as files, then runs the example `codec_gain` on them."""

import argparse
import subprocess
import sys
from pathlib import Path

from .files import write
from .sets import sets

EXAMPLE = ["cargo", "run", "--release", "--locked", "-p", "tacho-chunk", "--example", "codec_gain", "--"]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m bench.codecs", description="Measures what each codec saves.")
    parser.add_argument("--p4", type=Path, default=None, help="a folder with Chronix's published P4 files (*.csv.gz)")
    parser.add_argument("--log", type=Path, nargs="+", default=[], help="logs of this machine, such as /var/log/dpkg.log")
    parser.add_argument("--scale", type=float, default=1.0, help="factor for the hosts, days and values of the generated sets")
    parser.add_argument("--without", default="", help="codecs to exclude, such as 'number xor,text zstd'")
    parser.add_argument("--cache", type=Path, default=Path("bench/.cache"), help="directory for packages and data")
    chosen = parser.parse_args(arguments)
    folder = chosen.cache / "codecs"
    for name, make in sets(chosen.cache / "wheels", chosen.p4, chosen.log, chosen.scale).items():
        print(f"{name}: {write(folder / name, make())} files", file=sys.stderr, flush=True)
    without = ["--without", chosen.without] if chosen.without else []
    return subprocess.run([*EXAMPLE, *without, str(folder)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
