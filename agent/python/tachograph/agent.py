"""Connects the parts of the agent and controls them from `start` to the end of the process, and again in a forked child.

Before: `tachograph.start`, `python -m tachograph run`. After: sender, imports, probes.
"""

from __future__ import annotations

import atexit
import math
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Optional, Union

from . import children, config, endings, identity, imports, messages, probes, thrown, track, wire
from .context import CALLER, REMOTE, Context
from .dictionary import Dictionary
from .imports import Imports
from .inbox import Inbox, Value
from .link import Link
from .log import Log
from .operations import SHARED
from .outbox import Outbox
from .probes import http_server
from .sampler import Sampler
from .secret import Token
from .sender import Sender
from .switchboard import Switchboard
from .tallies import TALLIES
from .totals import Totals
from .track import LOCAL, NO_CALL, Home

if TYPE_CHECKING:
    from .tls import Tls


class Agent:
    """Records and sends the data of one process, from `begin` to `stop`."""

    def __init__(self, settings: config.Settings, log: Log) -> None:
        self.settings = settings
        self.log = log
        self.imports = Imports(settings.include, settings.exclude, log)
        # Also used in a forked child, so the rules stay in force there.
        self.switchboard = Switchboard(SHARED, self.imports, log)
        self.forking: Optional[Context] = None
        self.is_stopped = False
        self._assemble()

    def _assemble(self) -> None:
        """Creates the parts that belong to one session."""
        settings = self.settings
        labels = identity.labels(settings)
        self.labels = labels
        track.OFF.look = NO_CALL  # threads that saw that the agent was off must check again
        self.home = track.home = Home(True, settings.buffer, settings.strands_max)
        self.totals = Totals()
        outbox = Outbox(Dictionary(SHARED), settings.queue)
        hello = wire.hello(self.home.session.id, identity.pairs(labels), secret=self.home.session.secret)
        token = Token(settings.token, settings.token_file, settings.insecure_token)
        link = Link(settings.server, hello, outbox, self.totals, self.log, self.switchboard, _tls(settings), token)
        self.inbox = Inbox(self.home, labels)
        self.sender = Sender(self.home, self.inbox, outbox, link, self.log)
        self.sender.tally_interval_s = settings.sample_interval
        self.sender.report_with(self.imports.report, imports.REPORT_AFTER_S)
        self.sampler = Sampler(self.inbox, self.totals)
        if settings.samplers:
            self.sender.sample_with(self.sampler, settings.sample_interval)

    def begin(self) -> None:
        if self.settings.samplers:
            self.sampler.install()
        http_server.request_id_headers = tuple(name.lower() for name in self.settings.request_id_headers)
        thrown.database_messages = self.settings.database_messages
        probes.install(self.settings, self.log)
        self.imports.install()
        self.sender.start()
        atexit.register(self.stop)
        endings.install(self.send_last)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before_fork, after_in_parent=self._after_in_parent, after_in_child=self._after_in_child
            )
        self.log.detail(f"started: {identity.pairs(self.labels)}")

    def send_last(self) -> None:
        """Called when the process may end without `atexit`. The process may also continue, if a signal is blocked or an
        executable is missing."""
        if not self.is_stopped and self.sender.thread is not None and self.sender.has_news:
            self.sender.tally_at = 0.0
            self.sender.flush(self.settings.flush_max, is_last=True)

    def stop(self) -> None:
        """Sends the remaining data, waits at most `flush_max`, sends BYE. Nothing is recorded afterwards."""
        if self.is_stopped:
            return
        self.is_stopped = True
        self.imports.report()
        if self.sender.thread is not None:
            self.sender.tally_at = 0.0  # also sends the counts since the last report
            if not self.sender.flush(self.settings.flush_max, is_last=True) and self.totals.bytes_queued:
                self.log.say(messages.end_unacknowledged(self.totals.bytes_queued))
            self.home.is_on = False
            self.sender.rest()
            self.sender.link.close()

    # ---- forks: a child is a separate process with its own session ----

    def _before_fork(self) -> None:
        if self.is_stopped:
            return
        # The sender's thread is stopped, so that the child inherits no unfinished work. Also, Python 3.12 warns if a process with
        # other threads forks.
        self.sender.rest()
        now = track.here().context()
        self.forking = now and Context(now.trace_high, now.trace_low, now.span, REMOTE, None)

    def _after_in_parent(self) -> None:
        self.forking = None
        # Patterns without matches are now reported only at the end: the program may continue in its children, and import modules
        # in them.
        self.sender.report_at = math.inf
        if not self.is_stopped:
            self.sender.start()

    def _after_in_child(self) -> None:
        if self.is_stopped:
            return
        self.sender.link.forget()
        self.sampler.remove()
        TALLIES.forget()
        self._assemble()
        LOCAL.__dict__.clear()
        CALLER.set(None)
        track.here().origin = self.forking
        if self.settings.samplers:
            self.sampler.install()
        self.sender.start()
        _flush_with_multiprocessing(self)


