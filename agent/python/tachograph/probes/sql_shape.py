"""Builds the shape of a statement from its tokens.

White space becomes one blank, rows and lists of values are folded, long text is cut. The rules are those of `SqlShape.java` of
the Java agent and `sql-shape.js` of the Node.js agent. Before: sql, which reads the tokens. After: operations.
"""

from __future__ import annotations

import re

# Maximum length of a shape, characters.
NAME_CHARS_MAX = 1_000
# End of the first row of a bulk insert, and `...` for the later rows.
_ROWS = "), ..."

# Classes of characters in the patterns below: characters of a name, and all others.
_NAME = r"[A-Za-z0-9_\x80-\U0010ffff]"
_NO_NAME = r"[^A-Za-z0-9_\x80-\U0010ffff]"


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


# One value of a list: a literal, a parameter, or a word such as null. It may have a sign, a type and a cast.
_ITEM = _words(
    r"[-+]? ?(?:(?:date|time|timestamp|interval) )?"
    rf"(?::?\?|null|true|false|default|[:@]{_NAME}+)(?:::{_NAME}+(?:\[\])?)?\Z"
)
# Text before a list of values or before a row: `in`, `values`, a row, a bracket.
_BEFORE_ITEMS = _words(rf"(?:^|{_NO_NAME})(in) ?\Z|(?:(?:^|{_NO_NAME})values? ?|\)(?:, \.\.\.)?, )(row ?)?\Z|\(\Z")
_BEFORE_ITEMS_CHARS = 12
# A row in which each value is `?`.
_ROW = _words(r"(?:row ?)?\([?, ]*\)\Z")
_VALUES = _words(rf"(?:^|{_NO_NAME})values? ?\Z")
_ARRAY = re.compile(r"\[\?(?:, \?)+\]\Z")
# After these words, SQLite reads a text in double quotes as the name of a table.
_BEFORE_TABLE = _words(rf"(?:^|{_NO_NAME})(?:(?<!distinct )from|join|into|update|table) \Z")
_BEFORE_ALIAS = _words(rf"{_NO_NAME}as \Z")
_TABLE = re.compile(r" [^ ()]+ ?\Z")
_BEFORE_PASSWORD = _words(
    rf"(?:^|{_NO_NAME})(?:identified (?:by|by \? replace|(?:with|via) [^ ]+ (?:as|by|using))"
    r"|pragma (?:[^ ]+\.)?(?:hex|text)?(?:re)?key ?[=(]) ?\Z"
)

# Lengths of the words that `note` knows.
_WORD_LENGTHS = (4, 6, 10)

# Content of a bracket.
_OTHER, _LIST, _ROW_OF_VALUES = range(3)


