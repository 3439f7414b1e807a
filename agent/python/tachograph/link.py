"""Connects the agent to the server, and again after each failure. A non-blocking state machine; the sender calls `step`.

    RESTING --(time is up)--> RESOLVING --> CONNECTING --(HANDSHAKE, with TLS)--> GREETING --(WELCOME)--> OPEN
       ^                                                                                                    |
       +--------------------------------------(any fault; backs off)----------------------------------------+

Before: outbox. After: crates/server/src/listen/connection.rs.
"""

from __future__ import annotations

import errno
import math
import os
import random
import select
import socket
from _thread import start_new_thread
from enum import Enum
from time import monotonic
from typing import TYPE_CHECKING, Any, Optional, Union

from . import messages, wire
from .config import parse_address
from .dictionary import Dictionary
from .log import Log
from .outage import Outage
from .outbox import Outbox
from .secret import Secret, Token, TokenError, is_loopback
from .switchboard import Switchboard
from .totals import Totals

if TYPE_CHECKING:
    from .tls import Encrypted, Tls

_GREETING_S = 5.0
# Longest time between two steps that counts as waiting for the server. Longer times have other causes: a busy machine delays the
# sender's thread, or a step of TLS takes long.
_STEP_S_MAX = 0.1
# Pause after an OSError when the program ends.
_ENDING_S = 0.1
# Codes of an ERROR: the server requires TLS; the token is missing or invalid; the token does not permit this.
_NEEDS_TLS = 11
_UNAUTHORIZED = 12
_FORBIDDEN = 13
# First and longest pause after a refused token, which may become valid later.
_TOKEN_S = (1.0, 60.0)
# Pause after a refusal, if the server would refuse an immediate retry for the same reason.
_REFUSED_S = 60.0
# Minimum pause after an ERROR, unless the token is the reason. It is needed because a WELCOME before the ERROR resets the
# back-off.
_PAUSE_S = 1.0
_BACKOFF_S = (0.1, 5.0)
_STEP_FRAMES_MAX = 64
_HEARTBEAT_S = (0.1, 600.0)


class State(Enum):
    RESTING = 0
    RESOLVING = 1
    CONNECTING = 2
    HANDSHAKE = 3
    GREETING = 4
    OPEN = 5


class RefusalError(Exception):
    """The server sent ERROR. `pause_s`: time until the next attempt. `is_of_token`: the token is the reason. `is_lasting`:
    another attempt has no use, because the server would refuse it too, or because the refused frames were discarded."""

    def __init__(self, message: str, pause_s: float, is_of_token: bool = False, is_lasting: bool = True) -> None:
        super().__init__(message)
        self.pause_s = pause_s
        self.is_of_token = is_of_token
        self.is_lasting = is_lasting


