"""The agent's log: one line at a time, on standard error or in a file. Lines of `say_once` are not repeated within a minute.

Before: all parts. After: none; a line that cannot be written is lost.
"""

from __future__ import annotations

import sys
import time
from datetime import datetime, timezone

_REPEAT_S = 60.0
_SUBJECTS_MAX = 1_000


class Log:
    """`path`: a file that is appended to, empty for standard error. `is_chatty`: `detail` lines are written, too."""

    def __init__(self, path: str = "", is_chatty: bool = False) -> None:
        self.path = path
        self.is_chatty = is_chatty
        self.said_at: dict[str, float] = {}

    def fall_back(self) -> str:
        """Falls back to standard error if the file is not writable; returns the reason, or an empty string."""
        try:
            if self.path:
                with open(self.path, "a", encoding="utf-8"):
                    pass
        except (OSError, ValueError) as e:
            self.path = ""
            return getattr(e, "strerror", None) or str(e)
        return ""

    def say(self, line: str) -> None:
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        text = f"{now} tachograph: {line}\n"
        try:
            if self.path:
                with open(self.path, "a", encoding="utf-8") as file:
                    file.write(text)
            elif sys.stderr is not None:
                sys.stderr.write(text)
                sys.stderr.flush()
        except (OSError, ValueError):
            pass  # a full disk or a closed standard error must not affect the program

    def say_once(self, subject: str, line: str) -> None:
        """As `say`, but at most once a minute for each subject. After the first 1,000 subjects, new ones are not logged."""
        now = time.monotonic()
        before = self.said_at.get(subject)
        if (before is not None and now - before < _REPEAT_S) or (before is None and len(self.said_at) >= _SUBJECTS_MAX):
            return
        self.said_at[subject] = now
        self.say(line)

    def detail(self, line: str) -> None:
        if self.is_chatty:
            self.say(line)
