"""Derives a route from a path if the real one is unknown: `/ads/17/pictures/3` becomes `/ads/{id}/pictures/{id}`.

The rules are those of `Route.java` of the Java agent. Before: server_names, frameworks, http_client. After: operations.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Limits on the number of paths whose route is cached, and on the characters of a path that are read.
_PATHS_MAX, _PATH_CHARS_MAX = 4_096, 1_024
_SEGMENTS_MAX = 8
_SEGMENT_CHARS_MAX = 40
_HEX_CHARS_MIN = 16
_HEX = re.compile(r"[0-9a-fA-F-]+", re.ASCII)

METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}


@lru_cache(_PATHS_MAX)
def _guessed(path: str) -> str:
    path = re.split("[?;#]", path or "/", maxsplit=1)[0] or "/"
    parts = (path[1:] if path.startswith("/") else path).split("/")
    kept = ["{id}" if _is_id(part) else part for part in parts[:_SEGMENTS_MAX]]
    return "/" + "/".join(kept) + ("/..." if len(parts) > _SEGMENTS_MAX else "")


def guessed(path: str) -> str:
    """The route of a path. It ends before the first `?`, `;` or `#`."""
    return _guessed(path[:_PATH_CHARS_MAX])


def _is_id(part: str) -> bool:
    """True for digits and hyphens, such as a number or a date; for a UUID or another long hexadecimal string; and for a part of
    the path that is too long to be a word."""
    if len(part) > _SEGMENT_CHARS_MAX:
        return True
    if not _HEX.fullmatch(part):
        return False
    digits = sum(character.isdigit() for character in part)
    letters = sum(character.isalpha() for character in part)
    return digits > 0 and (letters == 0 or digits + letters >= _HEX_CHARS_MIN)


def known_method(method: str) -> str:
    """Replaces an unknown method, because a client can send any text."""
    return method if method in METHODS else "OTHER"
