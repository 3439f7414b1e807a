"""Reads the settings. Arguments of `start` override the environment, and the environment overrides the defaults.

A wrong value is reported with the valid form and the value used instead, usually the default, so that the program starts.
agent/settings.toml defines the settings of the agents of all languages. Before: agent.start. After: all users of `Settings`.
"""

from __future__ import annotations

import contextlib
import difflib
import math
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Callable, Optional

from . import messages
from .secret import Secret

PREFIX = "TACHO_"

# Variables of the command line and the server that may be in the same environment; they cause no warning.
FOREIGN = (
    "TACHO_AGENT_JAR",
    "TACHO_CONFIG",
    "TACHO_DATA",
    "TACHO_HTTP",
    "TACHO_RECORDS",
    "TACHO_URL",
)

# Settings that only other agents have.
# generated: others (cargo xtask generate, from agent/settings.toml)
_OTHERS = (
    "aggregate",
    "aggregate_above",
    "overhead_max",
    "traces_max",
    "patterns_checked_after",
    "when_full",
    "block_max",
    "threads_max",
    "virtual_buffer",
    "virtual_threads_max",
    "pending",
    "signals",
)
# generated: end

# Names in the setting `probes`; their code: probes/__init__.py.
PROBES = ("context", "http", "dbapi")

_PORT = 7071
_ADDRESS = re.compile(r"(?:\[([^\]\s]+)\]|([^:\[\]\s/]+))(?::([0-9]{1,5}))?", re.ASCII)


@dataclass(frozen=True)
class Unit:
    form: str
    factors: Mapping[str, float]

    def number(self, text: str) -> float:
        match = re.fullmatch(r"([0-9]{1,15})\s*([A-Za-z]*)", text, re.ASCII)
        if match is None or match[2] not in self.factors:
            raise ValueError(messages.expected(self.form))
        return int(match[1]) * self.factors[match[2]]


_DURATION = Unit(messages.FORM_DURATION, {"ms": 1e-3, "s": 1.0, "m": 60.0, "": 1e-3})
_SIZE = Unit(messages.FORM_SIZE, {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "": 1})
_WHOLE = Unit(messages.FORM_NUMBER, {"": 1})


def parse_address(text: str) -> tuple[str, int]:
    """`host:port`, `host` (port 7071), `[v6]:port` or `v6`. Raises ValueError."""
    with contextlib.suppress(OSError, ValueError):
        socket.inet_pton(socket.AF_INET6, text.partition("%")[0])
        return text, _PORT
    match = _ADDRESS.fullmatch(text)
    port = int((match and match[3]) or _PORT)
    if match is None or not 0 < port < 65_536:
        raise ValueError(messages.expected(messages.FORM_ADDRESS))
    return match[1] or match[2], port


