"""Identity of this process: labels of its series and pairs of HELLO, as in the Java agent.

Before: agent.start. After: link (pairs), inbox (labels).
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from .config import Settings

VERSION = "0.1.0"


def labels(settings: Settings) -> dict[str, str]:
    """`service`, `host`, `instance`: labels of all series of this process. A forked child has its own `instance`, unless the
    setting `instance` is set."""
    host = settings.host or _host_name()
    return {
        "service": settings.service or service_of(sys.argv, _main_module()),
        "host": host,
        "instance": settings.instance or f"{host}:{os.getpid()}",
    }


def pairs(of: dict[str, str]) -> list[tuple[str, str]]:
    return [
        *of.items(),
        ("runtime", f"Python {platform.python_version()}"),
        ("vm", platform.python_implementation()),
        ("os", f"{platform.system()} {platform.machine()}"),
        ("pid", str(os.getpid())),
        ("agent", f"tachograph-python {VERSION}"),
        ("control", "1"),  # supports rules of the server
    ]


def service_of(argv: list[str], main_module: str) -> str:
    """`shop` for `python -m shop.server` and for `python lib/shop.py`."""
    if main_module:
        return main_module.removesuffix(".__main__").split(".")[0]
    stem = Path(argv[0]).stem if argv else ""
    return "unknown" if stem in ("", "-", "-c", "-m") else stem


def _main_module() -> str:
    """Name of the module after `-m`, empty for a script."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    name = getattr(spec, "name", "") or ""
    return "" if name.split(".")[0] == "tachograph" else name


def _host_name() -> str:
    """Finds the host name without a DNS request, which may take seconds."""
    for name in (os.environ.get("HOSTNAME"), platform.node(), os.environ.get("COMPUTERNAME")):
        if name and name.strip():
            return name.strip()
    return "unknown"