class Link:
    def __init__(
        self,
        address: str,
        hello: bytes,
        outbox: Outbox,
        totals: Totals,
        log: Log,
        switchboard: Optional[Switchboard] = None,
        tls: Optional[Tls] = None,
        token: Optional[Token] = None,
    ) -> None:
        """`address`: as for `parse_address`. `hello`: the body of HELLO without a token. `switchboard`: applies rules. Without
        `tls` the connection is not encrypted. Raises ValueError."""
        self.address = parse_address(address)
        self.hello = hello
        self.outbox = outbox
        self.dictionary: Dictionary = outbox.dictionary
        self.totals = totals
        self.log = log
        self.switchboard = switchboard
        self.tls = tls
        self.token = token or Token(Secret(""), "", False)
        # The token of the current attempt to connect.
        self.token_read = b""
        self.token_pause_s = _TOKEN_S[0]
        self.is_clear_told = False
        self.state = State.RESTING
        self.socket: Union[socket.socket, Encrypted, None] = None
        self.resolver: Optional[Resolver] = None
        self.frames = wire.FrameReader()
        self.out = b""
        self.dictionary_sent = 0
        self.attempts = 0
        # The time of the next attempt, and its time if the program ends.
        self.due = self.due_at_end = monotonic()
        # True while the program ends and waits for the server. After an OSError the next attempt then follows in `_ENDING_S`.
        self.is_ending = False
        # False if another attempt would probably also fail: no program listens at the address, a certificate is not trusted, the
        # token is refused.
        self.is_hopeful = True
        self.stepped_at = self.waited_s = 0.0
        self.backoff_s = _BACKOFF_S[0]
        self.heartbeat_s = 5.0
        self.heard_at = self.pinged_at = self.hold_until = 0.0
        self.dropped_at_ping = 0
        self.outage = Outage(address, totals, log)

    def may_open(self, until: float) -> bool:
        """True if the connection is open, or may open before the time `until` while the program ends."""
        if self.state is State.OPEN:
            return True
        return self.is_hopeful and (self.state is not State.RESTING or self.due_at_end < until)

    @property
    def is_busy(self) -> bool:
        """True while a connection is being established or a frame is being sent. The sender then sleeps only briefly."""
        return bool(self.out) or self.state not in (State.RESTING, State.OPEN)

    @property
    def is_deciding(self) -> bool:
        """True if rules of the server have arrived and are not fully applied yet."""
        return self.switchboard is not None and self.switchboard.is_deciding

    def step(self) -> None:
        """Applies rules, then makes one step of the connection. Never waits."""
        if self.switchboard is not None:
            self.switchboard.go_on()
        now = monotonic()
        try:
            if self.state is State.RESTING:
                if now >= (self.due_at_end if self.is_ending else self.due):
                    self.token_read = self.token.read()
                    self.state = State.RESOLVING
                    self.resolver = Resolver(self.address)
            elif self.state is State.RESOLVING:
                self._connect(now)
            elif self.state is State.CONNECTING:
                self._finish_connect()
                self._expire(now)
            elif self.state is State.HANDSHAKE:
                self._shake_hands()
                self._expire(now)
            else:
                self._receive(now)
                self._send(now)
                self._expire(now)
                self.outage.look(now)
        except wire.DamagedError as e:
            self.is_hopeful = False
            self._fail(now, messages.server_is_other(e), self._next_backoff())
        except RefusalError as e:
            self.is_hopeful = not e.is_lasting
            self._fail(now, str(e), e.pause_s, e.is_of_token)
        except OSError as e:
            is_reached = self.state in (State.HANDSHAKE, State.GREETING, State.OPEN) or e.errno == errno.ECONNRESET
            self.is_hopeful = is_reached and not getattr(e, "is_of_tls", False)
            self._fail(now, e.strerror or str(e) or type(e).__name__, self._next_backoff())
            self.due_at_end = now + _ENDING_S

    def close(self) -> None:
        """Called when the program ends. Logs ended outages and dropped calls, sends BYE if connected (unless a frame is partly
        sent), and closes the socket. No attempt to connect follows."""
        self.outage.tell_past(monotonic())
        self.outage.drops.look(monotonic(), is_last=True)
        self.due = self.due_at_end = math.inf
        if self.socket is not None:
            try:
                if self.state is State.OPEN and not self.out:
                    self.socket.send(wire.frame(wire.BYE, b""))
            except OSError:
                pass
            self.forget()

    def forget(self) -> None:
        """Closes the socket without BYE, because after a fork the connection may belong to the parent."""
        if self.socket is not None:
            self.socket.close()
        self.socket = None
        self.state = State.RESTING

    def ping_soon(self) -> None:
        """Makes the next step send a PING with the counts if calls were dropped since the last PING, even if no PING is due."""
        if self.totals.calls_dropped != self.dropped_at_ping:
            self.pinged_at = monotonic() - self.heartbeat_s

    # ---- making a connection ----

    def _connect(self, now: float) -> None:
        found = self.resolver.result(self.attempts) if self.resolver else None
        if found is None:
            return
        family, address = found
        self.attempts += 1
        self._check_secrecy(address[0])
        self.socket = _Socket(family, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.state = State.CONNECTING
        self.stepped_at, self.waited_s = now, 0.0
        code = self.socket.connect_ex(address)
        if code not in (0, errno.EINPROGRESS, errno.EWOULDBLOCK):
            raise OSError(code, os.strerror(code).lower())
        if not code:
            self._secure()

    def _check_secrecy(self, address: str) -> None:
        """Raises TokenError if others could read the token on the network, unless `insecure_token` permits it. `address`: that
        of the server."""
        if not self.token_read or self.tls is not None or is_loopback(address):
            return
        if not self.token.is_insecure:
            raise TokenError(messages.TOKEN_IN_CLEAR)
        if not self.is_clear_told:
            self.is_clear_told = True
            self.log.say(messages.token_sent_in_clear(self.outage.server))

    def _finish_connect(self) -> None:
        if is_writable(self.socket):
            code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code).lower())
            self._secure()

    def _secure(self) -> None:
        self.is_hopeful = True
        if self.tls is None:
            self._greet()
        else:
            self.state = State.HANDSHAKE
            self.socket = self.tls.open(self.socket, self.address[0])
            self._shake_hands()

    def _shake_hands(self) -> None:
        if self.socket.handshake():
            self._greet()

    def _greet(self) -> None:
        self.state = State.GREETING
        self.frames = wire.FrameReader()
        self.out = wire.frame(wire.HELLO, wire.with_token(self.hello, self.token_read))
        self.dictionary_sent = 0
        if self.switchboard is not None:
            self.switchboard.connected()

    def _expire(self, now: float) -> None:
        """Checks the time limits on silence of the server."""
        if self.state is State.OPEN:
            # The server may be silent until `hold_until`, even if a frame arrives before.
            if now - max(self.heard_at, self.hold_until) > 3 * self.heartbeat_s:
                raise TimeoutError(messages.server_silent(f"{3 * self.heartbeat_s:g} s"))
            return
        self.waited_s += min(now - self.stepped_at, _STEP_S_MAX)
        self.stepped_at = now
        if self.waited_s > _GREETING_S:
            raise TimeoutError(f"no answer within {_GREETING_S:g} s")

    def _next_backoff(self) -> float:
        """Doubled each time, with jitter, so that many agents do not reconnect at the same time."""
        step = self.backoff_s
        self.backoff_s = min(_BACKOFF_S[1], 2 * step)
        return step * random.uniform(0.5, 1.0)

    def _fail(self, now: float, why: str, pause_s: float, is_of_token: bool = False) -> None:
        was_open = self.state is State.OPEN
        self.forget()
        self.out = b""
        self.due = self.due_at_end = now + pause_s
        self.outbox.rewind()
        self.outage.failed(now, was_open, why, is_of_token)

    # ---- from the server ----

    def _receive(self, now: float) -> None:
        while True:
            try:
                data = self.socket.recv(65_536)
            except (BlockingIOError, InterruptedError):
                return
            if not data:
                raise ConnectionError(messages.SERVER_CLOSED)
            self.frames.push(data)
            while (frame := self.frames.next()) is not None:
                self._take(*frame, now)

    def _take(self, type_: int, body: wire.Body, now: float) -> None:
        self.heard_at = now
        if self.state is State.GREETING and type_ not in (wire.WELCOME, wire.ERROR):
            raise wire.DamagedError(messages.frame_early(type_))
        if type_ == wire.WELCOME:
            self._welcome(body, now)
        elif type_ == wire.ACK:
            self.outbox.acknowledge(body.varint())
        elif type_ == wire.WAIT:
            self.hold_until = now + min(body.varint() / 1e3, _HEARTBEAT_S[1])
            self.log.say_once("wait", messages.SERVER_IS_FULL)
        elif type_ == wire.ERROR:
            raise self._refusal(body.varint(), body.string(), now)
        elif type_ == wire.REJECT:
            self.totals.records_rejected += 1
            self.log.say_once("reject", messages.record_refused(body.varint(), body.varint(), body.string()))
        elif type_ == wire.PROBES and self.switchboard is not None:
            self.switchboard.take(*wire.probes(body))
        # PONG needs no action; types of later versions are ignored.

    def _welcome(self, body: wire.Body, now: float) -> None:
        if self.state is not State.GREETING:
            return
        body.u8()
        acknowledged = body.varint()
        body.varint()  # frame_body_bytes_max: it is 4 MiB, and frames of this agent are smaller
        self.heartbeat_s = min(max(body.varint() / 1e3, _HEARTBEAT_S[0]), _HEARTBEAT_S[1])
        self.outbox.acknowledge(acknowledged)
        self.state = State.OPEN
        self.pinged_at = now - self.heartbeat_s  # the first PING goes out at once: it reports dropped records
        self.hold_until = 0.0
        self.totals.connects += 1
        self.backoff_s = _BACKOFF_S[0]
        self.token_pause_s = _TOKEN_S[0]
        self.outage.over(now)

    def _refusal(self, code: int, message: str, now: float) -> RefusalError:
        """The reaction to an ERROR (wire.md, table of codes)."""
        self.outage.begin(now)
        if code in (_UNAUTHORIZED, _FORBIDDEN):
            return self._token_refusal(code, message)
        text = messages.tls_required(code) if code == _NEEDS_TLS else messages.server_refuses(message, code)
        if code in (3, 4, 5):
            self.outbox.discard(self.totals)  # the same frames would fail again in the same way
        pause_s = max(_PAUSE_S, self._next_backoff()) if code in (1, 3, 4, 5, 7, 8, 9) else _REFUSED_S
        return RefusalError(text, pause_s, is_lasting=code not in (1, 7, 8, 9))

    def _token_refusal(self, code: int, message: str) -> RefusalError:
        step = self.token_pause_s
        self.token_pause_s = min(_TOKEN_S[1], 2 * step)
        if not self.token_read:
            text = messages.token_needed(code)
        elif code == _UNAUTHORIZED:
            text = messages.token_refused(message, code, self.token.setting)
        else:
            text = messages.token_forbids(message, code, self.token.setting)
        return RefusalError(text, step * random.uniform(0.5, 1.0), is_of_token=True)

    # ---- to the server ----

    def _send(self, now: float) -> None:
        for _ in range(_STEP_FRAMES_MAX):
            if not self.out and not self._prepare(now):
                return
            try:
                count = self.socket.send(self.out)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                # A server that refuses a connection sends the reason and closes. The reason may still be in the socket buffer.
                self._receive(now)
                raise
            self.totals.bytes_sent += count
            self.out = self.out[count:]
            if self.out:
                return

    def _prepare(self, now: float) -> bool:
        """Selects the next frame to send; False if there is none."""
        if self.state is not State.OPEN:
            return False
        if self._ping_is_due(now):
            self.pinged_at = now
            self.dropped_at_ping = self.totals.calls_dropped
            counts = self.dropped_at_ping, self.totals.samples_dropped, self.totals.entries_dropped, self.outbox.bytes
            self.out = wire.frame(wire.PING, wire.ping(*counts))
            return True
        answer = self.switchboard.answer(now) if self.switchboard is not None else None
        if answer is not None:
            self.out = wire.frame(wire.PROBED, answer)
            return True
        if now < self.hold_until or not self.outbox.waiting:
            return False
        following = self.outbox.waiting[0]
        if self.dictionary_sent < following.dictionary_size:
            definitions = self.dictionary.frame_body(self.dictionary_sent, following.dictionary_size)
            self.dictionary_sent += len(definitions)
            self.out = wire.frame(wire.DICT, definitions)
        else:
            self.out = following.frame
            self.outbox.sent()
        return True

    def _ping_is_due(self, now: float) -> bool:
        is_news = self.totals.calls_dropped != self.dropped_at_ping and now - self.pinged_at > self.heartbeat_s / 5
        return is_news or now - self.pinged_at >= self.heartbeat_s


