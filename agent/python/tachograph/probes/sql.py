"""Reduces a statement to its shape: literals become `?`, and comments are removed.

White space becomes one blank, a list of values becomes one value. So statements that differ only in data are one operation, and
the data does not leave the process, except in the gaps that docs/guide/statements.md lists. The rules are the same as in
`Sql.java` of the Java agent and `sql.js` of the Node.js agent; the cases in `testdata/sql` test all three.

Literals depend on the dialect: `"a"` is a name in PostgreSQL and a string in MySQL, where a backslash also escapes a quote. If a
text has two readings that differ in a literal, or a quote is not closed, the shape ends with `...`. Before: dbapi. After:
sql_shape.
"""

from __future__ import annotations

import re
import string
from typing import Callable, Union

from .sql_shape import NAME_CHARS_MAX, Shape

# Limit on characters to read; a bulk insert may have megabytes.
TEXT_CHARS_MAX = 8_000
# Limit on tokens to read. Few shapes of `NAME_CHARS_MAX` characters have more tokens. A text with more tokens mostly has rows and
# lists, which are folded anyway.
TOKENS_MAX = 1_000

# `standard` is for Oracle, H2, HSQLDB, Derby and Db2: standard SQL, and Oracle's q'[...]'. `other` is an unknown dialect.
DIALECTS = ("postgresql", "mysql", "sqlite", "sqlserver", "standard", "other")

# Meaning of a backslash before a quote. `_LIKELY`: probably an escape. In MySQL's mode NO_BACKSLASH_ESCAPES, the literal ends at
# the quote.
_PLAIN, _ESCAPE, _LIKELY, _UNSURE = range(4)

_BLANKS = re.compile(r"[\0- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+")
# `\w` matches letters, decimal digits, and also characters such as `²`; `pass_name` stops at such characters.
_WORD = re.compile(r"[\w$]*")
_WORD_WITH_HASH = re.compile(r"[\w$#]*")
_PARAMETER = re.compile(r"[?$]\w*")
_NUMBER = re.compile(r"(?:[eE][+-]|[A-Za-z0-9._])*")
_DIGITS = re.compile(r"[0-9]*")
# PostgreSQL treats every non-ASCII character as a letter.
_TAG = re.compile(r"\$(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)?\$")
_PERCENT = re.compile(r"%(?:[sbt](?![A-Za-z0-9_\x80-\U0010ffff])|\([A-Za-z0-9_\x80-\U0010ffff]+\)[sbt])")
_LINE = re.compile(r"[^\r\n]*")
# Quotes, and the beginnings of comments and `$` strings, which may contain quotes.
_QUOTES = re.compile(r"['\"`$]|/\*|--")
_EXECUTED = re.compile(r"/\*M?!")
_AFTER_QUALIFIER = re.compile(r"\.[A-Za-z_\x80-\U0010ffff\"`*]")
_NAME_CHAR = re.compile(r"[A-Za-z0-9_\x80-\U0010ffff]")
# The dialects in which a text in double quotes may be a string.
_WITH_STRINGS = ("mysql", "sqlite", "other")
_CLOSING = {"[": "]", "(": ")", "{": "}", "<": ">"}

# A value that all dialects read alike if a comma or a closing bracket follows.
_ITEM = (
    r"[\t-\r ]*(?:[-+]?[0-9](?:[eE][-+]|[A-Za-z0-9._])*"
    r"|[bBeEnNxX]?'(?!'')[^'\\]*(?:''[^'\\]*)*'"
    r"|[nN][uU][lL][lL]|[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]|[dD][eE][fF][aA][uU][lL][tT]"
    r"|\?|[$:@][A-Za-z0-9_]+|%s)[\t-\r ]*"
)
_ITEMS = re.compile(rf"(?:,{_ITEM}(?=[,)]))*")
_ROWS = re.compile(rf"(?:[\t-\r ]*,[\t-\r ]*\({_ITEM}(?:,{_ITEM})*\))*")


def shape(text: Union[str, bytes, None], dialect: str) -> str:
    """At most `NAME_CHARS_MAX` characters."""
    return Reader(text or "", dialect).run()


