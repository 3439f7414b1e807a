"""What is the shape of a statement? Literals become `?`, white space one blank, comments nothing, lists of values one value.

So statements that differ only in data are one operation and no data leaves the process. The same rules as `Sql.java` of the Java
agent and `sql.js` of the Node.js agent; the cases in `testdata/sql` hold all three to them.

What is a literal depends on the dialect: `"a"` is a name in PostgreSQL and a string in MySQL, where a backslash also escapes a
quote. Where two readings of a text are possible and differ in what is a literal, the shape ends there with `...`.
Before: dbapi. After: operations.
"""

from __future__ import annotations

import re
from typing import Union

# Characters of a name; what is longer is cut.
NAME_CHARS_MAX = 1_000
# Characters that are read; a bulk insert may have megabytes.
TEXT_CHARS_MAX = 20_000

# `standard` is what SQL says, and Oracle's q'[...]': Oracle, H2, HSQLDB, Derby, Db2. `other` is a dialect that is not known.
DIALECTS = ("postgresql", "mysql", "sqlite", "sqlserver", "standard", "other")

# What the second and later rows of a bulk insert become.
_ROWS = "), ..."

# How a backslash before a quote is read.
_PLAIN, _ESCAPE, _UNSURE = range(3)

_BLANK = re.compile(r"[\s\ufeff]")
_WORD = re.compile(r"[\w$#]*")
_NUMBER = re.compile(r"(?:[eE][+-]|[\w.])*")
_DOLLAR = re.compile(r"\$(\w*)\$?")
_DIGITS = re.compile(r"[0-9]*")
_PERCENT = re.compile(r"%(?:s(?!\w)|\(\w+\)s)")
# One value of a list: a literal, a parameter, or a word that stands for a value; with a sign, a type, a cast.
_ITEM = re.compile(
    r"[-+]? ?(?:(?:date|time|timestamp|interval) )?(?:\?|null|true|false|default|[:@]\w+)(?:::\w+(?:\[\])?)?\Z", re.IGNORECASE
)
# What hides quotes, or is one.
_QUOTES = re.compile(r"['\"`]|/\*")
_QUOTE = re.compile(r"['\"`]")
# After these words of SQLite a text in double quotes is the name of a table.
_BEFORE_TABLE = re.compile(r"(?:^|\W)(?:(?<!distinct )from|join|into|update|table) \Z", re.IGNORECASE)
_BEFORE_ALIAS = re.compile(r"\Was \Z", re.IGNORECASE)
_BEFORE_COLUMNS = re.compile(r"(?:^|\W)into [^ ()]+ ?\Z", re.IGNORECASE)
_BEFORE_PASSWORD = re.compile(r"(?:^|\W)identified by \Z", re.IGNORECASE)
_AFTER_QUALIFIER = re.compile(r"\.(?:[^\W\d]|[\"`*])")
_IN = re.compile(r"(?:^|[\W_])in ?\Z", re.IGNORECASE)
_VALUES = re.compile(r"(?:^|\W)values? ?\Z", re.IGNORECASE)
_AFTER_ROW = re.compile(r"\)(?:, \.\.\.)?, \Z")
_ROW = re.compile(r"\([?, ]*\)\Z")
_ARRAY = re.compile(r"\[\?(?:, \?)+\]\Z")
_EXECUTED = re.compile(r"/\*M?!")
_CLOSING = {"[": "]", "(": ")", "{": "}", "<": ">"}


def shape(text: Union[str, bytes, None], dialect: str) -> str:
    """At most `NAME_CHARS_MAX` characters."""
    return Shape(text or "", dialect).run()