def is_writable(one: Any) -> bool:
    """`select` supports no descriptor above 1,023, and `poll` is not available everywhere."""
    if _poll is None:
        return bool(_select((), (one,), (one,), 0)[1])
    asked = _poll()
    asked.register(one, select.POLLOUT)
    return bool(asked.poll(0))


# Taken at the import of the agent, like the function that starts the sender's thread, so that gevent has replaced all of them or
# none. In an operating system thread, gevent's functions would create a hub. If the program creates its own hub at that moment,
# the two hubs wait for each other permanently.
_Socket, _getaddrinfo = socket.socket, socket.getaddrinfo
_select, _poll = select.select, getattr(select, "poll", None)


class Resolver:
    """Resolves a host name. A name server may take seconds, so the look-up runs on a thread. A literal address needs no
    thread."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.found: list[tuple[int, Any]] = []
        self.fault: Optional[OSError] = None
        try:
            self._resolve(socket.AI_NUMERICHOST)
        except OSError:
            start_new_thread(self._ask, ())

    def _ask(self) -> None:
        try:
            self._resolve(0)
        except (OSError, UnicodeError) as e:
            self.fault = e if isinstance(e, OSError) else OSError(0, f"{self.address[0]}: {e}")

    def _resolve(self, flags: int) -> None:
        host, port = self.address
        answers = _getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, flags)
        self.found = [(answer[0], answer[4]) for answer in answers]

    def result(self, attempt: int) -> Optional[tuple[int, Any]]:
        """(family, address); each attempt gets the next address. None while the look-up runs. Raises OSError."""
        if self.fault is not None:
            raise self.fault
        return self.found[attempt % len(self.found)] if self.found else None