class Shape:
    def __init__(self) -> None:
        self.out = ""
        # The open brackets: position, start of the row, content.
        self.open: list[tuple[int, int, int]] = []
        # Start of the current value of a list.
        self.item = 0
        # End of the last `into`; -1 if a bracket was opened after it.
        self.into = -1
        # Number of open brackets of the column list of an insert, including its own; 0 outside of a column list.
        self.columns = 0
        # True if a password may follow.
        self.is_secret = False

    def blank(self) -> None:
        if self.out and self.out[-1] not in " (":
            self.out += " "

    def drop_blank(self) -> None:
        if self.out.endswith(" "):
            self.out = self.out[:-1]

    def value(self) -> None:
        self.out += "?"

    def sign(self, text: str) -> None:
        self.out += text
        if text == "]":
            self.out = _ARRAY.sub("[?]", self.out)

    def name(self, name: str) -> None:
        """Copies a name. After `identified by` and similar words the name is a password and becomes `?`."""
        if self.is_secret and _BEFORE_PASSWORD.search(self.out[-80:]):
            self.value()
        else:
            self.out += name
            if len(name) in _WORD_LENGTHS:
                self.note(name.lower())

    def note(self, word: str) -> None:
        """Remembers `into`, after which a column list may follow, and words after which a password may follow."""
        if word == "into":
            self.into = len(self.out)
        elif word in ("identified", "pragma"):
            self.is_secret = True

    def is_before_name(self) -> bool:
        """True if only a name is possible here: the later part of a qualified name, an alias, a column."""
        is_qualified = self.out.endswith(".") and not self.out.endswith("...")
        return self.columns == 1 or is_qualified or _BEFORE_ALIAS.search(self.out[-4:]) is not None

    def is_before_table(self) -> bool:
        return _BEFORE_TABLE.search(self.out[-16:]) is not None

    def open_bracket(self) -> None:
        out = self.out
        if self.columns > 0:
            self.columns += 1
        elif self.into >= 0:
            self.columns = 1 if _TABLE.match(out, self.into) else 0
            self.into = -1
        found = _BEFORE_ITEMS.search(out[-_BEFORE_ITEMS_CHARS:])
        holds = _OTHER if found is None else _ROW_OF_VALUES if found[1] is None else _LIST
        self.open.append((len(out), len(out) - len(found[2] or "" if found else ""), holds))
        self.out += "("
        self.item = len(self.out)

    def close_bracket(self) -> bool:
        """Returns True if the closed bracket is one of the rows that `...` replaces."""
        self.drop_blank()
        self.end_item()
        self.out += ")"
        self.columns = max(0, self.columns - 1)
        return bool(self.open) and self.fold_row(self.open.pop()[1])

    def comma(self) -> None:
        self.out += ", "
        self.item = len(self.out)

    def end_item(self) -> bool:
        """Ends a value of a list: after `in`, the first value stands for all values; in a row, each value becomes `?`.

        Returns True if this value also stands for the values that follow.
        """
        if not self.open:
            return False
        out, item = self.out, self.item
        at, _, holds = self.open[-1]
        is_value = len(out) == item + 1 and out[item] == "?"
        if holds == _OTHER or not (is_value or _ITEM.match(out, item)):
            return False
        stands = holds == _LIST and (item == at + 1 or out[at:item] == "(?, ")
        if stands:
            self.out = out[:at] + "(?"
        elif holds == _ROW_OF_VALUES:
            self.out = out[:item] + "?"
        return stands

    def fold_row(self, begin: int) -> bool:
        """`(?, ?), (?, ?)` of a bulk insert becomes `(?, ?), ...`."""
        out = self.out
        row = out[begin:]
        is_plain = _ROW.match(row) is not None
        if (is_plain and out.endswith("..., ", 0, begin)) or out.endswith(row + ", ..., ", 0, begin):
            self.out = out[: begin - 2]
            return True
        before = max(0, begin - len(row) - 2)
        if out.endswith(row + ", ", 0, begin) and (is_plain or _VALUES.search(out[max(0, before - 8) : before])):
            self.out = out[:begin] + "..."
            return True
        return False

    def finish(self, is_whole: bool) -> str:
        out = self.out
        is_cut = not is_whole or len(out) > NAME_CHARS_MAX
        rows = out.rfind(_ROWS) if is_cut else -1
        if rows >= 0:
            # A cut may be inside the rows of a bulk insert, at a place that depends on the data. So the shape ends after `...`,
            # which stands for the rows, even if the cut is later.
            return out[: rows + len(_ROWS)][:NAME_CHARS_MAX]
        open_list = self.open_list() if is_cut else -1
        if open_list >= 0:
            return out[:open_list][: NAME_CHARS_MAX - 5] + "(?..."
        trimmed = out.rstrip(" ;")
        return trimmed[: NAME_CHARS_MAX - 3] + "..." if is_cut else trimmed

    def open_list(self) -> int:
        """Start of an unclosed list of values after `in`; -1 for none."""
        at, _, holds = self.open[-1] if self.open else (-1, -1, _OTHER)
        return at if holds == _LIST and self.out.startswith("(?", at) else -1