class Shape:
    def __init__(self, text: Union[str, bytes], dialect: str) -> None:
        self.is_whole = len(text) <= TEXT_CHARS_MAX
        part = text[:TEXT_CHARS_MAX]
        self.text = part.decode("utf-8", "replace") if isinstance(part, bytes) else part
        self.dialect = dialect
        self.out = ""
        self.at = 0
        # Where the open brackets are in `out`.
        self.open: list[int] = []
        # How many brackets are open inside the column list of an insert; 0 outside one.
        self.columns = 0

    def run(self) -> str:
        while self.at < len(self.text) and len(self.out) < NAME_CHARS_MAX:
            self.step()
        is_cut = not self.is_whole or self.at < len(self.text) or len(self.out) > NAME_CHARS_MAX
        rows = self.out.rfind(_ROWS) if is_cut else -1
        if rows >= 0:
            return self.out[: rows + len(_ROWS)][:NAME_CHARS_MAX]  # cut inside a bulk insert: where exactly depends on the data
        open_list = self.open_list() if is_cut else -1
        if open_list >= 0:
            return self.out[:open_list][: NAME_CHARS_MAX - 5] + "(?..."
        trimmed = self.out.rstrip(" ;")
        return trimmed[: NAME_CHARS_MAX - 3] + "..." if is_cut else trimmed

    def open_list(self) -> int:
        """Where a list of values after `in` was left without its end; -1 where none was."""
        at = self.open[-1] if self.open else -1
        return at if at >= 0 and _IN.search(self.out[:at][-4:]) and self.out.startswith("(?", at) else -1

    def step(self) -> None:
        text, at = self.text, self.at
        c = text[at]
        following = text[at + 1 : at + 2]
        if _BLANK.match(c):
            self.at += 1
            self.blank()
        elif c == "-" and following == "-":
            self.dashes()
        elif c == "/" and following == "*":
            self.block_comment()
        elif c == "#":
            self.hash()
        elif c == "'":
            self.string(self.escapes())
        elif c == '"':
            self.double_quoted()
        elif c == "`":
            self.quoted_name("`")
        elif c == "[":
            self.bracket()
        elif c == "$":
            self.dollar()
        elif "0" <= c <= "9":
            self.at = self.match(_NUMBER)
            self.value()
        elif c == "_" or c.isalpha():
            self.word()
        else:
            self.sign(c)

    def is_of(self, *dialects: str) -> bool:
        return self.dialect in dialects

    def escapes(self) -> int:
        """How a backslash in a plain string is read."""
        return _ESCAPE if self.is_of("mysql") else _UNSURE if self.is_of("postgresql", "other") else _PLAIN

    def match(self, pattern: re.Pattern[str]) -> int:
        """Where what it matches here ends."""
        found = pattern.match(self.text, self.at)
        return max(found.end() if found else 0, self.at + 1)

    def cut(self) -> None:
        """The rest may be read in two ways: it is left out."""
        self.at = len(self.text)
        self.is_whole = False

    def blank(self) -> None:
        if self.out and self.out[-1] not in " (":
            self.out += " "

    def drop_blank(self) -> None:
        if self.out.endswith(" "):
            self.out = self.out[:-1]

    def value(self) -> None:
        self.out += "?"

    def sign(self, c: str) -> None:
        percent = self.match(_PERCENT) if c == "%" else self.at
        if percent > self.at + 1:
            self.at = percent
            self.value()
            return
        self.at += 1
        if c == "?":
            found = _DIGITS.match(self.text, self.at)
            self.at = found.end() if found else self.at
            self.value()
        elif c == "(":
            self.open_bracket()
        elif c == ")":
            self.close_bracket()
        elif c == ",":
            self.drop_blank()
            self.end_item()
            self.out += ", "
        else:
            self.out += c
            if c == "]":
                self.out = _ARRAY.sub("[?]", self.out)

    def open_bracket(self) -> None:
        if self.columns > 0:
            self.columns += 1
        elif _BEFORE_COLUMNS.search(self.out[-200:]):
            self.columns = 1
        self.open.append(len(self.out))
        self.out += "("

    def close_bracket(self) -> None:
        self.drop_blank()
        self.end_item()
        self.out += ")"
        self.columns = max(0, self.columns - 1)
        if self.open:
            self.fold_row(self.open.pop())

    def end_item(self) -> None:
        """A value of a list ends: in a list after `in` the first one stands for all; in a row all values look alike."""
        if not self.open:
            return
        at = self.open[-1]
        begin = max(at, self.out.rfind(", ") + 1) + 1
        if not _ITEM.match(self.out[begin:]):
            return
        before = self.out[:at]
        if _IN.search(before[-4:]) and (begin == at + 1 or self.out[at:begin] == "(?, "):
            self.out = before + "(?"
        elif _VALUES.search(before[-8:]) or _AFTER_ROW.search(before[-8:]) or before.endswith("("):
            self.out = self.out[:begin] + "?"

    def fold_row(self, at: int) -> None:
        """`(?, ?), (?, ?)` of a bulk insert becomes `(?, ?), ...`."""
        row = self.out[at:]
        before = self.out[:at]
        is_plain = _ROW.match(row) is not None
        is_row = is_plain or _VALUES.search(before[: -(len(row) + 2)][-8:]) is not None
        if is_plain and before.endswith("..., "):
            self.out = before[:-2]
        elif is_row and before.endswith(row + ", "):
            self.out = before + "..."
        elif before.endswith(row + ", ..., "):
            self.out = before[:-2]

    def dashes(self) -> None:
        """`-- ...`: in MySQL only before white space, else two signs."""
        after = self.text[self.at + 2 : self.at + 3]
        is_comment = not after or _BLANK.match(after) is not None
        if is_comment or not self.is_of("mysql", "other"):
            self.line_comment()
        elif self.is_of("mysql"):
            self.at += 2
            self.out += "--"
        else:
            self.comment_or_sign("--")

    def hash(self) -> None:
        """A comment in MySQL, an operator or a part of names elsewhere."""
        if self.is_of("mysql"):
            self.line_comment()
        elif self.is_of("other"):
            self.comment_or_sign("#")
        else:
            self.at += 1
            self.out += "#"

    def comment_or_sign(self, sign: str) -> None:
        if _QUOTES.search(self.text, self.at, self.end_of_line()):
            self.cut()
        else:
            self.at += len(sign)
            self.out += sign

    def end_of_line(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    def line_comment(self) -> None:
        self.at = min(self.end_of_line() + 1, len(self.text))
        self.blank()

    def block_comment(self) -> None:
        """They nest in PostgreSQL and SQL Server; what MySQL executes of a comment may hold texts with the sign of its end."""
        text, at = self.text, self.at
        depth = 0
        to = at
        while depth >= 0:
            close = text.find("*/", to + 2)
            inner = text.find("/*", to + 2)
            if close < 0:
                to = len(text)
                break
            is_inner = 0 <= inner < close
            if is_inner and self.is_of("standard", "other"):
                self.cut()
                return
            is_inner = is_inner and self.is_of("postgresql", "sqlserver")
            depth += 1 if is_inner else -1
            to = inner if is_inner else close
        is_code = self.is_of("mysql", "other") and _EXECUTED.match(text, at) is not None
        if is_code and _QUOTE.search(text, at, to):
            self.cut()
            return
        self.at = min(to + 2, len(text))
        self.blank()

    def pass_over(self, quote: str, escapes: int) -> bool:
        """Whether it is sure where it ends; if so `at` is there. A doubled quote is part of the text."""
        text = self.text
        at = begin = self.at + 1
        while True:
            at = text.find(quote, at)
            if at < 0:
                self.at = len(text)
                return True
            before = at
            while before > begin and text[before - 1] == "\\":
                before -= 1
            is_odd = (at - before) % 2 == 1
            if is_odd and escapes == _UNSURE:
                self.at = at
                return False
            if not is_odd or escapes == _PLAIN:
                if text[at + 1 : at + 2] != quote:
                    self.at = at + 1
                    return True
                at += 1
            at += 1

    def string(self, escapes: int) -> None:
        is_sure = self.pass_over("'", escapes)
        self.value()
        if not is_sure:
            self.cut()

    def double_quoted(self) -> None:
        """A name, or in MySQL, SQLite and where the dialect is not known a string, unless nothing but a name can be here."""
        begin = self.at
        if not self.is_of("mysql", "sqlite", "other"):
            self.pass_over('"', _PLAIN)
            self.name(self.text[begin : self.at])
            return
        is_sure = self.pass_over('"', self.escapes())
        if is_sure and self.is_name():
            self.name(self.text[begin : self.at])
            return
        self.value()
        if not is_sure:
            self.cut()

    def is_name(self) -> bool:
        """Whether what ends here can only be a name: a qualified one, or one where a table, an alias or a column is named."""
        tail = self.out[-40:]
        return (
            self.columns == 1
            or tail.endswith(".")
            or _AFTER_QUALIFIER.match(self.text, self.at) is not None
            or _BEFORE_ALIAS.search(tail) is not None
            or (self.is_of("sqlite") and _BEFORE_TABLE.search(tail) is not None)
        )

    def name(self, name: str) -> None:
        """A name as it is; after `identified by` it is a password."""
        if _BEFORE_PASSWORD.search(self.out[-40:]):
            self.value()
        else:
            self.out += name

    def quoted_name(self, quote: str) -> None:
        begin = self.at
        close = self.text.find(quote, begin + 1)
        self.at = len(self.text) if close < 0 else close + 1
        self.out += self.text[begin : self.at]

    def bracket(self) -> None:
        """`[name]` in SQL Server and SQLite, else the index of an array."""
        close = self.text.find("]", self.at)
        if self.is_of("sqlserver", "sqlite"):
            self.quoted_name("]")
        elif self.is_of("other") and _QUOTES.search(self.text, self.at, len(self.text) if close < 0 else close):
            self.cut()
        else:
            self.at += 1
            self.out += "["

    def dollar(self) -> None:
        """`$1` is a parameter, `$tag$...$tag$` a string; in MySQL and SQL Server it begins a name."""
        if self.is_of("mysql", "sqlserver"):
            begin = self.at
            self.at = self.match(_WORD)
            self.out += self.text[begin : self.at]
            return
        end = self.match(_DOLLAR)
        tag = self.text[self.at : end]
        if len(tag) > 1 and tag.endswith("$") and not self.is_of("sqlite"):
            close = self.text.find(tag, end)
            self.at = len(self.text) if close < 0 else close + len(tag)
        else:
            self.at = end
        self.value()

    def word(self) -> None:
        begin = self.at
        self.at = self.match(_WORD)
        word = self.text[begin : self.at]
        if self.text[self.at : self.at + 1] != "'":
            self.name(word)
        elif word.lower() in ("q", "nq") and self.is_of("standard", "other"):
            self.alternative()
        elif len(word) == 1:  # E'..', N'..', X'..', B'..'
            self.string(_ESCAPE if word in "eE" and self.is_of("postgresql", "other") else self.escapes())
        else:
            self.name(word)

    def alternative(self) -> None:
        """Oracle's q'[...]': it ends with the bracket that closes, or the same sign, and a quote."""
        opening = self.text[self.at + 1 : self.at + 2]
        close = self.text.find(_CLOSING.get(opening, opening) + "'", self.at + 2)
        self.at = len(self.text) if close < 0 else close + 2
        self.value()
