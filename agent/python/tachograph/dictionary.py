"""Ids of texts, operations and series on the wire. An id keeps its meaning for the whole session, so that frames that are sent
again stay valid. A new connection gets all definitions from the start. Sizes are bounded as the protocol requires. Names of
operations, threads and attributes beyond a bound become `(other)`. Before: reader, inbox. After: link, which sends `frame_body`.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Optional

from . import wire
from .operations import OTHER, Operations

TEXTS_MAX = 32_768
VALUES_MAX = 16_384
SERIES_MAX = 16_384
OPERATIONS_MAX = wire.DICT_IDS_MAX - 64

# This limit is lower than the bound of the protocol, because it is checked before a definition is added.
STRING_BYTES_MAX = wire.DICT_BYTES_MAX - (1 << 20)

_BODY_BYTES = 65_536
_VALUE_CHARS_MAX = 64
_SEEN_MAX = 4_096

Labels = tuple[tuple[str, str], ...]


class Dictionary:
    def __init__(self, operations: Operations) -> None:
        self.operations = operations
        self.texts: dict[str, int] = {}
        # The wire id as a varint, by the id in `operations`; None: not defined yet.
        self.operation_bytes: list[Optional[bytes]] = []
        self.operation_ids: dict[tuple[int, bytes], int] = {}
        self.series_ids: dict[Labels, int] = {}
        self.value_count = 0
        self.seen: set[str] = set()
        self.string_bytes = 0
        self.definitions = bytearray()
        # Positions at which `definitions` is divided into DICT bodies. Two positions are at least `_BODY_BYTES` apart.
        self.cuts: list[int] = []

    @property
    def size(self) -> int:
        """Bytes of all definitions so far. A connection must have sent them before a DATA frame that is closed now."""
        return len(self.definitions)

    def frame_body(self, begin: int, end: int) -> bytes:
        """The next DICT body. `begin`: bytes of definitions that the connection has sent. `end`: bytes that it must send."""
        at = bisect_right(self.cuts, begin)
        stop = min(end, self.cuts[at]) if at < len(self.cuts) else end
        return bytes(self.definitions[begin:stop])

    def operation(self, id_: int) -> bytes:
        """The wire id, as a varint, of an operation in `operations`."""
        known = self.operation_bytes
        if id_ >= len(known):
            known.extend([None] * (id_ + 1 - len(known)))
        found = known[id_]
        if found is None:
            out = bytearray()
            wire.put_varint(out, self._define_operation(*self.operations.entries[id_]))
            found = known[id_] = bytes(out)
        return found

    def _define_operation(self, kind: int, name: str) -> int:
        is_full = len(self.operation_ids) >= OPERATIONS_MAX or self.string_bytes > STRING_BYTES_MAX
        data = wire.cut(OTHER if is_full else name, wire.OPERATION_BYTES_MAX)
        # Names that are equal after the cut share an id. All names that become `(other)` share one id per kind.
        id_ = self.operation_ids.get((kind, data))
        if id_ is None:
            id_ = self.operation_ids[kind, data] = len(self.operation_ids) + 1
            wire.put_operation(self.definitions, id_, kind, data)
            self._defined(len(data))
        return id_

    def text(self, text: str) -> int:
        """Id of a key or a thread's name."""
        id_ = self.texts.get(text)
        if id_ is not None:
            return id_
        is_full = len(self.texts) - self.value_count >= TEXTS_MAX or self.string_bytes > STRING_BYTES_MAX
        return self.text(OTHER) if is_full and text != OTHER else self._define_text(text)

    def value(self, value: str) -> int:
        """Id of a short value. 0 for a long value, for the first occurrence of a value, and for new values beyond a bound."""
        id_ = self.texts.get(value)
        if id_ is not None:
            return id_
        if len(value) > _VALUE_CHARS_MAX or self.value_count >= VALUES_MAX or self.string_bytes > STRING_BYTES_MAX:
            return 0
        if value not in self.seen:
            if len(self.seen) >= _SEEN_MAX:
                self.seen.clear()
            self.seen.add(value)
            return 0
        self.value_count += 1
        return self._define_text(value)

    def _define_text(self, text: str) -> int:
        id_ = self.texts[text] = len(self.texts) + 1
        data = wire.cut(text, wire.ATTRIBUTE_BYTES_MAX)
        wire.put_text(self.definitions, id_, data)
        self._defined(len(data))
        return id_

    def series(self, labels: Labels) -> int:
        """Id of a series. 0 for a new series beyond a bound."""
        id_ = self.series_ids.get(labels, 0)
        if not id_ and len(self.series_ids) < SERIES_MAX and self.string_bytes <= STRING_BYTES_MAX:
            id_ = self.series_ids[labels] = len(self.series_ids) + 1
            before = len(self.definitions)
            pairs = [(name.encode("utf-8", "replace"), value.encode("utf-8", "replace")) for name, value in labels]
            wire.put_series(self.definitions, id_, pairs)
            self._defined(len(self.definitions) - before)
        return id_

    def _defined(self, string_bytes: int) -> None:
        self.string_bytes += string_bytes
        if len(self.definitions) - (self.cuts[-1] if self.cuts else 0) >= _BODY_BYTES:
            self.cuts.append(len(self.definitions))
