"""The resources of a server: processor time, memory and bytes on disk.

A `Server` is one or more processes (Graphite has several). Processor time and memory include their child processes.
"""

import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
CPU_CLOCK = 2
"""Number of the CPU-time clock in the clock id of a process (see clock_getcpuclockid(3)). This clock counts ns, while /proc
counts ticks of 10 ms."""
STOP_SECONDS = 60


@dataclass(frozen=True)
class Memory:
    """Resident bytes. `anonymous` is the part that is not backed by files."""

    resident: int
    peak: int
    anonymous: int


class Server:
    """Processes started and stopped by the benchmark."""

    def __init__(self, log: Path):
        self._log = log
        self._processes: list[subprocess.Popen] = []
        self._ended_cpu_seconds = 0.0

    def start(self, command: list[str], environment: dict[str, str] | None = None, directory: Path | None = None) -> None:
        """Starts another process, with output to the log."""
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    command,
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    cwd=directory,
                    env=os.environ | (environment or {}),
                    start_new_session=True,
                )
            )

    def stop(self) -> None:
        """Sends SIGTERM to each process, and kills a process that still runs `STOP_SECONDS` later."""
        before = _awaited_cpu_seconds()
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._processes.clear()
        self._ended_cpu_seconds += _awaited_cpu_seconds() - before

    def kill(self) -> None:
        """Simulates a crash with SIGKILL."""
        before = _awaited_cpu_seconds()
        for process in reversed(self._processes):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()
        self._ended_cpu_seconds += _awaited_cpu_seconds() - before

    def check(self) -> None:
        """Raises if a process has exited unexpectedly."""
        for process in self._processes:
            if process.poll() is not None:
                raise RuntimeError(f"{process.args[0]} exited with {process.returncode}; see {self._log}")

    def cpu_seconds(self) -> float:
        """User and system time since the first start, including exited processes."""
        return self._ended_cpu_seconds + sum(map(_cpu_seconds, self._pids()))

    def memory(self) -> Memory:
        status = [_status(pid) for pid in self._pids()]
        return Memory(*(sum(entry.get(name, 0) for entry in status) for name in ("VmRSS", "VmHWM", "RssAnon")))

    def reset_peak(self) -> None:
        """After this call, `memory` returns the peak since the call. See proc(5), clear_refs."""
        for pid in self._pids():
            Path(f"/proc/{pid}/clear_refs").write_text("5")

    def wait_until(self, condition: Callable[[], bool], seconds_max: float) -> None:
        """Waits until the condition is true. Raises TimeoutError, or an error if a process exits."""
        deadline = time.monotonic() + seconds_max
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"still waiting after {seconds_max:g} s; see {self._log}")
            time.sleep(0.05)

    def wait_idle(self, quiet_seconds: float = 2.0, seconds_max: float = 120.0) -> None:
        """Waits until the processes use at most a tenth of a core for `quiet_seconds`, or until about `seconds_max` have
        passed."""
        deadline = time.monotonic() + seconds_max
        while time.monotonic() < deadline:
            before = self.cpu_seconds()
            time.sleep(quiet_seconds)
            if self.cpu_seconds() - before <= 0.1 * quiet_seconds:
                return

    def _pids(self) -> list[int]:
        pids, waiting = [], [process.pid for process in self._processes]
        while waiting:
            pid = waiting.pop()
            pids.append(pid)
            for task in Path(f"/proc/{pid}/task").iterdir():
                waiting.extend(map(int, (task / "children").read_text().split()))
        return pids


def disk_bytes(*directories: Path, reserves: frozenset[str] = frozenset()) -> int:
    """The bytes of all files, except the files named in `reserves`, which contain no data.

    If the length and the allocated space of a file differ, the smaller one is counted, except if no space is allocated yet.
    """
    total = 0
    for directory in directories:
        for folder, _, names in os.walk(directory):
            for name in set(names) - reserves:
                try:
                    stat = os.lstat(os.path.join(folder, name))
                except FileNotFoundError:  # the server has removed it in a merge
                    continue
                total += min(stat.st_size, stat.st_blocks * 512) if stat.st_blocks else stat.st_size
    return total


def _awaited_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _cpu_seconds(pid: int) -> float:
    """CPU time of a process (its own clock, exact to 1 ns) plus that of its reaped children (exact to a tick), in seconds."""
    ended = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[13:15]
    return time.clock_gettime((~pid << 3) | CPU_CLOCK) + sum(map(int, ended)) / TICKS_A_SECOND


def _status(pid: int) -> dict[str, int]:
    """The sizes in /proc/<pid>/status, in bytes."""
    rows = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {row[0].rstrip(":"): int(row[1]) * 1_024 for row in rows if len(row) == 3 and row[2] == "kB"}