def _tls(settings: config.Settings) -> Optional[Tls]:
    """Imports `ssl` only if TLS is used. The thread that starts the agent imports it, so that no fork interrupts the import."""
    if not settings.tls_ca:
        return None
    from .tls import Tls

    return Tls(settings.tls_ca, settings.tls_client_cert, settings.tls_client_key)


def _flush_with_multiprocessing(agent: Agent) -> None:
    """Makes forked processes of `multiprocessing` call `stop` at their end. They end without `atexit`, and run only finalizers
    that were created after the fork."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.register_after_fork(agent, lambda known: util.Finalize(known, known.stop, exitpriority=0))


_agent: Optional[Agent] = None
_lock = threading.Lock()


def start(**settings: Any) -> bool:
    """Starts recording, unless the agent runs already. Settings override the environment (README.md); never raises.

    Returns False if the agent runs already, is disabled, or fails to start.
    """
    global _agent
    with _lock:
        if _agent is not None:
            return False
        values, warnings = config.load(os.environ, settings)
        log = Log(values.log, values.log_detail)
        fault = log.fall_back()
        if fault:
            place = "log" if "log" in settings else "TACHO_LOG"
            allowed = messages.expected(f"a writable file ({fault})")
            warnings.append(messages.setting_wrong(place, values.log, allowed, "standard error"))
        for warning in warnings:
            log.say(warning)
        if not values.enabled:
            log.say("switched off: the setting enabled is false")
            return False
        try:
            agent = Agent(values, log)
            agent.begin()
        except Exception as e:
            log.say(f"the agent failed to start: {type(e).__name__}: {e}")
            track.home, track.OFF.look = track.OFF.home, track.LOOK_OFF
            return False
        _agent = agent
        return True


def flush(wait_s: float = 1.5) -> bool:
    """Waits until the server has all records so far. Returns False if that takes longer than `wait_s` seconds, or if the agent
    does not run."""
    return _agent is not None and _agent.sender.flush(wait_s)


def recording() -> Optional[Imports]:
    """The part that changes functions; None before `start`."""
    return _agent.imports if _agent else None


def watch_children() -> None:
    """Also records the Python processes that this process starts from now on, unless the setting `children` is false."""
    if _agent is not None and _agent.settings.children:
        children.announce(_agent.labels["service"], _agent.log)


def totals() -> Optional[Totals]:
    """Counts of sent and dropped records; None before `start`."""
    return _agent and _agent.totals


def sample(name: str, value: Value, **labels: object) -> None:
    """Records a sample at the current time; `service`, `host` and `instance` are added. No effect before `start`."""
    agent = _agent
    if agent is None or agent.is_stopped:
        return
    try:
        number = value if isinstance(value, (int, float)) else float(value)
        agent.inbox.sample(agent.inbox.series(name, labels), number)
    except Exception as e:
        agent.log.say_once(f"sample {name}", f"a sample of {name} is dropped: {type(e).__name__}: {e}")


def entry(name: str, body: Union[str, bytes], **labels: object) -> None:
    """Records an entry (text or bytes) at the current time. The entry is cut to 1 MiB. No effect before `start`."""
    agent = _agent
    if agent is None or agent.is_stopped:
        return
    try:
        agent.inbox.entry(agent.inbox.series(name, labels), body if isinstance(body, bytes) else str(body))
    except Exception as e:
        agent.log.say_once(f"entry {name}", f"an entry of {name} is dropped: {type(e).__name__}: {e}")