def _text(value: Any) -> str:
    """The value in the notation of a setting."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---- parsing: a ValueError has the valid form, and optionally the value used instead of the default ----


def _number(text: str, unit: Unit, least: str, most: str) -> Any:
    """A field with the default `text` and the bounds `least` and `most`, all three in the notation of a setting."""
    default, low, high = (unit.number(one) for one in (text, least, most))

    def read(value: Any) -> float:
        number = unit.number(value) if isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, (int, float)) or math.isnan(number):
            raise ValueError(messages.expected(unit.form))
        if number < low:
            raise ValueError(messages.needed_at_least(least))
        if number > high:
            raise ValueError(messages.allowed_at_most(most))
        return type(default)(number)

    return field(default=default, metadata={"read": read, "text": text})


def _flag(value: Any) -> bool:
    flag = {"true": True, "false": False}.get(_text(value).lower()) if isinstance(value, (str, bool)) else None
    if flag is None:
        raise ValueError(messages.expected(messages.FORM_FLAG))
    return flag


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(messages.expected(messages.FORM_TEXT))
    return value


def _file(value: Any) -> str:
    """A path. An unusable value becomes the path of a missing file, because an empty path means no encryption or no token."""
    try:
        path = os.fsdecode(value)
    except Exception:  # __fspath__ of the value may raise anything
        path = ""
    is_text = isinstance(value, str)
    path = path.strip() if is_text else path
    if not path and not (is_text and len(value) == 0):
        raise ValueError(messages.expected("the path of a file"), "<blank>" if is_text else f"<{type(value).__name__}>")
    return path


def _secret(value: Any) -> Secret:
    """A value that is not a text becomes a blank, which is not a valid token. An empty text would mean no token."""
    return Secret(value if isinstance(value, str) else " ")


def _address(value: Any) -> str:
    parse_address(_string(value))
    return value


def _list(value: Any) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)):
        return tuple(map(str, value))
    if not isinstance(value, str):
        raise ValueError(messages.expected(messages.FORM_LIST))
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _probes(value: Any) -> tuple[str, ...]:
    given = _list(value)
    known = tuple(name for name in given if name == "*" or (name[1:] if name.startswith("-") else name) in PROBES)
    if known != given:
        raise ValueError(messages.probes_expected(", ".join(PROBES)), known or ("*",))
    return given


_READERS: dict[type, Callable[[Any], Any]] = {bool: _flag, str: _string, tuple: _list}
_FILES = ("tls_ca", "tls_client_cert", "tls_client_key", "token_file")


@dataclass(frozen=True)
class Settings:
    """Durations are seconds, sizes bytes. README.md describes each setting and its cost."""

    # generated: settings (cargo xtask generate, from agent/settings.toml)
    enabled: bool = True
    server: str = field(default="127.0.0.1:7071", metadata={"read": _address})
    tls_ca: str = ""
    tls_client_cert: str = ""
    tls_client_key: str = ""
    token: Secret = Secret("")
    token_file: str = ""
    insecure_token: bool = False
    service: str = ""
    host: str = ""
    instance: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    probes: tuple[str, ...] = field(default=("*",), metadata={"read": _probes})
    request_id_headers: tuple[str, ...] = ("X-Request-Id", "X-Correlation-ID")
    database_messages: bool = False
    buffer: int = _number("65536", _WHOLE, "1024", "16777216")
    strands_max: int = _number("10000", _WHOLE, "1", "1048576")
    queue: int = _number("16MiB", _SIZE, "64KiB", "1024GiB")
    flush_max: float = _number("1500ms", _DURATION, "0", "1440m")
    children: bool = True
    samplers: bool = True
    sample_interval: float = _number("5s", _DURATION, "100ms", "1440m")
    log: str = ""
    log_detail: bool = False
    # generated: end

    def wants_probe(self, name: str) -> bool:
        """`probes` lists the wanted probes; `-name` means all probes except this one. An empty list selects none."""
        is_excluding = bool(self.probes) and all(probe.startswith("-") for probe in self.probes)
        return f"-{name}" not in self.probes and (is_excluding or "*" in self.probes or name in self.probes)


_FIELDS = {one.name: one for one in fields(Settings)}


def load(environment: Mapping[str, str], arguments: Optional[Mapping[str, Any]] = None) -> tuple[Settings, list[str]]:
    """The settings, and one message for each error.

    `arguments`: values of the fields' types (durations in seconds, sizes in bytes; also lists in place of tuples), or texts as in
    the environment.
    """
    values: dict[str, Any] = {}
    warnings: list[str] = []
    for name, text in environment.items():
        if name.startswith(PREFIX) and name not in FOREIGN and not name.startswith("TACHO_TEST_"):
            _take(name[len(PREFIX) :].lower(), text, name, values, warnings)
    for name, value in (arguments or {}).items():
        _take(name, value, name, values, warnings)
    if not values.get("tls_ca"):
        warnings += [messages.tls_useless(name) for name in ("tls_client_cert", "tls_client_key") if values.get(name)]
    return Settings(**values), warnings


def _unknown(name: str, place: str) -> str:
    if name in _OTHERS:
        return messages.setting_elsewhere(place, "Python")
    nearest = difflib.get_close_matches(name, _FIELDS, 1)
    if not nearest:
        return messages.setting_unknown(place)
    prefix = PREFIX if place.startswith(PREFIX) else ""
    return messages.setting_near(place, f"{prefix}{nearest[0].upper() if prefix else nearest[0]}")


def _take(name: str, value: Any, place: str, values: dict[str, Any], warnings: list[str]) -> None:
    """`place`: the name as given."""
    known = _FIELDS.get(name)
    if known is None:
        warnings.append(_unknown(name, place))
        return
    if name == "token":
        values[name] = _secret(value)  # link reports an invalid token, without its text
        return
    read = known.metadata.get("read") or _READERS[type(known.default)]
    try:
        if name in _FILES:
            values[name] = _file(value)
        else:
            values[name] = read(value.strip() if isinstance(value, str) else value)
    except ValueError as e:
        allowed, values[name] = (*e.args, known.default)[:2]
        used = known.metadata.get("text") or _text(values[name]) or messages.SETTING_DEFAULT
        warnings.append(messages.setting_wrong(place, _text(value), allowed, used))
