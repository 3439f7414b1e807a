"""Which functions are watched? Patterns of `include` and `exclude`, in the syntax of the Java agent.

    shop..*              everything in the modules of shop and below
    shop.*               the modules, functions and classes directly in shop
    shop.board           one module
    shop.board.Board     one class
    shop.board.Board.post    one method, or shop.board.post one function
    shop..*Service.find*     methods that begin with find, of classes that end in Service

A star is any characters but a dot, two dots are any number of packages. A pattern is held against the name of the module, of each
class around a function, and of the function: it counts where one fits. It may be as long and as full of stars as somebody makes
it: nothing is tried twice, so the time is bounded by the product of both lengths. Before: config. After: imports, rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .log import Log


class Pattern:
    """Raises ValueError with a sentence, if `text` is no pattern. `hits`: functions that were found with it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.hits = 0
        if text.startswith("@"):
            raise ValueError(f"a decorator leaves no name behind: use @tachograph.record in place of the pattern {text}")
        for character in text:
            if not (f"_{character}".isidentifier() or character in ".*<>-$"):
                raise ValueError(f"'{character}' cannot be part of a pattern: {text}")
        if not text or "..." in text or text.endswith(".") or (text.startswith(".") and not text.startswith("..")):
            raise ValueError(f"a dot is out of place in the pattern: {text}")
        # The first group fits the beginning of a name, the last one its end, the others where they fit first. Each is a list of
        # parts, and each part what is between its stars.
        groups = [group.split(".") if group else [] for group in text.split("..")]
        self.groups = [[part.split("*") for part in group] for group in groups]
        # A name that fits holds each of them; dots and all where no star or two dots are between.
        self.texts = {piece for group in text.split("..") for piece in group.split("*")}

    def fits(self, name: str) -> bool:
        return self.fits_parts(name.split("."))

    def fits_parts(self, parts: Sequence[str]) -> bool:
        """`parts`: the name's, between its dots."""
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
        """The pattern fits the module, whose parts are given, or the module is the beginning of a name that it may fit."""
        head = self.groups[0]
        if not all(_fits_part(pieces, part) for pieces, part in zip(head, module)):
            return False
        # Without "..": what is longer than the module has parts for what is in it.
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


# Special methods that are calls in the eyes of a reader.
_SPECIAL = {"__init__", "__call__"}


class Selection:
    """What `include` names, less what `exclude` names. A wrong pattern is named in the log and left out."""

    def __init__(self, include: Iterable[str], exclude: Iterable[str], log: Log) -> None:
        self.include = _parse(include, log)
        self.exclude = _parse(exclude, log)

    def may_hold(self, module: str) -> bool:
        """Is it worth looking into this module? Asked for every module that is imported."""
        if any(pattern.fits(module) for pattern in self.exclude):
            return False
        parts = module.split(".")
        return any(pattern.may_fit_below(parts) for pattern in self.include)

    def holds(self, names: Sequence[str]) -> bool:
        """`names`: of the module, the classes around the function, and the function, outermost first."""
        if any(pattern.fits(name) for pattern in self.exclude for name in names):
            return False
        found = [pattern for pattern in self.include if any(pattern.fits(name) for name in names)]
        for pattern in found:
            pattern.hits += 1
        return bool(found)

    def is_watchable(self, name: str, full: str) -> bool:
        return not is_special(name) or spells_out(self.include, full)


def is_special(name: str) -> bool:
    """Methods such as `__len__` are taken only by a pattern that spells them out."""
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
            log.say(f"{e}; it is left out")
    return patterns
