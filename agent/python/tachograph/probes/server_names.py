"""What is a request that came in called?

A route of the program's framework is one name; where there is none, the path with its ids taken out is a guess, and `(not found)`
what nobody has. Guesses have a bound of their own, so that they take no room from routes; those
that a request begins with have another one, so that paths of nobody take no room from those that are answered.

The rules of `ServerNames.java` of the Java agent. Before: http_server. After: operations.
"""

from __future__ import annotations

from typing import Optional

from .. import operations
from .route import guessed, known_method

# Routes of one process; more than this many are a naming fault. Guesses: more are names that the path has in it.
ROUTES_MAX, GUESSES_MAX, EARLY_MAX = 2_048, 1_024, 512
_NOT_FOUND = 404

# Names that were given an id. Whoever is second at the same moment adds the same one again; the bound may be missed by a few.
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
    """When it begins: a guess where no route is known; the method alone where there are too many."""
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
    """When it ends. `status` 0: not known."""
    method = known_method(method)
    if route:
        return _bounded(_routes, method, route, ROUTES_MAX)
    if status == _NOT_FOUND:
        return _id(f"{method} (not found)")
    return _bounded(_guesses, method, guessed(path), GUESSES_MAX)
