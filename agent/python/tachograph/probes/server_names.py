"""Names of incoming requests.

A name contains the route of the program's framework. Without a route it is a guess: the path with ids replaced; after a 404 it
is `(not found)`. Routes, guesses, and guesses at the start of a request have separate bounds. So guesses do not displace routes,
and paths that end in 404 do not displace paths that exist.

The rules are those of `ServerNames.java` of the Java agent. Before: http_server. After: operations.
"""

from __future__ import annotations

from typing import Optional

from .. import operations
from .route import guessed, known_method

# Limits for one process. More routes indicate that routes contain data. More guesses indicate paths with data
# that is not recognised as an id, such as names of users.
ROUTES_MAX, GUESSES_MAX, EARLY_MAX = 2_048, 1_024, 512
_NOT_FOUND = 404

# Ids of operations by name. Threads may add different names at the same time, so the bound may be exceeded by a few.
_routes: dict[str, int] = {}
_guesses: dict[str, int] = {}
_early: dict[str, int] = {}


def _id(name: str) -> int:
    return operations.SHARED.id(operations.HTTP_SERVER, name)


def _bounded(known: dict[str, int], method: str, rest: str, bound: int) -> int:
    name = f"{method} {rest}"
    found = known.get(name)
    if found is None:
        if len(known) >= bound:
            return _id(f"{method} {operations.OTHER}")
        found = known[name] = _id(name)
    return found


def early(method: str, path: str, route: Optional[str]) -> int:
    """The operation at the start of a request. Its name has a guess if no route is known, and only the method if there are too
    many guesses."""
    method = known_method(method)
    if route:
        return _bounded(_routes, method, route, ROUTES_MAX)
    guess = guessed(path)
    name = f"{method} {guess}"
    known = _guesses.get(name, _early.get(name))
    if known is not None:
        return known
    if len(_early) < EARLY_MAX:
        return _bounded(_early, method, guess, EARLY_MAX)
    return _id(method)


def final(method: str, path: str, status: int, route: Optional[str]) -> int:
    """The operation at the end of a request. `status` 0: unknown."""
    method = known_method(method)
    if route:
        return _bounded(_routes, method, route, ROUTES_MAX)
    if status == _NOT_FOUND:
        return _id(f"{method} (not found)")
    return _bounded(_guesses, method, guessed(path), GUESSES_MAX)
