"""What is the shape of a statement? Literals become `?`, white space one blank, comments nothing, lists of values one value.

So statements that differ only in data are one operation and no data leaves the process. The same rules as `Sql.java` of the Java
agent, and `%s` and `%(name)s`, which are parameters in Python. Knows what the common dialects agree on: `'it''s'`, `E'\\''`,
`$tag$...$tag$`, `"name"`, `-- ...`, `/* ... */`, `:name`, `$1`. A text that ends inside a literal is taken as if it were closed
there. Before: dbapi. After: operations.
"""

from __future__ import annotations

import re
from typing import Union

# Characters of a name; what is longer is cut.
NAME_CHARS_MAX = 1_000
# Characters that are read; a bulk insert may have megabytes.
TEXT_CHARS_MAX = 20_000

# What the second and later rows of a bulk insert become.
_ROWS = "), ..."

_TOKEN = re.compile(
    r"""
    (?P<blank>\s+ | --[^\n]* | /\*.*?(?:\*/|\Z))
  | (?P<value>
        [eE]'(?:[^'\\]|''|\\.)*(?:'|\\?\Z)                       # a backslash protects the next character
      | [^\W\d_]?'(?:[^']|'')*(?:'|\Z)                             # N'..', X'..', B'..' and plain ones
      | \$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|\Z) | \$\w*            # $tag$..$tag$, $1
      | [0-9](?:[eE][+-]|[\w.])*                                   # with the sign of an exponent
      | %s | %\(\w+\)s | \? )
  | (?P<name> "[^"]*(?:"|\Z) | `[^`]*(?:`|\Z) | [^\W\d][\w$\#]* )
  | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_LIST = re.compile(r"(?:^|\W)in *\(\?, \Z", re.IGNORECASE)
_ROW = re.compile(r"\([?, ]*\)\Z")


def shape(text: Union[str, bytes, None]) -> str:
    """At most `NAME_CHARS_MAX` characters."""
    if isinstance(text, bytes):
        text = text[:TEXT_CHARS_MAX].decode("utf-8", "replace")
    if not text:
        return ""
    out = ""
    at, end = 0, min(len(text), TEXT_CHARS_MAX)
    while at < end and len(out) < NAME_CHARS_MAX:
        match = _TOKEN.match(text, at, end)
        if match is None:
            break
        at = match.end()
        out = _put(out, match)
    is_cut = at < len(text) or len(out) > NAME_CHARS_MAX
    rows = out.rfind(_ROWS)
    if is_cut and rows >= 0:
        # Cut inside a bulk insert: where exactly depends on the data.
        return out[: rows + len(_ROWS)]
    out = out.rstrip(" ;")
    return out[: NAME_CHARS_MAX - 3] + "..." if is_cut else out[:NAME_CHARS_MAX]


def _put(out: str, match: re.Match[str]) -> str:
    sort = match.lastgroup if match.lastgroup != "tag" else "value"
    if sort == "blank":
        return out if not out or out[-1] in " (" else out + " "
    if sort == "value":
        return out[:-2] if _IN_LIST.search(out, max(0, len(out) - 20)) else out + "?"
    if sort == "name":
        return out + match[0]
    sign = match[0]
    if sign in ",)" and out.endswith(" "):
        out = out[:-1]
    if sign == ")":
        return _fold_row(out + ")")
    return out + (", " if sign == "," else sign)


def _fold_row(out: str) -> str:
    """`(?, ?), (?, ?)` of a bulk insert becomes `(?, ?), ...`."""
    begin = out.rfind("(")
    row = out[begin:]
    if begin < 0 or not _ROW.match(row):
        return out
    before = out[:begin]
    if before.endswith("..., "):
        return before[:-2]
    return before + "..." if before.endswith(row + ", ") else out
