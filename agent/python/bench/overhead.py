"""Measures the overhead of the agent, and prints tables. Runs a program under each setup, in new processes, alternately.

MooBench's method (Waller, Ehmke, Hasselbring, 2015): a trace is one call of a function that calls itself to a depth of 10
(program `recursion`). A second program (`pages`, only with the first and the last setup) is a WSGI application. Setups:

    none         the function itself
    off          decorated, the agent is not started
    ruled        decorated, and switched off by a rule of a real `tacho serve`
    collecting   decorated and collected; the sender discards the events
    sent         sent to a real `tacho serve`, with the default settings, but without samples of the process

    python3 bench/overhead.py --tacho ../../target/release/tacho            # everything, some 3 minutes
    python3 bench/overhead.py --only recursion --forks 5 --traces 200000 --rate 10000

Without --rate, both programs run in a closed loop, and the first program also at 10,000 traces per second. In a closed loop a
program only calls recorded functions, unlike real programs. The sender cannot keep up, so calls are dropped and counted. The CPU
time is that of the whole process, including the sender.
"""

from __future__ import annotations

# ruff: noqa: PLC0415 (only the measured processes import the agent)
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SETUPS = ("none", "off", "ruled", "collecting", "sent")
RULED_SERVICE = "overhead-ruled"
PAGES = ("none", "sent")
DEPTH = 10


# ---- the measured process ----


def child(setup: str, options: argparse.Namespace) -> dict[str, float]:
    import tachograph

    if setup in ("ruled", "collecting", "sent"):
        if setup == "collecting":
            throw_away()
        service = RULED_SERVICE if setup == "ruled" else "overhead"
        tachograph.start(server=options.server, service=service, samplers=False)
    measured = page if options.only == "pages" else recursion
    figures = measured(setup, options)
    totals = tachograph.totals()
    if totals is not None:
        sent = totals.calls_sent / options.calls_per_trace
        figures["bytes"] = totals.bytes_sent / sent if sent else 0.0
        figures["dropped"] = 100 * totals.calls_dropped / max(1, totals.calls_dropped + totals.calls_sent)
    return figures


def throw_away() -> None:
    from tachograph.reader import TrackReader

    def read(self: TrackReader, _now: int) -> int:
        count = len(self.track.events)
        del self.track.events[:count]
        self.track.look = self.track.home.look_half
        return 0

    TrackReader.read = read  # type: ignore[method-assign]


def recursion(setup: str, options: argparse.Namespace) -> dict[str, float]:
    import tachograph

    def call(depth: int) -> int:
        return call(depth - 1) if depth > 1 else 1

    if setup != "none":
        call = tachograph.record(call)
    if setup == "ruled":
        until_off(call)
    return timed(lambda: call(DEPTH), options)


def until_off(call: Any) -> None:
    from tachograph.operations import OFF, SHARED
    from tachograph.recorder import MARK

    while SHARED.states[getattr(call, MARK)] != OFF:
        time.sleep(0.01)


