"""Tests whether the machine is idle, by the processor time of all processes in /proc/stat."""

import os
import resource
import time
from pathlib import Path

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
IDLE_CORES_MAX = 0.1
"""Allowed processor time of other processes, as a share of one core."""


def busy_seconds() -> float:
    """Processor time of the whole machine so far, including time that the hypervisor gives to other machines."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    user, nice, system, _idle, _io_wait, irq, soft_irq, steal = map(int, fields)
    return (user + nice + system + irq + soft_irq + steal) / TICKS_A_SECOND


def own_seconds() -> float:
    """Processor time of this process and of its ended child processes."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Others:
    """Processor time of other processes between construction and `cores()`. All processes that this run starts in
    between must have ended before `cores()`."""

    def __init__(self) -> None:
        self._begun, self._busy, self._own = time.monotonic(), busy_seconds(), own_seconds()

    def cores(self) -> float:
        """Average number of cores that other processes use; 0 for an idle machine."""
        seconds = time.monotonic() - self._begun
        return max(0.0, (busy_seconds() - self._busy - (own_seconds() - self._own)) / seconds)


def wait_idle(seconds_max: float, look_seconds: float = 0.5) -> tuple[float, float]:
    """Waits until other processes use at most a tenth of a core, or until `seconds_max` have passed. Checks every
    `look_seconds`. Returns the number of cores that other processes used at the last check, and the seconds waited."""
    begun = time.monotonic()
    while True:
        others = Others()
        time.sleep(look_seconds)
        cores, waited = others.cores(), time.monotonic() - begun
        if cores <= IDLE_CORES_MAX or waited >= seconds_max:
            return cores, waited
