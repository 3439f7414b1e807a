"""The machine and its load."""

import os
import platform
from pathlib import Path

QUIET_LOAD_MAX = 1.0
"""Limit on the one-minute load average before a run. Above it, wall times are marked as disturbed."""


def machine() -> dict[str, str | int]:
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": os.cpu_count() or 1,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
    }


def load_average() -> float:
    """Number of processes that ran, or waited for a core or a disk, averaged over the last minute."""
    return round(os.getloadavg()[0], 2)
