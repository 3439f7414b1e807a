"""What is the route of a path, where nobody knows the real one? `/ads/17/pictures/3` is `/ads/{id}/pictures/{id}`.

The rules of `Route.java` of the Java agent. Before: wsgi, asgi. After: operations.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Paths that are remembered with their route, and what is looked at of each.
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
    """A query or a path parameter ends it."""
    return _guessed(path[:_PATH_CHARS_MAX])


def _is_id(part: str) -> bool:
    """A number, a UUID, a long hexadecimal string, or anything too long to be a word."""
    if len(part) > _SEGMENT_CHARS_MAX:
        return True
    if not _HEX.fullmatch(part):
        return False
    digits = sum(character.isdigit() for character in part)
    letters = sum(character.isalpha() for character in part)
    return digits > 0 and (letters == 0 or digits + letters >= _HEX_CHARS_MIN)


def known_method(method: str) -> str:
    """Any text may come in as a method; an operation is made of the known ones only."""
    return method if method in METHODS else "OTHER"