def page(setup: str, options: argparse.Namespace) -> dict[str, float]:
    """A WSGI application that calls a function five times and renders a list, without a socket."""
    import tachograph

    def load(number: int) -> dict[str, Any]:
        return {"id": number, "text": f"ad {number}", "price": number * 1.5}

    def application(_environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        ads = [load(number) for number in range(5)]
        body = json.dumps(ads).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    answering: Any = application
    if setup == "sent":
        load = tachograph.record(load)
        answering = tachograph.wsgi(application)
    return timed(lambda: answering({"REQUEST_METHOD": "GET", "PATH_INFO": "/ads/17"}, lambda *_: None), options)


def timed(run: Callable[[], Any], options: argparse.Namespace) -> dict[str, float]:
    """Measures the second half of the traces. With a `--rate` of 1,000 or more, the program makes about one burst of
    traces per millisecond."""
    now = time.perf_counter_ns
    times = []
    burst = max(1, options.rate // 1_000) if options.rate else options.traces
    began = cpu = 0
    for _half in range(2):
        times.clear()
        began, cpu = now(), time.process_time_ns()
        due = began
        for at in range(options.traces // 2):
            before = now()
            run()
            times.append(now() - before)
            if at % burst == burst - 1 and options.rate:
                due += burst * 1_000_000_000 // options.rate
                time.sleep(max(0, due - now()) / 1e9)
    wall, cpu = now() - began, time.process_time_ns() - cpu
    if options.server:
        import tachograph

        tachograph.flush(30)
    return {
        "median": statistics.median(times) / 1e3,
        "mean": statistics.fmean(times) / 1e3,
        "cpu": cpu / len(times) / 1e3,
        "rate": len(times) / wall * 1e9,
    }


# ---- the run ----


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tacho", default=os.environ.get("TACHO") or str(ROOT / "../../target/release/tacho"))
    parser.add_argument("--only", choices=("recursion", "pages"))
    parser.add_argument("--forks", type=int, default=3)
    parser.add_argument("--traces", type=int, default=100_000, help="traces per process; the first half warms up")
    parser.add_argument("--rate", type=int, default=0, help="traces per second (default: closed loop; recursion also 10000)")
    parser.add_argument("--child", choices=SETUPS, help=argparse.SUPPRESS)
    parser.add_argument("--server", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.calls_per_trace = 6 if options.only == "pages" else DEPTH
    if options.child:
        print(json.dumps(child(options.child, options)))
        return
    print(f"Python {platform.python_version()}, {machine()}")
    with Tacho(options.tacho) as server:
        if options.only in (None, "recursion"):
            rates = [options.rate] if options.rate else [0, 10_000]
            for rate in rates:
                measure("recursion", SETUPS, rate, options, server)
        if options.only in (None, "pages"):
            measure("pages", PAGES, options.rate, options, server)


def measure(work: str, setups: tuple[str, ...], rate: int, options: argparse.Namespace, server: str) -> None:
    found: dict[str, list[dict[str, float]]] = {setup: [] for setup in setups}
    for _ in range(options.forks):
        for setup in setups:
            command = [sys.executable, __file__, "--child", setup, "--only", work, "--rate", str(rate)]
            command += ["--traces", str(options.traces), "--server", server if setup in ("sent", "collecting", "ruled") else ""]
            found[setup].append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    pace = f"{rate} a second" if rate else "without a limit"
    what = f"depth {DEPTH}" if work == "recursion" else "WSGI requests with 5 calls"
    print(f"\n{work}: {what}, {pace}, {options.traces} traces (the first half warms up), medians of {options.forks} processes\n")
    print("| | median us | mean us | CPU us | a second | bytes a trace | dropped % |\n|---|---|---|---|---|---|---|")
    for setup, results in found.items():
        figure = {key: statistics.median(result[key] for result in results) for key in results[0]}
        head = f"{figure['median']:.2f} | {figure['mean']:.2f} | {figure['cpu']:.2f} | {figure['rate']:.0f}"
        tail = f"{figure['bytes']:.0f} | {figure['dropped']:.1f}" if setup == "sent" else "|"
        print(f"| {setup} | {head} | {tail} |")


def machine() -> str:
    cpus = Path("/proc/cpuinfo")
    names = (
        [line.split(":")[1].strip() for line in cpus.read_text().splitlines() if "model name" in line] if cpus.exists() else []
    )
    return f"{os.cpu_count()} x {names[0] if names else platform.machine()}"


class Tacho:
    """Starts a server, and stops it at the end of the `with` block. The context manager returns the address for agents."""

    def __init__(self, binary: str) -> None:
        sys.path.insert(0, str(ROOT))
        from tests.server import free_port

        if not Path(binary).exists():
            sys.exit(f"error: {binary} is missing: run `make build` in the repository's root, or give another path with --tacho")
        self.folder = tempfile.TemporaryDirectory()
        self.http, self.records = free_port(), free_port()
        addresses = ["--http", f"127.0.0.1:{self.http}", "--records", f"127.0.0.1:{self.records}"]
        command = [binary, "serve", "--data", self.folder.name, *addresses]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self) -> str:
        for _ in range(500):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.http}/readyz").close()
                break
            except OSError:
                time.sleep(0.02)
        rule = f"http://127.0.0.1:{self.http}/api/v1/probes?state=off&pattern=*&service={RULED_SERVICE}"
        urllib.request.urlopen(urllib.request.Request(rule, method="POST")).close()
        return f"127.0.0.1:{self.records}"

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


if __name__ == "__main__":
    main()
