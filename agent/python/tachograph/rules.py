"""Decides the state of an operation. The last of the server's rules that match the operation decides. If no rule matches, the
operation's own state applies.

A function is matched by the names of its module, of the classes around it, and of the function, as with `include`. The names of
requests, statements and waits come from data, so these operations are matched by the name of their kind, `http-server`,
`http-client`, `database` or `connection-wait`. Before: switchboard. After: operations (states), imports (functions to record).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Optional

from . import messages, operations
from .operations import AGGREGATE, NO_RULE, OFF, ON
from .patterns import Pattern, spells_out

# The states in PROBES, by number.
STATES = (OFF, ON, AGGREGATE)

KINDS = {
    operations.HTTP_SERVER: "http-server",
    operations.HTTP_CLIENT: "http-client",
    operations.DATABASE: "database",
    operations.CONNECTION_WAIT: "connection-wait",
}


class Rule:
    """`fault`: why the rule is invalid, empty if it is valid."""

    def __init__(self, state: int, text: str) -> None:
        self.fault = ""
        self.state = ON
        self.pattern: Optional[Pattern] = None
        if state >= len(STATES):
            self.fault = messages.rule_state_unknown(state)
            return
        self.state = STATES[state]
        try:
            self.pattern = Pattern("..*" if text == "*" else text)
        except ValueError as e:
            self.fault = str(e)


class Rules:
    """Rules in order. `given`: state and pattern of each, as in PROBES."""

    def __init__(self, given: Iterable[tuple[int, str]] = ()) -> None:
        self.list = [Rule(state, text) for state, text in given]
        self.search = _search(self.list)
        # Patterns that may switch on functions that are neither decorated nor included.
        self.adding = [rule.pattern for rule in self.list if rule.state != OFF and rule.pattern is not None]

    def decide(self, kind: int, name: str, module_chars: int, own: int) -> tuple[int, int]:
        """See `operations.Decide`."""
        if not self.list:
            return NO_RULE, own
        at = self.last(KINDS[kind], 0) if kind in KINDS else self.last(name, _first(name, module_chars))
        return at, own if at == NO_RULE else self.list[at].state

    def last(self, name: str, first: int) -> int:
        """Position of the rule that decides, or NO_RULE. A rule may also match a beginning of `name` with at least `first` parts.
        If `first` is 0, `name` is not divided at its dots."""
        names: list[list[str]] = []
        for text, at, pattern in self.search:
            if text in name:
                names = names or _names(name, first)
                if any(pattern.fits_parts(one) for one in names):
                    return at
        return NO_RULE

    # ---- functions that are neither decorated nor included ----

    def may_add(self, module: str) -> bool:
        own = module.split(".")
        return any(pattern.may_fit_below(own) for pattern in self.adding)

    def adds(self, names: Sequence[str], is_special: bool) -> bool:
        """`names`: names of the module, the classes around the function, and the function, outermost first."""
        if is_special and not spells_out(self.adding, names[-1]):
            return False
        at = self.last(names[-1], names[0].count(".") + 1)
        return at != NO_RULE and self.list[at].state != OFF


def _search(rules: Sequence[Rule]) -> list[tuple[str, int, Pattern]]:
    """Prepares the rules for the search, the last rule first. Returns for each valid rule a text that every matching name
    contains, the position of the rule, and its pattern. Finding the text in a name costs a hundredth of matching the pattern, so
    the search looks for the text first. Of several possible texts, the text that occurs in the fewest other rules is used; of
    equally rare texts the longest."""
    found = [(at, rule.pattern) for at, rule in enumerate(rules) if rule.pattern is not None]
    count = Counter(text for _, pattern in found for text in pattern.texts)
    return [(min(pattern.texts, key=lambda text: (count[text], -len(text))), at, pattern) for at, pattern in reversed(found)]


def _first(name: str, module_chars: int) -> int:
    """Number of parts of the shortest name that rules match for a function: the name of its module, or, without a module,
    the part before the last dot."""
    return name.count(".", 0, module_chars) + 1 if module_chars else max(1, name.count("."))


def _names(name: str, first: int) -> list[list[str]]:
    """The names that rules match for a function, each as a list of its parts between the dots. Each name is a beginning of the
    last name."""
    parts = name.split(".")
    return [parts[:count] for count in range(first, len(parts) + 1)] if first else [[name]]
