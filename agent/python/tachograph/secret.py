"""The token of the settings, which authenticates this program. It is sent in HELLO only; no log line and no representation
contains it.

Before: config. After: link.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from . import messages, wire

# Visible ASCII characters.
_VISIBLE = frozenset(range(0x21, 0x7F))


@dataclass(frozen=True, repr=False)
class Secret:
    """A text that `repr` does not show."""

    text: str

    def __repr__(self) -> str:
        return "<secret>"


class TokenError(OSError):
    """The settings give no valid token, or the token must not be sent. The message names the setting, and does not
    contain the token."""


class Token:
    """The settings `token`, `token_file` and `insecure_token`."""

    def __init__(self, given: Secret, file: str, is_insecure: bool) -> None:
        self.given = given
        self.file = file and os.path.abspath(file)  # the program may change its directory
        self.is_insecure = is_insecure

    @property
    def setting(self) -> str:
        """The setting that has the token, for messages."""
        return f"token_file={self.file}" if self.file else "token"

    def read(self) -> bytes:
        """The token for the next connection; empty if none is set. The file is read each time, so that a new token is used.

        Raises TokenError.
        """
        if not self.file and not self.given.text:
            return b""
        if self.file and self.given.text:
            raise TokenError(messages.TOKEN_TWICE)
        content = _content(self.file, self.setting) if self.file else self.given.text.encode("utf-8", "surrogatepass")
        if not 1 <= len(content) <= wire.TOKEN_BYTES_MAX or not _VISIBLE.issuperset(content):
            raise TokenError(messages.token_unusable(self.setting, messages.token_form(wire.TOKEN_BYTES_MAX)))
        return content


def is_loopback(address: str) -> bool:
    """`address`: numeric, as the functions of `socket` write it."""
    return address.startswith(("127.", "::ffff:127.")) or address == "::1"


def _content(path: str, setting: str) -> bytes:
    """The content of a file, except one line end at its end. Raises TokenError. Opening a FIFO does not wait for a writer."""
    try:
        with open(path, "rb", opener=_open) as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                # Reads the longest token, a line end of at most two bytes, and one byte more, so that a token that is too long is
                # detected.
                return file.read(wire.TOKEN_BYTES_MAX + 3).removesuffix(b"\n").removesuffix(b"\r")
            why = messages.TLS_NOT_A_FILE
    except (OSError, ValueError) as e:  # ValueError: not a path
        why = (getattr(e, "strerror", None) or str(e)).lower()
    raise TokenError(messages.token_unusable(setting, why))


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
