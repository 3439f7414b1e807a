"""Runs code in this process without a server, and decodes the recorded frames.

`tree(run)` returns one line of text per call, indented below the caller. `!` follows a failed call, `~` follows a call
without an end, `|` precedes a call that begins a segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any, Callable, Optional

from tachograph import track, wire
from tachograph.config import Settings
from tachograph.context import CALLER
from tachograph.dictionary import Dictionary
from tachograph.inbox import Inbox
from tachograph.link import Link
from tachograph.log import Log
from tachograph.operations import SHARED
from tachograph.outbox import Outbox
from tachograph.probes import context, dbapi, http_client
from tachograph.sender import Sender
from tachograph.totals import Totals

# A closed port. These tests step the sender by hand, and the link never connects.
NOWHERE = "127.0.0.1:1"

for probe in (context, dbapi, http_client):
    probe.install(Settings(), Log())


@dataclass
class Call:
    span: int
    parent: int
    operation: str
    begin: int
    end: Optional[int] = None
    is_failed: bool = False
    is_first: bool = False
    attributes: dict[str, Any] = field(default_factory=dict)


class Recording:
    """Replaces the agent's shared state inside the `with` block."""

    def __init__(self, buffer: int = 65_536, strands_max: int = 10_000, queue: int = 16 << 20) -> None:
        self.home = track.Home(True, buffer, strands_max)
        self.outbox = Outbox(Dictionary(SHARED), queue)
        self.totals = Totals()
        self.log = Log()
        self.log.say = lambda _line: None
        self.inbox = Inbox(self.home, {"service": "test"})
        self.link = Link(NOWHERE, b"", self.outbox, self.totals, self.log)
        self.sender = Sender(self.home, self.inbox, self.outbox, self.link, self.log)
        self.link.step = lambda: None  # the frames stay in the outbox
        self.parts = 0

    def __enter__(self) -> Recording:
        self.before = track.home
        track.home = self.home
        track.LOCAL.__dict__.clear()
        self.token = CALLER.set(None)
        return self

    def __exit__(self, *_: object) -> None:
        track.home = self.before
        track.LOCAL.__dict__.clear()
        CALLER.reset(self.token)

    def calls(self) -> list[Call]:
        """All calls so far, in the order of their segments."""
        self.sender.step()
        for reader in self.sender.readers.values():
            reader.close_part()
        self.outbox.close()
        names = definitions(self.outbox.dictionary)
        found: dict[int, Call] = {}
        for sent in [*self.outbox.unacknowledged, *self.outbox.waiting]:
            for tag, content, base in records(sent.frame):
                if tag == wire.TAG_SEGMENT:
                    self.parts += 1
                    _segment(wire.Body(content), base, self.home.session, names, found)
        return list(found.values())

    def tree(self) -> list[str]:
        calls = sorted(self.calls(), key=lambda call: call.begin)
        known = {call.span for call in calls}

        def below(parent: Optional[int], indent: str) -> Iterator[str]:
            for call in calls:
                if (call.parent == parent) if parent is not None else call.parent not in known:
                    mark = "!" if call.is_failed else "~" if call.end is None else ""
                    facts = "".join(f" {key}={value}" for key, value in call.attributes.items())
                    yield f"{indent}{'|' if call.is_first else ''}{call.operation}{mark}{facts}"
                    yield from below(call.span, indent + "  ")

        return list(below(None, ""))


def tree(run: Callable[[], Any], **home: int) -> list[str]:
    with Recording(**home) as recording:
        run()
        return recording.tree()


def records(frame: bytes) -> Iterator[tuple[int, bytes, int]]:
    """(tag, content, base) of the records of a DATA frame; verifies its checksum."""
    reader = wire.FrameReader()
    reader.push(frame)
    type_, body = reader.next()
    assert type_ == wire.DATA
    body.varint()
    base = body.i64()
    while body.at < len(body.data):
        tag = body.u8()
        yield tag, body.raw(body.varint()), base


def definitions(dictionary: Dictionary) -> dict[tuple[int, int], str]:
    """The text of each definition, by its sort (such as `DICT_TEXT`) and id, decoded from the bytes for a new connection."""
    found: dict[tuple[int, int], str] = {}
    sent = 0
    while sent < dictionary.size:
        data = dictionary.frame_body(sent, dictionary.size)
        sent += len(data)
        body = wire.Body(data)
        while body.at < len(data):
            sort, id_ = body.u8(), body.varint()
            if sort == wire.DICT_SERIES:
                labels = [(body.string(), body.string()) for _ in range(body.varint())]
                found[sort, id_] = repr(labels)
            else:
                kind = body.u8() if sort == wire.DICT_OPERATION else 0
                found[sort, id_] = body.string()
                assert kind <= 6
    return found


def _segment(body: wire.Body, base: int, session: Any, names: dict[tuple[int, int], str], found: dict[int, Call]) -> None:
    """Decodes one part of a segment. Fails if it is not well formed. Unlike the server, it does not check limits."""
    flags, number = body.u8(), body.varint()
    assert flags & 12 != 12
    assert flags < 32
    if flags & wire.FLAG_TRACE_FULL:
        body.raw(16)
    if flags & wire.FLAG_TRACE_OF_SEGMENT:
        body.varint()
    assert (wire.DICT_TEXT, body.varint()) in names
    start = body.varint()
    now = base + (start >> 1 ^ -(start & 1))
    parent = int.from_bytes(body.raw(8), "big") if flags & wire.FLAG_PARENT else 0
    open_: list[Call] = []
    next_call = 0
    if flags & wire.FLAG_CONTINUED:
        assert body.varint() > 0
        next_call = body.varint()
        for _ in range(body.varint()):
            _, call, _ = body.varint(), body.varint(), body.varint()
            open_.append(found[session.span(number, call)])
    for at in range(body.varint()):
        step = body.varint()
        now += step >> 1
        assert at or step < 2, "the first event is not at the start of the part"
        operation = body.varint() if step & 1 else 0
        if operation:
            span = session.span(number, next_call)
            is_first = not open_
            caller = open_[-1].span if open_ else parent
            assert not is_first or not next_call, "a segment has a second outermost call"
            call = found[span] = Call(span, caller, names[wire.DICT_OPERATION, operation], now, is_first=is_first)
            open_.append(call)
            next_call += 1
        else:
            ended = open_.pop()  # fails if an exit has no call
            ended.end, ended.is_failed = now, bool(step & 1)
    if flags & wire.FLAG_ATTRIBUTES:
        for _ in range(body.varint()):
            call, key = body.varint(), names[wire.DICT_TEXT, body.varint()]
            assert call < next_call
            found[session.span(number, call)].attributes[key] = _value(body, names)
    assert body.at == len(body.data)


def _value(body: wire.Body, names: dict[tuple[int, int], str]) -> Any:
    form = body.u8()
    if form == wire.FORM_TEXT_ID:
        return names[wire.DICT_TEXT, body.varint()]
    if form == wire.FORM_STRING:
        return body.string()
    if form == wire.FORM_UUID:
        return body.raw(16).hex()
    value = body.varint()
    return value >> 1 ^ -(value & 1)


def step_until(recording: Recording, is_done: Callable[[], bool], rounds: int = 1_000) -> None:
    for _ in range(rounds):
        if is_done():
            return
        recording.sender.step()
    raise AssertionError(f"not done after {rounds} rounds")


def aged(recording: Recording, seconds: float) -> None:
    """Reads all tracks as if this much time had passed."""
    for one in list(recording.home.tracks):
        recording.sender._read(one, perf_counter_ns() + int(seconds * 1e9))
