"""What did the user set? Arguments of `start` over the environment over defaults; every setting stands here once.

A wrong value is named with its place and the default counts: an agent must not keep a program from starting. Names and units are
those of the Java agent. Before: agent.start. After: everything that is handed `Settings`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Optional

PREFIX = "TACHO_"

# Settings of the server and of our tests, which live in the same environment.
FOREIGN = ("TACHO_TEST_",)

_DURATIONS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "": 1e-3}
_SIZES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "": 1}


@dataclass(frozen=True)
class Settings:
    """Durations are seconds, sizes bytes. What each is for, and its price: README.md."""

    enabled: bool = True
    server: str = "127.0.0.1:7071"
    service: str = ""
    host: str = ""
    instance: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    probes: tuple[str, ...] = ("*",)
    request_id_headers: tuple[str, ...] = ("X-Request-Id", "X-Correlation-ID")
    buffer: int = 65_536
    strands_max: int = 10_000
    queue: int = field(default=16 << 20, metadata={"unit": _SIZES, "example": "a size such as 16MiB"})
    flush_max: float = field(default=1.5, metadata={"unit": _DURATIONS, "example": "a duration such as 100ms or 5s"})
    samplers: bool = True
    sample_interval: float = field(default=5.0, metadata={"unit": _DURATIONS, "example": "a duration such as 100ms or 5s"})
    log: str = ""
    log_detail: bool = False

    def wants_probe(self, name: str) -> bool:
        """`probes` names the wanted ones; `-name` takes one away from all."""
        named = [probe for probe in self.probes if not probe.startswith("-")]
        return f"-{name}" not in self.probes and (not named or "*" in named or name in named)


_FIELDS = {one.name: one for one in fields(Settings)}


def load(environment: Mapping[str, str], arguments: Optional[Mapping[str, Any]] = None) -> tuple[Settings, list[str]]:
    """The settings, and one line for each thing that was wrong.

    `arguments`: values of the fields' own types (lists for tuples, seconds, bytes), or texts as in the environment.
    """
    values: dict[str, Any] = {}
    warnings: list[str] = []
    for name, text in environment.items():
        if name.startswith(PREFIX) and not name.startswith(FOREIGN) and name != "TACHO":
            _take(name[len(PREFIX) :].lower(), text, f"environment {name}", values, warnings)
    for name, value in (arguments or {}).items():
        _take(name, value, f"argument {name}", values, warnings)
    return Settings(**values), warnings


def _take(name: str, value: Any, place: str, values: dict[str, Any], warnings: list[str]) -> None:
    known = _FIELDS.get(name)
    if known is None:
        nearest = difflib.get_close_matches(name, _FIELDS, 1)
        prefix = PREFIX if place.startswith("environment") else ""
        hint = f", did you mean {prefix}{nearest[0].upper() if prefix else nearest[0]}?" if nearest else ""
        warnings.append(f"{place}: there is no such setting{hint}")
        return
    default = known.default
    taken = _read(value, default, known.metadata.get("unit"))
    if taken is None:
        expected = known.metadata.get("example") or _EXPECTED[type(default)]
        warnings.append(f'{place}: {expected} was expected, not "{value}"; using {default!r}')
    else:
        values[name] = taken


_EXPECTED = {bool: "true or false", int: "a whole number", str: "a text", tuple: "a list"}


def _read(value: Any, default: Any, units: Optional[Mapping[str, float]]) -> Any:
    """The value in the default's type; None if it is of another."""
    sort = type(default)
    if isinstance(value, str):
        return _read_text(value.strip(), sort, units)
    if sort is tuple:
        return tuple(map(str, value)) if isinstance(value, (list, tuple)) else None
    if isinstance(value, bool) or sort is bool:
        return value if isinstance(value, bool) and sort is bool else None
    is_number = isinstance(value, (int, float)) and value >= 0
    return sort(value) if is_number and sort in (int, float) else None


def _read_text(text: str, sort: type, units: Optional[Mapping[str, float]]) -> Any:
    if sort is str:
        return text
    if sort is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if sort is bool:
        return {"true": True, "false": False}.get(text.lower())
    match = re.fullmatch(r"([0-9]{1,9})\s*([A-Za-z]*)", text, re.ASCII)
    units = units or {"": 1}
    if match is None or match[2] not in units:
        return None
    return sort(int(match[1]) * units[match[2]])
