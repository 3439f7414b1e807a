"""Which state has an operation? Of the rules of the server that fit it the last one decides; where none does, its own holds.

A function goes by the names of its module, of the classes around it, and by its own, as with `include`. Requests, statements and
waits have names that come from data: they go by the name of their kind, `http-server`, `http-client`, `database` or
`connection-wait`. Before: switchboard. After: operations (states), imports (what is to be wrapped).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import operations
from .operations import AGGREGATE, NO_RULE, OFF, ON
from .patterns import Pattern, may_fit_below, spells_out

# What PROBES says, by number.
STATES = (OFF, ON, AGGREGATE)

KINDS = {
    operations.HTTP_SERVER: ("http-server",),
    operations.HTTP_CLIENT: ("http-client",),
    operations.DATABASE: ("database",),
    operations.CONNECTION_WAIT: ("connection-wait",),
}


class Rule:
    """`fault`: why it cannot be followed, empty if it can."""

    def __init__(self, state: int, text: str) -> None:
        self.fault = ""
        self.state = ON
        self.patterns: tuple[Pattern, ...] = ()
        if state >= len(STATES):
            self.fault = f"state {state} is not known here"
            return
        self.state = STATES[state]
        try:
            self.patterns = (Pattern("..*" if text == "*" else text),)
        except ValueError as e:
            self.fault = str(e)

    def fits(self, names: Iterable[Sequence[str]]) -> bool:
        """`names`: each as its parts between the dots."""
        return any(pattern.fits_parts(name) for pattern in self.patterns for name in names)


class Rules:
    """In their order. `given`: state and pattern of each, as PROBES has them."""

    def __init__(self, given: Iterable[tuple[int, str]] = ()) -> None:
        self.list = [Rule(state, text) for state, text in given]
        # Patterns that may have functions wrapped that nobody has.
        self.adding = [pattern for rule in self.list if rule.state != OFF for pattern in rule.patterns]

    def decide(self, kind: int, name: str, module_chars: int, own: int) -> tuple[int, int]:
        """See `operations.Decide`."""
        if not self.list:
            return NO_RULE, own
        names = [[part] for part in KINDS[kind]] if kind in KINDS else _names(name, module_chars)
        at = self.last(names)
        return at, own if at == NO_RULE else self.list[at].state

    def last(self, names: Sequence[Sequence[str]]) -> int:
        """Position of the rule that decides."""
        for at in range(len(self.list) - 1, -1, -1):
            if self.list[at].fits(names):
                return at
        return NO_RULE

    # ---- functions that nobody has wrapped yet ----

    def may_add(self, module: str) -> bool:
        return any(may_fit_below(pattern, module) for pattern in self.adding)

    def adds(self, names: Sequence[str], is_special: bool) -> bool:
        """`names`: of the module, the classes around the function, and the function, outermost first."""
        if is_special and not spells_out(self.adding, names[-1]):
            return False
        at = self.last([name.split(".") for name in names])
        return at != NO_RULE and self.list[at].state != OFF


def _names(name: str, module_chars: int) -> list[list[str]]:
    """The names that a function goes by: each of them a beginning of the last. Without a module: what is before the last dot."""
    parts = name.split(".")
    first = name.count(".", 0, module_chars) + 1 if module_chars else max(1, len(parts) - 1)
    return [parts[:count] for count in range(first, len(parts) + 1)]
