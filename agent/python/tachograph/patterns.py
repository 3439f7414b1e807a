"""Patterns of `include` and `exclude`, in the syntax of the Java agent.

    shop..*              everything in the modules of shop and below
    shop.*               the modules, functions and classes directly in shop
    shop.board           one module
    shop.board.Board     one class
    shop.board.Board.post    one method, or shop.board.post one function
    shop..*Service.find*     methods that begin with find, of classes that end in Service

A star matches any characters except a dot. Two dots match any number of packages. A pattern is compared with the names of the
module, of each class around a function, and of the function. It selects the function if it matches one of these names. Patterns
have any length and any number of stars. Matching does not backtrack, so its time is bounded by the product of the lengths of
pattern and name. Before: config. After: imports, rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import messages
from .log import Log


class Pattern:
    """Raises ValueError with a message, if `text` is not a pattern. `hits` is 0 until the pattern selects a function."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.hits = 0
        if text.startswith("@"):
            raise ValueError(f"patterns of decorators are not supported: use @tachograph.record in place of the pattern {text}")
        for character in text:
            if not (f"_{character}".isidentifier() or character in ".*<>-$"):
                raise ValueError(messages.pattern_character(character, text))
        if not text or "..." in text or text.endswith(".") or (text.startswith(".") and not text.startswith("..")):
            raise ValueError(messages.pattern_dot(text))
        # A group is a piece of the pattern between double dots, as a list of parts; a part is a list of the texts between its
        # stars. The first group must fit the beginning of a name, the last group its end. The other groups match at the first
        # position that fits.
        groups = [group.split(".") if group else [] for group in text.split("..")]
        self.groups = [[part.split("*") for part in group] for group in groups]
        # Texts that every matching name contains: the pieces of the pattern between stars and double dots.
        self.texts = {piece for group in text.split("..") for piece in group.split("*")}

    def fits(self, name: str) -> bool:
        return self.fits_parts(name.split("."))

    def fits_parts(self, parts: Sequence[str]) -> bool:
        """`parts`: the name, split at its dots."""
        first, *between = self.groups
        if not between:
            return len(parts) == len(first) and _fits_at(first, parts, 0)
        last = between.pop()
        at, end = len(first), len(parts) - len(last)
        if end < at or not _fits_at(first, parts, 0) or not _fits_at(last, parts, end):
            return False
        for group in between:
            while at + len(group) <= end and not _fits_at(group, parts, at):
                at += 1
            at += len(group)
            if at > end:
                return False
        return True

    def may_fit_below(self, module: Sequence[str]) -> bool:
        """True if the pattern matches the module or may match a name that begins with the module. `module`: parts of its name."""
        head = self.groups[0]
        if not all(_fits_part(pieces, part) for pieces, part in zip(head, module)):
            return False
        # A pattern without ".." and with more parts than the module may match members of the module.
        return len(self.groups) > 1 or len(head) >= len(module)


def _fits_at(group: list[list[str]], parts: Sequence[str], begin: int) -> bool:
    return all(_fits_part(pieces, parts[begin + at]) for at, pieces in enumerate(group))


def _fits_part(pieces: list[str], text: str) -> bool:
    first = pieces[0]
    if len(pieces) == 1:
        return first == text
    last = pieces[-1]
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in pieces[1:-1]:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


# Special methods that count as ordinary calls.
_SPECIAL = {"__init__", "__call__"}


class Selection:
    """The functions in `include` without those in `exclude`. An invalid pattern is logged and ignored."""

    def __init__(self, include: Iterable[str], exclude: Iterable[str], log: Log) -> None:
        self.include = _parse(include, log)
        self.exclude = _parse(exclude, log)

    def may_hold(self, module: str) -> bool:
        """True if the module may have selected functions. Called for every imported module."""
        if any(pattern.fits(module) for pattern in self.exclude):
            return False
        parts = module.split(".")
        return any(pattern.may_fit_below(parts) for pattern in self.include)

    def holds(self, names: Sequence[str]) -> bool:
        """`names`: names of the module, the classes around the function, and the function, outermost first."""
        if any(pattern.fits(name) for pattern in self.exclude for name in names):
            return False
        found = [pattern for pattern in self.include if any(pattern.fits(name) for name in names)]
        for pattern in found:
            pattern.hits += 1
        return bool(found)

    def is_watchable(self, name: str, full: str) -> bool:
        return not is_special(name) or spells_out(self.include, full)


def is_special(name: str) -> bool:
    """Methods such as `__len__` are selected only by a pattern of `include` that ends in their name."""
    return name.startswith("__") and name.endswith("__") and name not in _SPECIAL


def spells_out(patterns: Iterable[Pattern], name: str) -> bool:
    last = name.rpartition(".")[2]
    return any(pattern.text.endswith(last) and pattern.fits(name) for pattern in patterns)


def _parse(texts: Iterable[str], log: Log) -> list[Pattern]:
    patterns = []
    for text in texts:
        try:
            patterns.append(Pattern(text))
        except ValueError as e:
            log.say(f"{e}; it is ignored")
    return patterns
