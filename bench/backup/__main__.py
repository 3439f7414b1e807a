"""Measures `tacho check`, backup, verify and restore next to `cp -r` and `sha256sum` on the same directory.

All programs run one after the other in each round, so that a disturbance affects all of them. The figures are medians over
rounds. The files of the directory are in the page cache. Raw results go to `bench-results/backup.json`, which is not committed.
"""

import argparse
import base64
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import median

from bench.common.table import table

ENTRY_BYTES = 96_000
ENTRIES_A_REQUEST = 40
RESULTS = Path("bench-results/backup.json")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m bench.backup", description=__doc__)
    parser.add_argument("--mb", type=int, default=600, help="MB of segment files in the data directory")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--place", type=Path, default=None, help="directory for data and repositories [default: temporary]")
    chosen = parser.parse_args(arguments)
    tacho = os.path.abspath(os.environ.get("TACHO", "target/release/tacho"))
    with tempfile.TemporaryDirectory(dir=chosen.place) as place:
        measure(tacho, Path(place), chosen.mb, chosen.rounds)
    return 0


def measure(tacho: str, place: Path, megabytes: int, rounds: int) -> None:
    data = place / "data"
    write(tacho, data, megabytes)
    size = sum(path.stat().st_size for path in data.rglob("*") if path.is_file() and path.name != "RESERVE")
    print(f"{size / 1e6:.0f} MB in {data}", file=sys.stderr, flush=True)
    runs: list[dict[str, object]] = []
    for number in range(rounds):
        for name, command in commands(tacho, data, place):
            seconds, rss = run(command)
            runs.append({"round": number, "name": name, "seconds": seconds, "peak_rss_mb": rss, "mb": size / 1e6})
        for leftover in ("copy", "repository", "restored"):
            shutil.rmtree(place / leftover)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(runs, indent=1))
    names = list(dict.fromkeys(str(one["name"]) for one in runs))
    print(table(["", "s", "MB/s", "peak MB"], [row(name, [one for one in runs if one["name"] == name]) for name in names]))


def row(name: str, runs: list[dict[str, object]]) -> list[str]:
    middle = {key: median(float(str(one[key])) for one in runs) for key in ("seconds", "peak_rss_mb", "mb")}
    return [name, f"{middle['seconds']:.2f}", f"{middle['mb'] / middle['seconds']:.0f}", f"{middle['peak_rss_mb']:.0f}"]


def commands(tacho: str, data: Path, place: Path) -> list[tuple[str, list[str]]]:
    """Name and command of each measurement, in order. `tacho restore` needs the repository of `tacho backup create`."""
    repository, restored = str(place / "repository"), str(place / "restored")
    create = [tacho, "backup", "create", str(data), repository]
    return [
        ("cp -r", ["cp", "-r", str(data), str(place / "copy")]),
        ("cp -r, sync", ["sh", "-c", f"rm -r '{place}/copy' && cp -r '{data}' '{place}/copy' && sync -f '{place}/copy'"]),
        ("sha256sum", ["sh", "-c", f"find '{data}' -type f | xargs sha256sum > /dev/null"]),
        ("tacho check --quick", [tacho, "check", str(data), "--quick"]),
        ("tacho check", [tacho, "check", str(data)]),
        ("tacho backup create, first", create),
        ("tacho backup create, again", create),
        ("tacho backup verify", [tacho, "backup", "verify", repository]),
        ("tacho restore", [tacho, "restore", repository, restored]),
    ]


def run(command: list[str]) -> tuple[float, float]:
    """Seconds, and the highest peak of the resident memory of the process or a descendant, in MB."""
    begun = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0.0
    while child.poll() is None:
        # Not ru_maxrss of wait4, which includes the memory of this process at the fork.
        peak = max(peak, *(high_water(process) for process in tree(child.pid)))
        time.sleep(0.005)
    seconds = time.monotonic() - begun
    if child.returncode:
        raise SystemExit(f"{command} ended with {child.returncode}")
    return seconds, peak


def tree(process: int) -> list[int]:
    """The process and its descendants, because `sh -c` runs the measured programs as its children."""
    found = [process]
    for one in found:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for thread in Path(f"/proc/{one}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
    return found


def high_water(process: int) -> float:
    """The peak of the resident memory so far in MB; 0 if the process has ended."""
    try:
        return high_water_of(Path(f"/proc/{process}/status").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def high_water_of(status: str) -> float:
    """The peak in MB. `status`: the text of `/proc/<pid>/status`, with the peak in KiB. The result is 0 if the process has
    ended and waits for its parent."""
    return next((int(line.split()[1]) * 1024 / 1e6 for line in status.splitlines() if line.startswith("VmHWM:")), 0.0)


def write(tacho: str, data: Path, megabytes: int) -> None:
    """Fills a directory with entries of random base64 text. Kills the server at the end, so that a journal is left."""
    command = [tacho, "serve", "--data", str(data), "--http", "127.0.0.1:0", "--records", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout
    address = server.stdout.readline().split("http=")[1].split()[0]
    chance = random.Random(7)
    try:
        at = 1_700_000_000_000_000_000
        # Base64 text takes only about three quarters of its bytes on disk.
        while sum(path.stat().st_size for path in (data / "chunks").glob("*.segment")) < megabytes * 1e6:
            lines = []
            for _ in range(ENTRIES_A_REQUEST):
                at += 1_000_000
                text = base64.b64encode(chance.randbytes(ENTRY_BYTES)).decode()
                lines.append(f'log,host=a text="{text}" {at}')
            request = urllib.request.Request(f"http://{address}/write", "\n".join(lines).encode())
            urllib.request.urlopen(request).close()
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
