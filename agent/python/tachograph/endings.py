"""Sends the recorded data before the process ends itself without `atexit`: by `os._exit`, by `exec` of another program, or by a
signal to itself. Servers such as uvicorn send a signal to themselves after they have handled it. A signal from another
process is not detected.

Before: agent. After: sender.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
from typing import Any, Callable

# Signals that do not end a process, even if it has no handler for them.
_HARMLESS = {
    int(getattr(signal, name))
    for name in ("SIGCHLD", "SIGCONT", "SIGURG", "SIGWINCH", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU")
    if hasattr(signal, name)
}
if sys.platform != "linux" and hasattr(signal, "SIGIO"):
    _HARMLESS.add(int(signal.SIGIO))
_EXECS = ("execv", "execve")  # the other `exec` functions call these two

_installed: list[bool] = []


def install(last: Callable[[], None]) -> None:
    """Calls `last`, which does not raise, when the process may be about to end."""
    if _installed:
        return
    _installed.append(True)
    _before(os, "_exit", lambda *_arguments: last())
    for name in _EXECS:
        _before(os, name, lambda *_arguments: last())
    _before(signal, "raise_signal", lambda number, *_rest: _is_end(number) and last())
    _before(os, "kill", lambda process, number, *_rest: process in (0, os.getpid()) and _is_end(number) and last())
    _before(os, "killpg", lambda group, number, *_rest: group in (0, os.getpgrp()) and _is_end(number) and last())


def _is_end(number: int) -> bool:
    if number == 0 or number in _HARMLESS:
        return False
    return signal.getsignal(number) is signal.SIG_DFL or number == getattr(signal, "SIGKILL", None)


def _before(owner: Any, name: str, look: Callable[..., object]) -> None:
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(Exception):  # arguments that the function itself rejects
            look(*args, *kwargs.values())
        return original(*args, **kwargs)

    wrapper.__module__ = owner.__name__  # for pickle
    setattr(owner, name, wrapper)