class Reader:
    def __init__(self, text: Union[str, bytes], dialect: str) -> None:
        self.is_whole = len(text) <= TEXT_CHARS_MAX
        part = text[:TEXT_CHARS_MAX]
        self.text = part.decode("utf-8", "replace") if isinstance(part, bytes) else part
        self.dialect = dialect
        self.shape = Shape()
        self.at = 0
        # Meaning of a backslash in a plain string.
        self.backslash = _LIKELY if dialect == "mysql" else _UNSURE if self.is_of("postgresql", "other") else _PLAIN
        self.words = _WORD_WITH_HASH if self.is_of("standard", "sqlserver") else _WORD

    def run(self) -> str:
        text, shape = self.text, self.shape
        end = len(text)
        tokens = 0
        while self.at < end and len(shape.out) < NAME_CHARS_MAX and tokens < TOKENS_MAX:
            _STEPS.get(text[self.at], Reader.other)(self)
            tokens += 1
        return shape.finish(self.is_whole and self.at >= end)

    def other(self) -> None:
        """Reads signs without a key in `_STEPS`, and non-ASCII characters."""
        c = self.text[self.at]
        if c > "\x7f" and _BLANKS.match(c):
            self.blanks()
        elif c > "\x7f" and c.isalpha():
            self.word()
        else:
            self.sign(c)

    def is_of(self, *dialects: str) -> bool:
        return self.dialect in dialects

    def match(self, pattern: re.Pattern[str]) -> int:
        """The end of the match."""
        found = pattern.match(self.text, self.at)
        return found.end() if found else self.at

    def pass_name(self, pattern: re.Pattern[str]) -> str:
        """Reads the name that begins here. It also ends at a non-ASCII character that is neither a letter nor a decimal digit."""
        found = pattern.match(self.text, self.at)
        name = found[0] if found else ""
        if not name.isascii():
            ends = (at for at, c in enumerate(name) if c > "\x7f" and not (c.isalpha() or c.isdecimal()))
            name = name[: next(ends, len(name))]
        self.at += len(name)
        return name

    def cut(self) -> None:
        """Ignores the rest of the text, which is ambiguous."""
        self.at = len(self.text)
        self.is_whole = False

    def literal(self, is_sure: bool) -> None:
        """`is_sure`: True if the end of the literal is certain; `at` is then at the end."""
        self.shape.value()
        if not is_sure:
            self.cut()

    def pass_to(self, text: str, begin: int) -> bool:
        """True if the text is found; `at` is then behind it."""
        found = self.text.find(text, begin)
        if found >= 0:
            self.at = found + len(text)
        return found >= 0

    def number(self) -> None:
        self.at = self.match(_NUMBER)
        self.shape.value()

    def dash(self) -> None:
        self.dashes() if self.text.startswith("--", self.at) else self.sign("-")

    def slash(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        self.block_comment() if following == "*" else self.slashes() if following == "/" else self.sign("/")

    def blanks(self) -> None:
        found = _BLANKS.match(self.text, self.at)
        self.at = found.end() if found else self.at + 1
        self.shape.blank()

    def sign(self, c: str) -> None:
        self.at += 1
        self.shape.sign(c)

    def percent(self) -> None:
        found = _PERCENT.match(self.text, self.at)
        if found:
            self.at = found.end()
            self.shape.value()
        else:
            self.sign("%")

    def question(self) -> None:
        self.at += 1
        self.at = self.match(_DIGITS)
        self.shape.value()

    def opening(self) -> None:
        self.at += 1
        self.shape.open_bracket()

    def closing(self) -> None:
        """Closes a bracket. After a row that `...` replaces, the rows that follow are skipped. If the text is longer than the
        limit, reading then stops, so that the shape does not depend on the number of rows."""
        self.at += 1
        if self.shape.close_bracket():
            self.at = self.match(_ROWS) if self.is_whole else len(self.text)

    def comma(self) -> None:
        at = self.at
        self.shape.drop_blank()
        if self.shape.end_item():
            self.at = self.match(_ITEMS)
        if self.at == at:
            self.at += 1
            self.shape.comma()

    def dashes(self) -> None:
        """`-- ...`: a comment; in MySQL only if white space follows, otherwise two signs."""
        is_comment = self.text[self.at + 2 : self.at + 3] <= " "
        if is_comment or not self.is_of("mysql", "other"):
            self.line_comment()
        elif self.is_of("mysql"):
            self.at += 2
            self.shape.sign("--")
        else:
            self.cut()

    def slashes(self) -> None:
        """`// ...`: a comment in H2 and HSQLDB; it may be an operator if the dialect is unknown."""
        if self.is_of("other") or (self.is_of("standard") and _QUOTES.search(self.text, self.at, self.match(_LINE))):
            self.cut()
        elif self.is_of("standard"):
            self.line_comment()
        else:
            self.sign("/")

    def hash(self) -> None:
        """A comment in MySQL, an operator or part of a name elsewhere."""
        if self.is_of("mysql"):
            self.line_comment()
        elif self.is_of("other"):
            self.cut()
        else:
            self.sign("#")

    def line_comment(self) -> None:
        """A comment to the end of the line. A lone carriage return certainly ends a line only in PostgreSQL."""
        text = self.text
        end = self.match(_LINE)
        is_sure = text[end : end + 1] != "\r" or text[end + 1 : end + 2] in ("", "\n")
        if is_sure or self.is_of("postgresql"):
            self.at = min(end + 1, len(text))
            self.shape.blank()
        else:
            self.cut()

    def block_comment(self) -> None:
        """Comments nest in PostgreSQL and SQL Server; an executable comment of MySQL may contain strings with `*/`."""
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
        if is_code and _QUOTES.search(text, at + 2, to):
            self.cut()
            return
        self.at = min(to + 2, len(text))
        self.shape.blank()

    def pass_over(self, quote: str, backslash: int) -> bool:
        """Returns True if the end of the literal is certain; `at` is then at the end. A doubled quote is part of the text."""
        text = self.text
        begin = self.at + 1
        at = text.find(quote, begin)
        while at >= 0:
            if backslash != _PLAIN and self.is_escaped(begin, at):
                is_likely = backslash == _LIKELY and self.backslash == _LIKELY
                if not (self.is_inside(at) if is_likely else backslash != _UNSURE):
                    return False
            elif text.startswith(quote, at + 1):
                at += 1
            else:
                self.at = at + 1
                return True
            at = text.find(quote, at + 1)
        return False

    def is_escaped(self, begin: int, at: int) -> bool:
        """True if an odd number of backslashes precedes the quote."""
        before = at
        while before > begin and self.text[before - 1] == "\\":
            before -= 1
        return (at - before) % 2 == 1

    def is_inside(self, at: int) -> bool:
        """A quote followed by a word does not end a literal, so the backslash before the quote is an escape. Later backslashes of
        the statement are then escapes, too."""
        is_inside = _NAME_CHAR.match(self.text, at + 1) is not None
        if is_inside:
            self.backslash = _ESCAPE
        return is_inside

    def is_triple(self, quotes: str) -> bool:
        """True for three quotes in an unknown dialect. They begin a literal of several lines, or one with a quote as its first
        character."""
        return self.dialect == "other" and self.text.startswith(quotes, self.at)

    def plain_string(self) -> None:
        self.string(self.backslash)

    def string(self, backslash: int) -> None:
        self.literal(not self.is_triple("'''") and self.pass_over("'", backslash))

    def double_quoted(self) -> None:
        """A name. In MySQL, SQLite and unknown dialects it is a string, except where only a name is possible."""
        begin = self.at
        is_string = self.dialect in _WITH_STRINGS
        is_sure = not self.is_triple('"""') and self.pass_over('"', self.backslash if is_string else _PLAIN)
        if is_sure and (not is_string or self.is_name()):
            self.shape.name(self.text[begin : self.at])
        else:
            self.literal(is_sure)

    def is_name(self) -> bool:
        """True if only a name is possible: it is qualified, or at the position of a table, an alias or a column."""
        is_qualifier = self.match(_AFTER_QUALIFIER) > self.at
        return self.shape.is_before_name() or is_qualifier or (self.is_of("sqlite") and self.shape.is_before_table())

    def quoted_name(self, quote: str, is_doubled: bool) -> None:
        """`is_doubled`: a doubled closing quote is one quote of the name."""
        begin = self.at
        if self.pass_over(quote, _PLAIN) if is_doubled else self.pass_to(quote, begin + 1):
            self.shape.name(self.text[begin : self.at])
        else:
            self.literal(False)

    def backtick(self) -> None:
        """A name in MySQL, SQLite and H2; an operator or an error elsewhere."""
        if self.is_of("mysql", "sqlite"):
            self.quoted_name("`", True)
        elif self.has_quote("`"):
            self.cut()
        elif self.is_of("other"):
            self.quoted_name("`", True)
        else:
            self.sign("`")

    def has_quote(self, sign: str) -> bool:
        """True if a match of `_QUOTES` is before the next `sign`, or before the end of the text if no `sign` follows."""
        close = self.text.find(sign, self.at + 1)
        return _QUOTES.search(self.text, self.at + 1, len(self.text) if close < 0 else close) is not None

    def bracket(self) -> None:
        """`[name]` in SQL Server and SQLite, otherwise an array index."""
        if self.is_of("sqlserver", "sqlite"):
            self.quoted_name("]", self.is_of("sqlserver"))
        elif self.is_of("other") and self.has_quote("]"):
            self.cut()
        else:
            self.sign("[")

    def dollar(self) -> None:
        """`$1` is a parameter, `$tag$...$tag$` is a string. In SQL Server `$1.5` is money. In SQL Server and MySQL `$` may also
        begin a name."""
        text, at = self.text, self.at
        end = at if self.is_of("sqlite", "sqlserver") else self.match(_TAG)
        if end > at:
            # MySQL supports such a string only since version 9.
            self.literal(self.pass_to(text[at:end], end) and not self.is_of("mysql"))
        elif self.is_of("sqlserver") and "." <= text[at + 1 : at + 2] <= "9" and text[at + 1] != "/":
            self.at += 1
            self.at = self.match(_NUMBER)
            self.shape.value()
        elif self.is_of("mysql", "sqlserver"):
            self.shape.name(self.pass_name(self.words))
        else:
            self.pass_name(_PARAMETER)
            self.shape.value()

    def word(self) -> None:
        word = self.pass_name(self.words)
        if not self.text.startswith("'", self.at):
            self.shape.name(word)
        elif self.is_of("standard", "other") and word.lower() in ("q", "nq"):
            self.alternative()
        elif len(word) == 1 and word <= "\uffff":  # E'..', N'..', X'..', B'..'
            self.string(_ESCAPE if word in "eE" and self.is_of("postgresql", "other") else self.backslash)
        else:
            self.shape.name(word)

    def alternative(self) -> None:
        """Oracle's q'[...]' ends with a quote after the closing bracket, or after the same sign if the opening sign is not
        a bracket."""
        opening = self.text[self.at + 1 : self.at + 2]
        self.literal(self.pass_to(_CLOSING.get(opening, opening) + "'", self.at + 2))


# Readers of tokens, by first character.
_STEPS: dict[str, Callable[[Reader], None]] = {
    **dict.fromkeys(map(chr, range(0x21)), Reader.blanks),
    **dict.fromkeys("_" + string.ascii_letters, Reader.word),
    **dict.fromkeys(string.digits, Reader.number),
    "'": Reader.plain_string,
    '"': Reader.double_quoted,
    "-": Reader.dash,
    "/": Reader.slash,
    "#": Reader.hash,
    "`": Reader.backtick,
    "[": Reader.bracket,
    "$": Reader.dollar,
    "%": Reader.percent,
    "?": Reader.question,
    ",": Reader.comma,
    "(": Reader.opening,
    ")": Reader.closing,
}
